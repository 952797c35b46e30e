/* How a result of `loadtest explore` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/explore/run/explore_result.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "how the service protects the stock"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_ALL, 9,
     "when the strategy prevents oversells: never, within one process, while the lease or session of its lock "
     "holds, or whatever happens to a lock, a lease or a process"},
    {"step_list", "steps of an order", COLUMN_TEXT, 0, SHOW_ALL, 10,
     "the steps of an order without competitors, at which the explorer can stop it; the share depends on this list"},
    {"schedules", "sched-\nules", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "interleavings of the steps"},
    {"coverage", "cover-\nage", COLUMN_NUMBER, 3, SHOW_ALL, 2,
     "share of the schedules that was searched; 1 is all"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "schedules that sold more than the stock"},
    {"share_percent", "share\n%", COLUMN_NUMBER, 1, SHOW_ALL, 1,
     "share of the schedules that oversold, if the search is complete"},
    {"sold_rightly", "sold\ncorrectly", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "schedules that sold all that the orders could buy, with a correct stock"},
    {"undersold", "under-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 6,
     "schedules that rejected an order although enough units were left"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 3,
     "schedules in which units left plus units sold are not the initial stock"},
    {"blocked", "waited", COLUMN_NUMBER, 0, SHOW_ALL, 7,
     "schedules in which an order waited for another"},
    {"deadlocks", "dead-\nlocks", COLUMN_NUMBER, 0, SHOW_ALL, 8,
     "schedules in which orders waited for each other"},
    {"stuck_locks", "stuck\nlocks", COLUMN_NUMBER, 0, SHOW_ALL, 4,
     "schedules in which an order waits for a lock that nobody will release"},
    {"switches.min", "switches\nmin", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "fewest switches from one order to another in a schedule"},
    {"switches.median", "me-\ndian", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "median of the switches"},
    {"switches.max", "max", COLUMN_NUMBER, 0, SHOW_ALL, 12,
     "most switches in a schedule"},
    {"larger_orders.schedules", "sched-\nules", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "schedules of the second search: two orders of two units, a stock of three, and a wait that may time out"},
    {"larger_orders.oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 1,
     "schedules of the second search that oversold"},
    {"enough.schedules", "enough for all", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "schedules of the third search: two orders of one unit, and a stock of two, so none may be refused as sold out"},
    {"three_orders.schedules", "three orders", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "schedules of the fourth search: three orders of one unit, and a stock of one; only of locks that declare to be fair"},
    {"false_refusals", "false refusals", COLUMN_NUMBER, 0, SHOW_CSV | SHOW_PAGE, 0,
     "schedules in which an order was refused as sold out although enough units were left"},
    {"leaked_locks", "leaked locks", COLUMN_NUMBER, 0, SHOW_CSV | SHOW_PAGE, 0,
     "schedules in which an order ended without releasing its lock"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "whether the strategy kept its guarantee"},
    {"broken_by", "broken by", COLUMN_TEXT, 0, SHOW_CSV | SHOW_PAGE, 0,
     "what broke the guarantee, and in how many schedules"},
    {"witness.replay", "witness", COLUMN_TEXT, 0, SHOW_CSV | SHOW_PAGE, 0,
     "the simplest counterexample, for --replay"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why the strategy was not explored"},
};
/* clang-format on */

/* The first row of a fair lock's search with three orders; NULL: results of earlier versions have none. */
static const json_t *three_orders_of(const json_t *document)
{
    const json_t *rows = json_object_get(document, "rows"), *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        const json_t *three = json_object_get(row, "three_orders");
        if (three)
            return three;
    }
    return NULL;
}

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    const char *quantities = json_string_value(json_object_get(settings, "quantities"));
    if (result_number(settings, "sample") > 0)
        fprintf(out, "%" PRId64 " random schedules (seed %" PRId64 ")", result_number(settings, "sample"),
                result_number(settings, "seed"));
    else
        fprintf(out, "Every schedule");
    fprintf(out, " of %" PRId64 " orders (quantity %s) with a stock of %" PRId64,
            result_number(settings, "actors"), quantities ? quantities : "?",
            result_number(settings, "stock"));
    if (json_is_true(json_object_get(settings, "larger_orders")))
        fprintf(out,
                "; then of 2 orders (quantity 2) with a stock of 3, and of 2 orders with enough for both");
    const json_t *three = three_orders_of(document);
    if (three)
        fprintf(out, "; of fair locks also of 3 orders%s",
                result_number(three, "bound") == 2   ? " with at most two preemptions"
                : result_number(three, "bound") == 1 ? " with at most one preemption"
                                                     : "");
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *worst = NULL;
    size_t i, counts[VERDICT_COUNT], kept = 0, safe = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (result_number(row, "oversold") > result_number(worst, "oversold"))
            worst = row;
        bool is_safe = result_verdict(row) == VERDICT_OK;
        safe += is_safe;
        kept += is_safe && result_number(row, "oversold") == 0;
    }
    if (result_verdicts(rows, counts) > 0 || !worst || kept < safe)
        return; /* the closing note says it */
    fprintf(out, "%s oversold in %" PRId64 " of %" PRId64 " schedules", result_text(worst, "strategy"),
            result_number(worst, "oversold"), result_number(worst, "schedules"));
    if (safe == 1)
        fprintf(out, "; 1 strategy never did");
    else if (safe > 1)
        fprintf(out, "; %zu strategies never did", safe);
    fprintf(out, ".");
}

/* Results that were stored before searches left schedules out have no "run". */
static int64_t of_all_searches(const json_t *row, const char *name)
{
    return result_number(row, name) + result_number(json_object_get(row, "larger_orders"), name) +
           result_number(json_object_get(row, "enough"), name) +
           result_number(json_object_get(row, "three_orders"), name);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i, counts[VERDICT_COUNT], failed = result_verdicts(rows, counts);
    json_t *row;
    int64_t schedules = 0, run = 0;
    json_array_foreach(rows, i, row) {
        schedules += of_all_searches(row, "schedules");
        run += of_all_searches(row, "run");
        if (*result_text(row, "broken_by"))
            notes_add(notes, NOTE_WARNING, "%s: %s", result_text(row, "strategy"),
                      result_text(row, "broken_by"));
        if (*result_text(row, "reason"))
            notes_add(notes, NOTE_WARNING, "%s: %s", result_text(row, "strategy"),
                      result_text(row, "reason"));
        const json_t *counterexample = json_object_get(row, "witness");
        if (json_is_object(counterexample))
            notes_add(notes, NOTE_WITNESS, "%s  (reproduced in %d of 10 runs)  %s",
                      result_text(counterexample, "replay"),
                      (int)json_integer_value(json_object_get(counterexample, "reproduced")),
                      result_text(counterexample, "explanation"));
    }
    if (json_object_get(document, "seconds"))
        notes_add(notes, NOTE_ADVICE, "%" PRId64 " schedules in %.1f s, with up to %d processes.",
                  run > 0 ? run : schedules, json_real_value(json_object_get(document, "seconds")),
                  (int)json_integer_value(json_object_get(document, "jobs")));
    if (run > 0 && run < schedules)
        notes_add(notes, NOTE_ADVICE,
                  "They stand for %" PRId64
                  " schedules. Each of the others differs from one of them only in the sequence of steps "
                  "that do not affect each other. --reduce none runs all.",
                  schedules);
    const json_t *missing = json_object_get(document, "missing");
    if (json_array_size(missing) > 0) {
        char names[600] = "";
        size_t used = 0;
        json_array_foreach(missing, i, row) {
            if (used < sizeof names)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                         json_string_value(row));
        }
        notes_add(notes, NOTE_WARNING, "%s; not explored: %s",
                  json_is_true(json_object_get(document, "interrupted")) ? "Interrupted" : "Not finished",
                  names);
    }
    size_t kept = counts[VERDICT_OK], shown = counts[VERDICT_OVERSOLD_AS_EXPECTED],
           open = counts[VERDICT_UNKNOWN] + counts[VERDICT_UNAVAILABLE] + json_array_size(missing);
    if (failed > 0)
        notes_add(notes, NOTE_CLOSING,
                  "%zu of %zu strategies broke their guarantee, or did not show their flaw.", failed,
                  json_array_size(rows));
    else if (open > 0)
        notes_add(
            notes, NOTE_CLOSING,
            "As expected: %zu kept their guarantee, %zu showed their flaw; %zu were not searched completely.",
            kept, shown, open);
    else
        notes_add(notes, NOTE_CLOSING, "All as expected: %zu kept their guarantee, %zu showed their flaw.",
                  kept, shown);
}

const struct result_kind explore_result = {
    .name = "explore",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("strategy", "verdict", "oversold", "schedules", "share_percent", "witness.replay"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = explore_charts,
};
