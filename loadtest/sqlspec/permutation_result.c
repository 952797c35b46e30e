/* The result of a file with permutation lines: the columns that show each permutation, for all formats except text. */
#include "loadtest/sqlspec/permutation_result.h"

#include "loadtest/report/result.h"
#include "loadtest/sqlspec/server/session.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"permutation", "permutation", COLUMN_TEXT, 0, SHOW_ALL, 0, "the steps in the sequence of the file"},
    {"waits", "waits", COLUMN_NUMBER, 0, SHOW_ALL, 0, "steps that waited"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 0, "steps that ended with an error"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "ok, or invariant-broken"},
};
/* clang-format on */

json_t *permutation_row_new(json_t *events, const char *broken)
{
    char words[4000] = "";
    size_t used = 0, waits = 0, errors = 0, i, n;
    json_t *event, *name;
    json_array_foreach(events, i, event) {
        const char *kind = result_text(event, "event");
        waits += strcmp(kind, "waiting") == 0;
        errors += results_error(json_object_get(event, "results")) != NULL;
        json_array_foreach(json_object_get(event, "steps"), n, name) {
            if (used < sizeof words)
                used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", n ? " " : "",
                                         json_string_value(name));
        }
    }
    return json_pack("{s:s, s:I, s:I, s:s?, s:s, s:o}", "permutation", words, "waits", (json_int_t)waits,
                     "errors", (json_int_t)errors, "broken_invariant", broken, "verdict",
                     verdict_name(broken ? VERDICT_INVARIANT : VERDICT_OK), "events", events);
}

static void print_title(const json_t *document, FILE *out)
{
    fprintf(out, "%.200s: the permutations of the file",
            result_text(json_object_get(document, "settings"), "file"));
}

static void add_notes(const json_t *document, struct notes *notes)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        const char *broken = result_text(row, "broken_invariant");
        if (*broken)
            notes_add(notes, NOTE_WITNESS, "%.300s: this invariant is not true: %.300s",
                      result_text(row, "permutation"), broken);
    }
    notes_add_verdicts(notes, json_object_get(document, "rows"), "permutation", "permutations");
}

const struct result_kind permutation_result = {
    .name = "permutations",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};
