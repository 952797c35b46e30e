/* A result as a table that every format prints: its rows, the columns that its command declares, its title and notes. */
#include "loadtest/report/table.h"

#include "loadtest/cli/complain.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The closing sentence is about all that the command was to run. */
static void limit_closing(struct notes *notes)
{
    static const char ONLY[] = "Interrupted: this covers only what had run.";
    bool closes = false;
    for (size_t i = 0; i < notes->count; i++) {
        char *text;
        if (notes->item[i].kind != NOTE_CLOSING)
            continue;
        closes = true;
        if (asprintf(&text, "%s %s", ONLY, notes->item[i].text) < 0) {
            notes->failed = true;
            return;
        }
        free(notes->item[i].text);
        notes->item[i].text = text;
    }
    if (!closes)
        notes_add(notes, NOTE_CLOSING, "%s", ONLY);
}

bool table_sentence(void (*write)(const json_t *document, FILE *out), const json_t *document, char *ret_text,
                    size_t size)
{
    memset(ret_text, 0, size);
    FILE *out = fmemopen(ret_text, size - 1, "w");
    if (!out)
        return false;
    write(document, out);
    (void)fclose(out); /* fails if the text is longer */
    return true;
}

bool table_open(const struct result_kind *kind, const json_t *document, struct result_table *ret_table)
{
    struct result_table table = {
        .kind = kind,
        .document = document,
        .rows = json_object_get(document, kind->rows),
    };
    if (!json_is_array(table.rows)) {
        complain("the stored result has no array '%s'", kind->rows);
        return false;
    }
    table.notes.failed = !table_sentence(kind->title, document, table.title, sizeof table.title);
    kind->notes(document, &table.notes);
    if (json_is_true(json_object_get(document, "interrupted")))
        limit_closing(&table.notes);
    if (table.notes.failed) {
        complain("out of memory");
        notes_free(&table.notes);
        return false;
    }
    *ret_table = table;
    return true;
}

void table_close(struct result_table *table)
{
    notes_free(&table->notes);
}

const char *table_heading(const struct result_table *table, const struct column *column)
{
    if (column->heading[0] != '$')
        return column->heading;
    const char *text = json_string_value(json_object_get(table->document, column->heading + 1));
    return text ? text : column->heading + 1;
}

/* ---- cells --------------------------------------------------------------------------------------------- */

#define NO_VALUE NO_NUMBER

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

const struct cell_style *cell_style(const struct column *column, const json_t *row)
{
    static const struct cell_style PLAIN = {"?", "", ""}, UNKNOWN = {"?", "", "bad"};
    static const struct cell_style STYLES[VERDICT_COUNT] = {
        [VERDICT_OK] = {"✓", "\033[32m", "good"},
        [VERDICT_OVERSOLD_AS_EXPECTED] = {"✗", "\033[33m", "caught"},
        [VERDICT_CAUGHT] = {"✗", "\033[33m", "bad"},
        [VERDICT_FLAWED] = {"~", "\033[36m", ""},
        [VERDICT_UNKNOWN] = {"?", "", "bad"},
        [VERDICT_UNAVAILABLE] = {NO_VALUE, "\033[2m", ""},
        [VERDICT_NOT_CAUGHT] = {"!", "\033[1;31m", "bad"},
        [VERDICT_NOTHING_SHOWN] = {"!", "\033[1;31m", "bad"},
        [VERDICT_MIXED] = {"!", "\033[1;31m", "bad"},
        [VERDICT_BROKEN] = {"!", "\033[1;31m", "bad"},
        [VERDICT_CLEAN] = {"✓", "\033[32m", "good"},
        [VERDICT_ANOMALY] = {"!", "\033[1;31m", "bad"},
        [VERDICT_NOT_EXPLORED] = {"?", "\033[1;31m", "bad"},
        [VERDICT_FAILING] = {"!", "\033[1;31m", "bad"},
        [VERDICT_TURNED_AWAY] = {"!", "\033[1;31m", "bad"},
        [VERDICT_ANSWERS_LOST] = {"!", "\033[1;31m", "bad"},
        [VERDICT_INVARIANT] = {"!", "\033[1;31m", "bad"},
        [VERDICT_DRIFT] = {"!", "\033[1;31m", "bad"},
        [VERDICT_STUCK] = {"!", "\033[1;31m", "bad"},
        [VERDICT_OVERSOLD] = {"✗", "\033[1;31m", "bad"},
    };
    enum verdict verdict;
    const json_t *value = cell_value(column, row);
    if (column->type == COLUMN_MARK && value)
        return &STYLES[json_is_true(value) ? VERDICT_OK : VERDICT_OVERSOLD_AS_EXPECTED];
    if (column->type == COLUMN_VERDICT && json_is_string(value))
        return verdict_parse(json_string_value(value), &verdict) ? &STYLES[verdict] : &UNKNOWN;
    return &PLAIN;
}

const char *cell_text(const struct column *column, const json_t *row, char *buffer)
{
    const json_t *value = cell_value(column, row);
    snprintf(buffer, CELL_MAX, "%s", NO_VALUE);
    if (column->type == COLUMN_MARK) {
        if (json_is_boolean(value))
            snprintf(buffer, CELL_MAX, "%s %s", cell_style(column, row)->mark,
                     json_is_true(value) ? "yes" : "no");
    } else if (column->type == COLUMN_VERDICT && json_is_string(value)) {
        size_t used = (size_t)snprintf(buffer, CELL_MAX, "%s %.100s", cell_style(column, row)->mark,
                                       json_string_value(value));
        /* The rate of a row that was slowed down is not to be compared with the others'. */
        if (json_is_true(json_object_get(row, "slowed_down")))
            snprintf(buffer + used, CELL_MAX - used, " (think %" PRId64 " ms)",
                     result_number(row, "think_ms"));
    } else if (json_is_number(value)) {
        return number_text(json_number_value(value), column->decimals, buffer);
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
