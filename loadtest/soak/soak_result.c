/* How a result of `loadtest soak` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/soak/soak.h"

#include "loadtest/chart/number_text.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    STRATEGY_COLUMN,
    {"orders", "orders", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders created"},
    {"orders_per_s", "orders/s", COLUMN_NUMBER, 0, SHOW_ALL, 4, "orders created per second while orders were sent"},
    {"busy", "busy", COLUMN_NUMBER, 0, SHOW_CSV, 0, "orders that the client may retry"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 3, "orders with an error, or without an answer"},
    {"memory_start_kib", "memory\nfirst KiB", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "resident heap and stacks of the service after the first stock, which warms it up"},
    {"memory_end_kib", "memory\nlast KiB", COLUMN_NUMBER, 0, SHOW_ALL, 0, "the same after the last stock"},
    {"growth_allowed_kib", "allowed\ngrowth KiB", COLUMN_NUMBER, 0, SHOW_ALL, 2,
     "128 KiB for the heap of each thread and 8 bytes per order: a quarter of the smallest possible leak in each order"},
    {"memory_flat", "flat", COLUMN_MARK, 0, SHOW_ALL, 0, "the memory has grown by at most the allowed growth"},
    {"files_start", "files\nfirst", COLUMN_NUMBER, 0, SHOW_ALL, 1, "open file descriptors of the service after the first stock"},
    {"files_end", "files\nlast", COLUMN_NUMBER, 0, SHOW_ALL, 1, "the same after the last stock"},
    {"files_kept", "closed", COLUMN_MARK, 0, SHOW_CSV, 0, "the only further open descriptors are those that each worker may keep"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0, "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0, "sold − (stock − left), of the stock with the largest difference"},
    {"mismatched", "mis-\nmatched", COLUMN_NUMBER, 0, SHOW_ALL, 5, "stocks after which the orders in the database were not those that the service acknowledged"},
    {"books_balanced", "audit", COLUMN_MARK, 0, SHOW_ALL, 0, "no oversell, no drift and no mismatch"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0, "whether all checks passed"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    fprintf(out,
            "One service, %" PRId64
            " connections, one strategy after another; an audit after each stock of at most %" PRId64
            " units",
            result_number(settings, "connections"), result_number(settings, "slice"));
}

static void add_notes(const json_t *document, struct notes *notes)
{
    int64_t orders = 0;
    size_t i, broken = 0, sold = 0;
    json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        orders += result_number(row, "orders");
        sold += result_number(row, "orders") > 0;
        broken += result_verdict(row) == VERDICT_BROKEN;
    }
    notes_add_unavailable(notes, json_object_get(document, "rows"));
    char count[NUMBER_MAX];
    if (sold == 0 && broken == 0)
        notes_add(notes, NOTE_CLOSING, "No order was created.");
    else
        notes_add(notes, NOTE_CLOSING, "%s orders under %zu strateg%s. %s",
                  number_text((double)orders, 0, count), sold, sold == 1 ? "y" : "ies",
                  broken ? "NOT all checks passed."
                         : "Memory is flat, files are closed, and every audit is correct.");
}

const struct result_kind soak_result = {
    .name = "soak",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "verdict", "orders", "orders_per_s", "memory_start_kib", "memory_end_kib",
                "oversold"),
    .title = print_title,
    .notes = add_notes,
    .charts = soak_charts,
};
