/* How a result of `loadtest diff` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/compare/compare_result.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"cell", "cell", COLUMN_TEXT, 0, SHOW_ALL, 0, "a column of the strategy table"},
    {"a", "$a", COLUMN_TEXT, 0, SHOW_ALL, 0, "the first strategy"},
    {"b", "$b", COLUMN_TEXT, 0, SHOW_ALL, 0, "the second strategy"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    size_t cells = json_array_size(json_object_get(document, "cells"));
    fprintf(out, "%s and %s differ in %zu cell%s", json_string_value(json_object_get(document, "a")),
            json_string_value(json_object_get(document, "b")), cells, cells == 1 ? "" : "s");
}

/* What one strategy did: "read-write sold 400 of 100", with its rate. */
static void print_outcome(const json_t *row, FILE *out)
{
    char sold[NUMBER_MAX], stock[NUMBER_MAX], rate[NUMBER_MAX];
    const json_t *per_s = json_object_get(row, "orders_per_s");
    if (*result_text(row, "reason")) {
        fprintf(out, "%s was not run", result_text(row, "strategy"));
        return;
    }
    fprintf(out, "%s sold %s of %s", result_text(row, "strategy"),
            number_text((double)result_number(row, "sold"), 0, sold),
            number_text((double)result_number(row, "stock"), 0, stock));
    if (json_is_number(per_s))
        fprintf(out, " at %s orders/s", number_text(json_number_value(per_s), 0, rate));
}

static void print_headline(const json_t *document, FILE *out)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        fputs(i ? "; " : "", out);
        print_outcome(row, out);
    }
    fputs(i ? "." : "", out);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        const json_t *rate = json_object_get(row, "orders_per_s");
        char speed[64] = "";
        if (json_is_number(rate))
            snprintf(speed, sizeof speed, ", %.0f orders/s", json_number_value(rate));
        notes_add(notes, NOTE_CLOSING, "%s: %s; sold %" PRId64 " of %" PRId64 ", drift %" PRId64 "%s%s%s.",
                  result_text(row, "strategy"), result_text(row, "verdict"), result_number(row, "sold"),
                  result_number(row, "stock"), result_number(row, "drift"), speed,
                  *result_text(row, "witness") ? "; " : "", result_text(row, "witness"));
        notes_add(notes, NOTE_ADVICE, "%s", result_text(json_object_get(row, "cells"), "why"));
    }
}

const struct result_kind diff_result = {
    .name = "diff",
    .rows = "cells",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
};
