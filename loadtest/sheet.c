/* A stored result as a sheet to print: its title, its columns as data, its rows, and notes beneath. */
#include "loadtest/sheet.h"

#include "loadtest/complain.h"
#include "loadtest/options.h"
#include "loadtest/result.h"
#include "loadtest/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the columns --------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct column COMPARE_COLUMNS[] = {
    {"strategy", "strategy", "how orders are kept apart", COLUMN_TEXT, 0, SHOW_ALL, 0},
    {"guarantee", "guarantee", "what the strategy promises: never safe, safe within one process, while its lock's "
     "lease or session lives, or always", COLUMN_TEXT, 0, SHOW_ALL, 13},
    {"kept.stock", "never\noversold", "no more units were sold than there were", COLUMN_MARK, 0, SHOW_ALL, 0},
    {"kept.books", "books\nbalance", "what is left and what was sold add up to what there was", COLUMN_MARK, 0, SHOW_ALL, 11},
    {"kept.answers", "answers\nkept", "clients were told of exactly the orders that are in the database", COLUMN_MARK, 0, SHOW_ALL, 16},
    {"verdict", "verdict", "what this says about the promise", COLUMN_VERDICT, 0, SHOW_ALL, 0},
    {"instances", "services", "service processes at work", COLUMN_NUMBER, 0, SHOW_ALL, 20},
    {"stock", "stock", "units there were", COLUMN_NUMBER, 0, SHOW_CSV, 0},
    {"requests", "requests", "orders sent", COLUMN_NUMBER, 0, SHOW_CSV, 0},
    {"created", "created", "orders answered 201", COLUMN_NUMBER, 0, SHOW_ALL, 8},
    {"sold_out", "sold\nout", "orders answered: sold out", COLUMN_NUMBER, 0, SHOW_ALL, 12},
    {"busy", "busy", "orders told to come again: lock busy, conflict, overloaded, lock lost", COLUMN_NUMBER, 0, SHOW_ALL, 17},
    {"errors", "errors", "orders that ended in an error or without an answer", COLUMN_NUMBER, 0, SHOW_ALL, 15},
    {"left", "left", "units that the stock still shows", COLUMN_NUMBER, 0, SHOW_ALL, 7},
    {"sold", "sold", "units in orders", COLUMN_NUMBER, 0, SHOW_ALL, 6},
    {"oversold", "over-\nsold", "units sold beyond those there were", COLUMN_NUMBER, 0, SHOW_ALL, 1},
    {"drift", "drift", "sold − (stock − left): above 0 updates of the stock were lost, below 0 units were", COLUMN_NUMBER, 0, SHOW_ALL, 2},
    {"negative", "negative", "units that the stock shows below zero", COLUMN_NUMBER, 0, SHOW_CSV, 0},
    {"orders_per_s", "orders\n/s", "orders created a second, with ample stock", COLUMN_NUMBER, 0, SHOW_ALL, 3},
    {"latency_ms.p50", "p50\nms", "half of the created orders took no longer, by the service's clock", COLUMN_NUMBER, 1, SHOW_ALL, 5},
    {"latency_ms.p90", "p90 ms", "nine of ten created orders took no longer", COLUMN_NUMBER, 1, SHOW_CSV, 0},
    {"latency_ms.p99", "p99\nms", "99 of 100 created orders took no longer", COLUMN_NUMBER, 1, SHOW_ALL, 4},
    {"latency_ms.max", "max ms", "no created order took longer", COLUMN_NUMBER, 1, SHOW_CSV, 0},
    {"lock_wait_ms.p99", "lock wait\np99 ms", "99 of 100 orders waited no longer for their lock outside the database", COLUMN_NUMBER, 1, SHOW_ALL, 14},
    {"round_trips_per_order", "round\ntrips", "to the database, for each order", COLUMN_NUMBER, 1, SHOW_ALL, 9},
    {"retries_per_order", "retries", "of an order, because another one came between", COLUMN_NUMBER, 2, SHOW_ALL, 10},
    {"think_ms", "think ms", "pause inside the critical section", COLUMN_NUMBER, 0, SHOW_CSV, 0},
    {"runs", "runs", "runs whose worst verdict and medians these are", COLUMN_NUMBER, 0, SHOW_CSV, 0},
    {"shown_by", "shown by", "what shows the strategy's flaw", COLUMN_TEXT, 0, SHOW_CSV, 0},
    {"witness", "witness", "two orders that cannot both be right", COLUMN_TEXT, 0, SHOW_CSV, 0},
    {"reason", "reason", "why it is not available", COLUMN_TEXT, 0, SHOW_CSV, 0},
};

static const struct column BENCH_COLUMNS[] = {
    {"name", "ratio", "what is held against what", COLUMN_TEXT, 0, SHOW_ALL, 0},
    {"value", "value", "the median", COLUMN_NUMBER, 3, SHOW_ALL, 0},
    {"min", "min", "the smallest of the runs", COLUMN_NUMBER, 3, SHOW_ALL, 2},
    {"max", "max", "the largest of the runs", COLUMN_NUMBER, 3, SHOW_ALL, 3},
    {"goal", "goal", "what it should reach", COLUMN_NUMBER, 2, SHOW_ALL, 0},
    {"reached", "goal\nreached", "whether the median reaches it", COLUMN_MARK, 0, SHOW_ALL, 0},
    {"better", "better", "whether higher or lower is better", COLUMN_TEXT, 0, SHOW_ALL, 5},
    {"numerator_per_s", "measured\n/s", "what was measured, a second", COLUMN_NUMBER, 0, SHOW_ALL, 1},
    {"denominator_per_s", "against\n/s", "what it is held against, a second", COLUMN_NUMBER, 0, SHOW_ALL, 1},
    {"with", "service\nagainst", "the counts at which each side did best, and what the service is held against", COLUMN_TEXT, 0,
     SHOW_ALL, 4},
};

static const struct column DIFF_COLUMNS[] = {
    {"cell", "cell", "a column of the strategy table", COLUMN_TEXT, 0, SHOW_ALL, 0},
    {"a", "$a", "the first strategy", COLUMN_TEXT, 0, SHOW_ALL, 0},
    {"b", "$b", "the second strategy", COLUMN_TEXT, 0, SHOW_ALL, 0},
};
/* clang-format on */

/* ---- the kinds of results ------------------------------------------------------------------------------ */

static int64_t number(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static void title_compare(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    char duration[32];
    size_t used = 0;
    ret_title[0] = 0;
    if (!settings)
        return;
    if (number(settings, "requests") > 0)
        used += (size_t)snprintf(
            ret_title, size, "%" PRId64 " orders of %" PRId64 " against a stock of %" PRId64,
            number(settings, "requests"), number(settings, "quantity"), number(settings, "stock"));
    if (number(settings, "duration_ms") > 0)
        used += (size_t)snprintf(ret_title + used, size - used, "%s %s of ample stock", used ? ", then" : "",
                                 duration_text(number(settings, "duration_ms"), duration));
    int64_t connections = number(settings, "connections"), instances = number(settings, "instances");
    snprintf(ret_title + used, size - used, "; %" PRId64 " connection%s to %" PRId64 " service%s",
             connections, connections == 1 ? "" : "s", instances, instances == 1 ? "" : "s");
}

static void title_bench(const json_t *document, char *ret_title, size_t size)
{
    (void)document;
    snprintf(ret_title, size, "Measured in one run, interleaved; medians");
}

static void title_diff(const json_t *document, char *ret_title, size_t size)
{
    size_t cells = json_array_size(json_object_get(document, "cells"));
    snprintf(ret_title, size, "%s and %s differ in %zu cell%s",
             json_string_value(json_object_get(document, "a")),
             json_string_value(json_object_get(document, "b")), cells, cells == 1 ? "" : "s");
}

static const struct kind {
    const char *name;
    const char *rows; /* the document's member */
    const struct column *columns;
    size_t column_count;
    void (*title)(const json_t *document, char *ret_title, size_t size);
    notes_fn *notes;
    bool has_plot;
} KINDS[] = {
    {"compare", "rows", COMPARE_COLUMNS, sizeof COMPARE_COLUMNS / sizeof COMPARE_COLUMNS[0], title_compare,
     notes_of_compare, true},
    {"bench", "ratios", BENCH_COLUMNS, sizeof BENCH_COLUMNS / sizeof BENCH_COLUMNS[0], title_bench, NULL,
     false},
    {"diff", "cells", DIFF_COLUMNS, sizeof DIFF_COLUMNS / sizeof DIFF_COLUMNS[0], title_diff, notes_of_diff,
     false},
};

#define KIND_COUNT (sizeof KINDS / sizeof KINDS[0])

bool sheet_open(const json_t *document, struct sheet *ret_sheet)
{
    const char *name = result_kind(document);
    const struct kind *kind = KINDS;
    while (kind < KINDS + KIND_COUNT && strcmp(kind->name, name) != 0)
        kind++;
    if (kind == KINDS + KIND_COUNT) {
        fprintf(stderr, "loadtest: results of the kind '%s' cannot be printed (valid:", name);
        for (kind = KINDS; kind < KINDS + KIND_COUNT; kind++)
            fprintf(stderr, " %s", kind->name);
        fputs(")\n", stderr);
        return false;
    }
    struct sheet sheet = {
        .document = document,
        .columns = kind->columns,
        .column_count = kind->column_count,
        .rows = json_object_get(document, kind->rows),
        .has_plot = kind->has_plot,
    };
    if (!json_is_array(sheet.rows)) {
        complain("the result has no array '%s'", kind->rows);
        return false;
    }
    kind->title(document, sheet.title, sizeof sheet.title);
    if (kind->notes && !kind->notes(document, &sheet.notes)) {
        complain("out of memory");
        notes_free(&sheet.notes);
        return false;
    }
    *ret_sheet = sheet;
    return true;
}

void sheet_close(struct sheet *sheet)
{
    notes_free(&sheet->notes);
}

const char *sheet_heading(const struct sheet *sheet, const struct column *column)
{
    if (column->heading[0] != '$')
        return column->heading;
    const char *text = json_string_value(json_object_get(sheet->document, column->heading + 1));
    return text ? text : column->heading + 1;
}

/* ---- cells --------------------------------------------------------------------------------------------- */

#define NOTHING "–"

const json_t *cell_value(const struct column *column, const json_t *row)
{
    const char *dot = strchr(column->path, '.');
    char outer[64];
    snprintf(outer, sizeof outer, "%.*s", dot ? (int)(dot - column->path) : (int)strlen(column->path),
             column->path);
    const json_t *value = json_object_get(row, outer);
    if (dot)
        value = json_object_get(value, dot + 1);
    return json_is_null(value) ? NULL : value;
}

/* Puts a comma between groups of three digits before the decimal point. */
static void group_digits(char *text)
{
    char *digits = text + (*text == '-');
    size_t whole = strspn(digits, "0123456789");
    for (char *at = digits + whole; whole > 3; whole -= 3) {
        at -= 3;
        memmove(at + 1, at, strlen(at) + 1);
        *at = ',';
    }
}

/* Also says what had to be done to get there. */
static const char *verdict_text(const char *name, const json_t *row, char *buffer)
{
    static const char *const MARKS[VERDICT_COUNT] = {
        [VERDICT_OK] = "✓",         [VERDICT_OVERSOLD_AS_EXPECTED] = "✗",
        [VERDICT_FLAWED] = "~",     [VERDICT_UNAVAILABLE] = NOTHING,
        [VERDICT_NOT_CAUGHT] = "!", [VERDICT_MIXED] = "!",
        [VERDICT_BROKEN] = "!",
    };
    enum verdict verdict;
    size_t used = (size_t)snprintf(buffer, CELL_MAX, "%s %.100s",
                                   verdict_parse(name, &verdict) ? MARKS[verdict] : "?", name);
    if (json_is_true(json_object_get(row, "slowed_down")))
        snprintf(buffer + used, CELL_MAX - used, " (think %" PRId64 " ms)", number(row, "think_ms"));
    return buffer;
}

const char *cell_text(const struct column *column, const json_t *row, char *buffer)
{
    const json_t *value = cell_value(column, row);
    snprintf(buffer, CELL_MAX, "%s", NOTHING);
    if (column->type == COLUMN_MARK) {
        if (json_is_boolean(value))
            snprintf(buffer, CELL_MAX, "%s", json_is_true(value) ? "✓ yes" : "✗ no");
    } else if (column->type == COLUMN_VERDICT && json_is_string(value)) {
        return verdict_text(json_string_value(value), row, buffer);
    } else if (json_is_number(value)) {
        double rounded = json_number_value(value);
        double half = 0.5 * pow(10, -column->decimals);
        snprintf(buffer, CELL_MAX / 2, "%.*f", column->decimals, fabs(rounded) < half ? 0.0 : rounded);
        group_digits(buffer);
    } else if (value) {
        return cell_plain(column, row, buffer);
    }
    return buffer;
}

const char *cell_plain(const struct column *column, const json_t *row, char *buffer)
{
    const json_t *value = cell_value(column, row);
    buffer[0] = 0;
    if (json_is_string(value))
        snprintf(buffer, CELL_MAX, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(buffer, CELL_MAX, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        snprintf(buffer, CELL_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buffer, CELL_MAX, "%.10g", json_real_value(value));
    return buffer;
}
