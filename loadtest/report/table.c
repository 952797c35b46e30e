/* A stored result as a sheet to print: its title, its columns as data, its rows, and notes beneath. */
#include "loadtest/report/sheet.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/options.h"
#include "loadtest/faults/sheet.h"
#include "loadtest/openloop/rush_sheet.h"
#include "loadtest/report/result.h"
#include "loadtest/soak/soak.h"
#include "loadtest/stats/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the columns --------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct column COMPARE_COLUMNS[] = {
    {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "how orders are kept apart"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_ALL, 13,
     "what the strategy promises: never safe, safe within one process, while its lock's lease or session "
     "lives, or always"},
    {"kept.stock", "never\noversold", COLUMN_MARK, 0, SHOW_ALL, 0,
     "no more units were sold than there were"},
    {"kept.books", "books\nbalance", COLUMN_MARK, 0, SHOW_ALL, 11,
     "what is left and what was sold add up to what there was"},
    {"kept.answers", "answers\nkept", COLUMN_MARK, 0, SHOW_ALL, 16,
     "clients were told of exactly the orders that are in the database"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "what this says about the promise"},
    {"instances", "services", COLUMN_NUMBER, 0, SHOW_ALL, 20,
     "service processes at work"},
    {"stock", "stock", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "units there were"},
    {"requests", "requests", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "orders sent"},
    {"created", "created", COLUMN_NUMBER, 0, SHOW_ALL, 8,
     "orders answered 201"},
    {"sold_out", "sold\nout", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "orders answered: sold out"},
    {"busy", "busy", COLUMN_NUMBER, 0, SHOW_ALL, 17,
     "orders told to come again: lock busy, conflict, overloaded, lock lost"},
    {"errors", "errors", COLUMN_NUMBER, 0, SHOW_ALL, 15,
     "orders that ended in an error or without an answer"},
    {"left", "left", COLUMN_NUMBER, 0, SHOW_ALL, 7,
     "units that the stock still shows"},
    {"sold", "sold", COLUMN_NUMBER, 0, SHOW_ALL, 6,
     "units in orders"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "units sold beyond those there were"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 2,
     "sold − (stock − left): above 0 updates of the stock were lost, below 0 units were"},
    {"negative", "negative", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "units that the stock shows below zero"},
    {"orders_per_s", "orders\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 3,
     "orders created a second, with ample stock"},
    {"latency_ms.p50", "p50\nms", COLUMN_NUMBER, 1, SHOW_ALL, 5,
     "half of the created orders took no longer, by the service's clock"},
    {"latency_ms.p90", "p90 ms", COLUMN_NUMBER, 1, SHOW_CSV, 0,
     "nine of ten created orders took no longer"},
    {"latency_ms.p99", "p99\nms", COLUMN_NUMBER, 1, SHOW_ALL, 4,
     "99 of 100 created orders took no longer"},
    {"latency_ms.max", "max ms", COLUMN_NUMBER, 1, SHOW_CSV, 0,
     "no created order took longer"},
    {"lock_wait_ms.p99", "lock wait\np99 ms", COLUMN_NUMBER, 1, SHOW_ALL, 14,
     "99 of 100 orders waited no longer for their lock outside the database"},
    {"round_trips_per_order", "round\ntrips", COLUMN_NUMBER, 1, SHOW_ALL, 9,
     "to the database, for each order"},
    {"lock_round_trips_per_order", "lock\ntrips", COLUMN_NUMBER, 1, SHOW_ALL, 12,
     "to the lock's server, for each order"},
    {"wake_ups_per_release", "wake-\nups", COLUMN_NUMBER, 1, SHOW_ALL, 13,
     "of waiting orders, for each release of the lock outside the database"},
    {"retries_per_order", "retries", COLUMN_NUMBER, 2, SHOW_ALL, 10,
     "of an order, because another one came between"},
    {"think_ms", "think ms", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "pause inside the critical section"},
    {"runs", "runs", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "runs whose worst verdict and medians these are"},
    {"shown_by", "shown by", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "what shows the strategy's flaw"},
    {"witness", "witness", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "two orders that cannot both be right"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why it is not available"},
    {"finding", "finding", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why the row is broken"},
};

static const struct column EXPLORE_COLUMNS[] = {
    {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "how orders are kept apart"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_ALL, 9,
     "what the strategy promises: never safe, safe within one process, while its lock's lease or session "
     "lives, or always"},
    {"step_list", "steps of an order", COLUMN_TEXT, 0, SHOW_ALL, 10,
     "what an order does that nobody is in the way of, and where it is held; the share is a property of this list"},
    {"schedules", "sched-\nules", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "orders in which the steps can follow each other"},
    {"coverage", "cover-\nage", COLUMN_NUMBER, 3, SHOW_ALL, 2,
     "how much of them was run; 1 is all"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "schedules that sold more than there was"},
    {"share_percent", "share\n%", COLUMN_NUMBER, 1, SHOW_ALL, 1,
     "of the schedules that oversold; only a full search has one"},
    {"sold_rightly", "sold\nrightly", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "schedules that sold what could be sold, with books that balance"},
    {"undersold", "under-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 6,
     "schedules that turned an order away although enough was left"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 3,
     "schedules in which what is left and what was sold do not add up to what there was"},
    {"blocked", "waited", COLUMN_NUMBER, 0, SHOW_ALL, 7,
     "schedules in which an order waited for another"},
    {"deadlocks", "dead-\nlocks", COLUMN_NUMBER, 0, SHOW_ALL, 8,
     "schedules in which orders waited for each other"},
    {"stuck_locks", "stuck\nlocks", COLUMN_NUMBER, 0, SHOW_ALL, 4,
     "schedules in which an order waits for a lock that nobody will release"},
    {"switches.min", "switches\nmin", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "from one order to another: the fewest of a schedule"},
    {"switches.median", "me-\ndian", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "the same, of the schedule in the middle"},
    {"switches.max", "max", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "the same, the most of a schedule"},
    {"larger_orders.schedules", "sched-\nules", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "schedules of the second search: two orders of two units, a stock of three, and a wait that may time out"},
    {"larger_orders.oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "schedules of the second search that oversold"},
    {"false_refusals", "false refusals", COLUMN_NUMBER, 0, SHOW_CSV | SHOW_PAGE, 0,
     "schedules in which an order was refused as sold out although enough units were left"},
    {"leaked_locks", "leaked locks", COLUMN_NUMBER, 0, SHOW_CSV | SHOW_PAGE, 0,
     "schedules in which an order ended without releasing its lock"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "what this says about the promise"},
    {"broken_by", "broken by", COLUMN_TEXT, 0, SHOW_CSV | SHOW_PAGE, 0,
     "what broke the guarantee, and in how many schedules"},
    {"witness.replay", "witness", COLUMN_TEXT, 0, SHOW_CSV | SHOW_PAGE, 0,
     "the plainest schedule that went wrong: for --replay"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why it could not be explored"},
};

static const struct column BENCH_COLUMNS[] = {
    {"name", "ratio", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "what is held against what"},
    {"value", "value", COLUMN_NUMBER, 3, SHOW_ALL, 0,
     "the median"},
    {"min", "min", COLUMN_NUMBER, 3, SHOW_ALL, 2,
     "the smallest of the runs"},
    {"max", "max", COLUMN_NUMBER, 3, SHOW_ALL, 3,
     "the largest of the runs"},
    {"goal", "goal", COLUMN_NUMBER, 2, SHOW_ALL, 0,
     "what it should reach, if there is a goal"},
    {"reached", "goal\nreached", COLUMN_MARK, 0, SHOW_ALL, 0,
     "whether the median reaches it"},
    {"better", "better", COLUMN_TEXT, 0, SHOW_ALL, 5,
     "whether higher or lower is better"},
    {"numerator_per_s", "measured\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "what was measured, a second"},
    {"denominator_per_s", "against\n/s", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "what it is held against, a second"},
    {"with", "with, against", COLUMN_TEXT, 0, SHOW_ALL, 4,
     "the counts at which each side did best, and what was held against; or, of a hand-over, what it is made of"},
    {"hand_over_ms", "hand-over ms", COLUMN_NUMBER, 3, SHOW_CSV, 0,
     "from the start of a lock's release to the return of the next holder's acquire"},
    {"cycle_ms", "cycle ms", COLUMN_NUMBER, 3, SHOW_CSV, 0,
     "one acquisition and its release, where nobody else wants the lock"},
    {"wake_ups_per_release", "wake-ups", COLUMN_NUMBER, 1, SHOW_CSV, 0,
     "of waiters, for each release"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why it could not be measured"},
};

static const struct column DIFF_COLUMNS[] = {
    {"cell", "cell", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "a column of the strategy table"},
    {"a", "$a", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "the first strategy"},
    {"b", "$b", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "the second strategy"},
};
/* clang-format on */

/* ---- the kinds of results ------------------------------------------------------------------------------ */

static void title_compare(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    char duration[32];
    size_t used = 0;
    ret_title[0] = 0;
    if (!settings)
        return;
    if (result_number(settings, "requests") > 0)
        used += (size_t)snprintf(ret_title, size,
                                 "%" PRId64 " orders of %" PRId64 " against a stock of %" PRId64,
                                 result_number(settings, "requests"), result_number(settings, "quantity"),
                                 result_number(settings, "stock"));
    if (result_number(settings, "duration_ms") > 0)
        used += (size_t)snprintf(ret_title + used, size - used, "%s %s of ample stock", used ? ", then" : "",
                                 duration_text(result_number(settings, "duration_ms"), duration));
    int64_t connections = result_number(settings, "connections"),
            instances = result_number(settings, "instances");
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

static void title_explore(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    const char *quantities = json_string_value(json_object_get(settings, "quantities"));
    size_t used = 0;
    if (result_number(settings, "sample") > 0)
        used = (size_t)snprintf(ret_title, size,
                                "%" PRId64 " schedules, chosen at random from seed %" PRId64 ",",
                                result_number(settings, "sample"), result_number(settings, "seed"));
    else
        used = (size_t)snprintf(ret_title, size, "Every schedule");
    used += (size_t)snprintf(
        ret_title + used, size - used, " of %" PRId64 " orders of %s against a stock of %" PRId64,
        result_number(settings, "actors"), quantities ? quantities : "?", result_number(settings, "stock"));
    if (json_is_true(json_object_get(settings, "larger_orders")) && used < size)
        snprintf(ret_title + used, size - used, "; then of 2 orders of 2 against a stock of 3");
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
    {"explore", "rows", EXPLORE_COLUMNS, sizeof EXPLORE_COLUMNS / sizeof EXPLORE_COLUMNS[0], title_explore,
     notes_of_explore, false},
    {"rush", "rows", rush_columns, RUSH_COLUMNS, title_rush, notes_of_rush, false},
    {"faults", "rows", fault_columns, FAULT_COLUMNS, title_faults, notes_of_faults, false},
    {"soak", "rows", soak_columns, SOAK_COLUMNS, title_soak, notes_of_soak, false},
    {"bench", "ratios", BENCH_COLUMNS, sizeof BENCH_COLUMNS / sizeof BENCH_COLUMNS[0], title_bench,
     notes_of_bench, false},
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
        [VERDICT_OK] = "✓",      [VERDICT_OVERSOLD_AS_EXPECTED] = "✗", [VERDICT_FLAWED] = "~",
        [VERDICT_UNKNOWN] = "?", [VERDICT_UNAVAILABLE] = NOTHING,      [VERDICT_NOT_CAUGHT] = "!",
        [VERDICT_MIXED] = "!",   [VERDICT_NOTHING_SHOWN] = "!",        [VERDICT_BROKEN] = "!",
        [VERDICT_CAUGHT] = "✗",
    };
    enum verdict verdict;
    size_t used = (size_t)snprintf(buffer, CELL_MAX, "%s %.100s",
                                   verdict_parse(name, &verdict) ? MARKS[verdict] : "?", name);
    if (json_is_true(json_object_get(row, "slowed_down")))
        snprintf(buffer + used, CELL_MAX - used, " (think %" PRId64 " ms)", result_number(row, "think_ms"));
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
