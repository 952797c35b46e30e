/* Compares tables row by row, and the results of steps one after the other. */
#include "loadtest/sqlspec/difference/difference.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_at(const json_t *row, size_t i)
{
    const char *text = json_string_value(json_array_get(row, i));
    return text ? text : "";
}

/* Quotes a value that has spaces or is empty, so that its ends are seen. */
static void write_value(char *buffer, size_t size, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text && value && !json_is_null(value)) {
        char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        (void)snprintf(buffer, size, "%.90s", dumped ? dumped : "");
        free(dumped);
    } else if (!text) {
        (void)snprintf(buffer, size, "NULL");
    } else {
        bool plain = *text && !strpbrk(text, " \t\n'");
        (void)snprintf(buffer, size, plain ? "%.80s" : "'%.80s'", text);
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* The fields of a row of PostgreSQL: (1,"a b",) ; an empty field without quotation marks is NULL. */
static json_t *fields_of_record(const char *text)
{
    json_t *fields = json_array();
    char *field = malloc(strlen(text) + 1);
    for (const char *at = text + 1; fields && field && at[-1] && at[-1] != ')'; at++) {
        size_t used = 0;
        bool quoted = false, inside = false;
        for (; *at && (inside || (*at != ',' && *at != ')')); at++) {
            if (*at == '"' && inside && at[1] == '"')
                field[used++] = *at++;
            else if (*at == '"')
                quoted = inside = !inside;
            else {
                at += *at == '\\' && at[1];
                field[used++] = *at;
            }
            quoted |= inside;
        }
        field[used] = 0;
        (void)json_array_append_new(fields, used || quoted ? json_string(field) : json_null());
        if (!*at)
            break;
    }
    free(field);
    return fields;
}

/* The fields of a row as a driver's tables_sql has it: a record of PostgreSQL, or an array in JSON. */
static json_t *fields_of(const char *text)
{
    return *text == '(' ? fields_of_record(text) : json_loads(text, 0, NULL);
}

/* The first field that differs; the count of those that do. */
static size_t compare_fields(const char *one, const char *other, size_t *ret_first)
{
    json_auto_t *left = fields_of(one), *right = fields_of(other);
    size_t count = json_array_size(left), differences = 0;
    *ret_first = SIZE_MAX;
    if (count != json_array_size(right))
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (!json_equal(json_array_get(left, i), json_array_get(right, i))) {
            if (!differences++)
                *ret_first = i;
        }
    return differences;
}

static void describe_field(const char *table, const char *one, const char *other, size_t field,
                           const json_t *columns, struct difference *ret)
{
    json_auto_t *left = fields_of(one), *right = fields_of(other);
    const char *column = text_at(json_object_get(columns, table), field);
    (void)snprintf(ret->where, sizeof ret->where, "table %.60s, column %.60s", table, column);
    write_value(ret->one, sizeof ret->one, json_array_get(left, field));
    write_value(ret->other, sizeof ret->other, json_array_get(right, field));
}

/* "a row with id = 2, qty = 1" */
static void write_row(char *buffer, size_t size, const char *row, const json_t *names)
{
    json_auto_t *fields = fields_of(row);
    size_t used = (size_t)snprintf(buffer, size, "a row with"), i;
    json_t *field;
    json_array_foreach(fields, i, field) {
        char value[100];
        write_value(value, sizeof value, field);
        if (used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s %s = %s", i ? "," : "",
                                     text_at(names, i), value);
    }
}

/* Marks in ALIKE the rows of TABLES that have a partner in OTHER, and the partners in PARTNER. */
static void match(const json_t *tables, const json_t *other, bool *alike, bool *partner)
{
    size_t i, n;
    json_t *row, *candidate;
    json_array_foreach(tables, i, row) {
        json_array_foreach(other, n, candidate) {
            if (!partner[n] && json_equal(row, candidate)) {
                alike[i] = partner[n] = true;
                break;
            }
        }
    }
}

/* Each row with names in the place of its generated numbers. */
static json_t *rename_rows(const struct numbers *numbers, const json_t *tables)
{
    json_t *renamed = json_array(), *row;
    size_t i;
    json_array_foreach(tables, i, row) {
        (void)json_array_append_new(renamed, numbers_canonical(numbers, row));
    }
    return renamed;
}

/* Describes the row I of ONE that has no partner: with the row of OTHER without a partner that is nearest to it, or alone. */
static void describe_row(const json_t *one, size_t i, const json_t *other, const bool *partner,
                         const json_t *columns, bool is_other, struct difference *ret)
{
    const char *table = text_at(json_array_get(one, i), 0), *row = text_at(json_array_get(one, i), 1);
    size_t fewest = SIZE_MAX, nearest = 0, field = 0, n;
    json_t *candidate;
    json_array_foreach(other, n, candidate) {
        size_t first, differences;
        if (partner[n] || strcmp(text_at(candidate, 0), table) != 0)
            continue;
        differences = compare_fields(row, text_at(candidate, 1), &first);
        if (differences > 0 && differences < fewest) {
            fewest = differences;
            nearest = n;
            field = first;
        }
    }
    if (fewest != SIZE_MAX) {
        const char *near = text_at(json_array_get(other, nearest), 1);
        describe_field(table, is_other ? near : row, is_other ? row : near, field, columns, ret);
        return;
    }
    (void)snprintf(ret->where, sizeof ret->where, "table %.60s", table);
    (void)snprintf(is_other ? ret->one : ret->other, sizeof ret->one, "no such row");
    write_row(is_other ? ret->other : ret->one, sizeof ret->one, row, json_object_get(columns, table));
}

/* RENAME: the numbers of each row are no difference. */
static size_t compare_tables(const struct numbers *numbers, const json_t *one, const json_t *other,
                             bool rename, const json_t *columns, struct difference *ret_first)
{
    json_auto_t *left = numbers_small(numbers, one), *right = numbers_small(numbers, other),
                *left_names = rename ? rename_rows(numbers, one) : json_incref(left),
                *right_names = rename ? rename_rows(numbers, other) : json_incref(right);
    size_t left_count = json_array_size(one), right_count = json_array_size(other), differences = 0;
    bool *alike = calloc(left_count + 1, sizeof *alike), *partner = calloc(right_count + 1, sizeof *partner);
    if (alike && partner) {
        match(left_names, right_names, alike, partner);
        for (size_t i = 0; i < left_count; i++)
            if (!alike[i] && !differences++)
                describe_row(left, i, right, partner, columns, false, ret_first);
        for (size_t i = 0; i < right_count; i++)
            if (!partner[i] && !differences++)
                describe_row(right, i, left, alike, columns, true, ret_first);
    }
    free(alike);
    free(partner);
    return differences;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static void describe_result(char *buffer, size_t size, const json_t *result)
{
    const json_t *rows = json_object_get(result, "rows"), *error = json_object_get(result, "error"),
                 *command = json_object_get(result, "command");
    if (rows)
        (void)snprintf(buffer, size, "%zu row%s", json_array_size(rows),
                       json_array_size(rows) == 1 ? "" : "s");
    else if (error || command)
        (void)snprintf(buffer, size, "%s%.80s", error ? "the error " : "",
                       json_string_value(error ? error : command));
    else
        (void)snprintf(buffer, size, "no result");
}

/* The first cell in which rows of the same number differ. */
static bool describe_cell(const char *step, const json_t *one, const json_t *other, struct difference *ret)
{
    const json_t *left = json_object_get(one, "rows"), *right = json_object_get(other, "rows");
    size_t i, n;
    json_t *row, *cell;
    if (!left || json_array_size(left) != json_array_size(right))
        return false;
    json_array_foreach(left, i, row) {
        json_array_foreach(row, n, cell) {
            const json_t *partner = json_array_get(json_array_get(right, i), n);
            if (json_equal(cell, partner))
                continue;
            (void)snprintf(ret->where, sizeof ret->where, "step %.60s, column %.60s", step,
                           text_at(json_object_get(one, "columns"), n));
            write_value(ret->one, sizeof ret->one, cell);
            write_value(ret->other, sizeof ret->other, partner);
            return true;
        }
    }
    return false;
}

static void describe_step(const struct numbers *numbers, const char *step, const json_t *one,
                          const json_t *other, struct difference *ret)
{
    json_auto_t *left = numbers_small(numbers, one), *right = numbers_small(numbers, other);
    size_t i = 0, count = json_array_size(left);
    while (i < count && json_equal(json_array_get(left, i), json_array_get(right, i)))
        i++;
    if (describe_cell(step, json_array_get(left, i), json_array_get(right, i), ret))
        return;
    (void)snprintf(ret->where, sizeof ret->where, "step %.60s", step);
    describe_result(ret->one, sizeof ret->one, json_array_get(left, i));
    describe_result(ret->other, sizeof ret->other, json_array_get(right, i));
}

static bool same_results(const struct numbers *numbers, const json_t *one, const json_t *other)
{
    json_auto_t *left = numbers_canonical(numbers, one), *right = numbers_canonical(numbers, other);
    return left && json_equal(left, right);
}

size_t difference_find(const struct numbers *numbers, const struct difference_side *one,
                       const struct difference_side *other, const json_t *columns,
                       struct difference *ret_first)
{
    const char *step;
    json_t *results;
    *ret_first = (struct difference){.where = ""};
    size_t differences = compare_tables(numbers, one->tables, other->tables, true, columns, ret_first);
    json_object_foreach((json_t *)one->steps, step, results) {
        const json_t *partner = json_object_get(other->steps, step);
        if (*step && partner && !same_results(numbers, results, partner) && !differences++)
            describe_step(numbers, step, results, partner, ret_first);
    }
    if (differences == 0) /* then it is a number that belongs to another row */
        (void)compare_tables(numbers, one->tables, other->tables, false, columns, ret_first);
    return differences;
}
