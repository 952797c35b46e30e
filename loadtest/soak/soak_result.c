/* How a result of `loadtest soak` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/soak/soak.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    STRATEGY_COLUMN,
    {"orders", "orders", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders that were made"},
    {"orders_per_s", "orders/s", COLUMN_NUMBER, 0, SHOW_ALL, 4, "of the time in which orders were sent"},
    {"busy", "busy", COLUMN_NUMBER, 0, SHOW_CSV, 0, "orders whose answer was: try again later"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 3, "orders that ended otherwise: a server away, no answer"},
    {"memory_start_kib", "memory\nfirst KiB", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "heap and stacks of the service that were resident after the first slice, which warms it up"},
    {"memory_end_kib", "memory\nlast KiB", COLUMN_NUMBER, 0, SHOW_ALL, 0, "the same after the last slice"},
    {"growth_allowed_kib", "may grow\nby KiB", COLUMN_NUMBER, 0, SHOW_ALL, 2,
     "128 KiB for each thread's heap and 8 bytes an order: a quarter of the smallest leak there can be in each order"},
    {"memory_flat", "flat", COLUMN_MARK, 0, SHOW_ALL, 0, "the service has not grown by more than that"},
    {"files_start", "files\nfirst", COLUMN_NUMBER, 0, SHOW_ALL, 1, "descriptors that the service had open after the first slice"},
    {"files_end", "files\nlast", COLUMN_NUMBER, 0, SHOW_ALL, 1, "the same after the last slice"},
    {"files_kept", "closed", COLUMN_MARK, 0, SHOW_CSV, 0, "no more descriptors are open than workers may have opened for themselves"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold beyond those there were"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0, "sold − (stock − left), of the slice where it is worst"},
    {"mismatched", "mis-\nmatched", COLUMN_NUMBER, 0, SHOW_ALL, 5, "slices after which there were other orders than clients had been told of"},
    {"books_balanced", "books", COLUMN_MARK, 0, SHOW_ALL, 0, "none of those"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "what all of this says"},
};
/* clang-format on */

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    snprintf(ret_title, size,
             "A long sale under each strategy by one service, over %" PRId64
             " connections; each stock of %" PRId64 " units or fewer is sold out and its books are read",
             result_number(settings, "connections"), result_number(settings, "slice"));
}

static bool add_notes(const json_t *document, struct notes *notes)
{
    int64_t orders = 0;
    size_t i, broken = 0, sold = 0;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        orders += result_number(row, "orders");
        sold += result_number(row, "orders") > 0;
        broken += result_verdict(row) == VERDICT_BROKEN;
    }
    if (!notes_add_unavailable(notes, json_object_get(document, "rows")))
        return false;
    if (sold == 0 && broken == 0)
        return notes_add(notes, NOTE_CLOSING, "Nothing was sold.");
    return notes_add(notes, NOTE_CLOSING, "%" PRId64 " orders under %zu strateg%s. %s", orders, sold,
                     sold == 1 ? "y" : "ies",
                     broken ? "NOT all is well." : "Memory is flat, descriptors are closed, books balance.");
}

const struct result_kind soak_result = {
    .name = "soak",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};
