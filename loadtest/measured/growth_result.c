/* How a result of `growth` is printed: its columns, its title and its notes. */
#include "loadtest/measured/measured.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const growth_axis_names[GROWTH_AXES] = {
    [GROWTH_CONNECTIONS] = "connections",
    [GROWTH_PRODUCTS] = "products",
    [GROWTH_ORDERS] = "orders",
};

/* clang-format off */
static const struct column COLUMNS[] = {
    {"axis", "what grows", COLUMN_TEXT, 0, SHOW_ALL, 0, "what grows: connections, products that are ordered, or orders in the tables"},
    {"at", "to", COLUMN_NUMBER, 0, SHOW_ALL, 0, "its value"},
    {"atomic-statement.orders_per_s", "statement\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders per second, atomic-statement"},
    {"atomic-statement.p99_ms", "statement\np99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 1, "99 of 100 created orders took at most this long in the service, atomic-statement"},
    {"atomic-statement.pgbench_per_s", "statement\npgbench/s", COLUMN_NUMBER, 0, SHOW_ALL, 2, "the same SQL in pgbench with as many clients, up to 100"},
    {"select-for-update.orders_per_s", "for-update\norders/s", COLUMN_NUMBER, 0, SHOW_ALL, 0, "orders per second, select-for-update"},
    {"select-for-update.p99_ms", "for-update\np99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 1, "99 of 100 created orders took at most this long in the service, select-for-update"},
    {"select-for-update.pgbench_per_s", "for-update\npgbench/s", COLUMN_NUMBER, 0, SHOW_ALL, 2, "the same SQL in pgbench with as many clients, up to 100"},
    {"atomic-statement.median_ms", "statement\nmedian ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "half of the created orders took at most this long, atomic-statement"},
    {"select-for-update.median_ms", "for-update\nmedian ms", COLUMN_NUMBER, 1, SHOW_CSV, 0, "half of the created orders took at most this long, select-for-update"},
    {"insert_s", "insert s", COLUMN_NUMBER, 1, SHOW_CSV, 0, "seconds to insert the earlier orders that were missing"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    fprintf(out,
            "The service with its default settings; %g s for each value; connections: one product; products: "
            "%" PRId64 " connections; orders: %" PRId64 " connections and %" PRId64 " products",
            (double)result_number(settings, "duration_ms") / 1e3, result_number(settings, "connections"),
            result_number(settings, "connections"), result_number(settings, "products"));
}

/* ---- notes ---------------------------------------------------------------------------------------------------- */

static const char *const STRATEGIES[] = {"atomic-statement", "select-for-update"};

#define STRATEGY_COUNT (sizeof STRATEGIES / sizeof STRATEGIES[0])

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *best = NULL;
    double most = 0;
    size_t i, best_strategy = 0;
    const json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        for (size_t j = 0; j < STRATEGY_COUNT; j++) {
            double rate = json_number_value(
                json_object_get(json_object_get(row, STRATEGIES[j]), "orders_per_s"));
            if (rate > most) {
                most = rate;
                best = row;
                best_strategy = j;
            }
        }
    }
    char rate[NUMBER_MAX];
    if (best)
        fprintf(out, "%s reaches %s orders/s, with %" PRId64 " %s.", STRATEGIES[best_strategy],
                number_text(most, 0, rate), result_number(best, "at"), result_text(best, "axis"));
}

static void add_notes(const json_t *document, struct notes *notes)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(document, "rows"), i, row) {
        for (size_t j = 0; j < STRATEGY_COUNT; j++) {
            int64_t refused = result_number(json_object_get(row, STRATEGIES[j]), "refused");
            if (refused > 0)
                notes_add(notes, NOTE_WARNING,
                          "%s, %" PRId64 " %s: the service refused %" PRId64
                          " orders that could not be placed in time.",
                          STRATEGIES[j], result_number(row, "at"), result_text(row, "axis"), refused);
        }
    }
    notes_add_busy_machine(notes, document);
}

const struct result_kind growth_result = {
    .name = "growth",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = growth_charts,
};
