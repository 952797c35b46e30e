/* Writes the notes below a table of sales: two orders that cannot both be right, what each verdict means, and what to do. */
#include "loadtest/load/sale_notes.h"

#include "loadtest/report/notes.h"
#include "loadtest/report/result.h"
#include "loadtest/stats/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what a row is ------------------------------------------------------------------------------------- */

static bool has_errors(const json_t *row)
{
    return result_number(row, "errors") > 0;
}

static bool sold_out_early(const json_t *row)
{
    return json_is_true(json_object_get(row, "sold_out_early"));
}

static bool lost_answers(const json_t *row)
{
    return json_is_false(json_object_get(json_object_get(row, "kept"), "answers"));
}

static bool is_one_process(const json_t *row)
{
    return strcmp(result_text(row, "guarantee"), "one-process") == 0;
}

static bool is_not_one_process(const json_t *row)
{
    return !is_one_process(row);
}

static bool is_shown(const json_t *row)
{
    return !is_one_process(row) && json_is_object(json_object_get(row, "shown"));
}

static bool is_not_shown(const json_t *row)
{
    return !is_one_process(row) && !json_is_object(json_object_get(row, "shown"));
}

/* Did the explorer search for the flaw, in vain? Its finding says so. */
static bool was_searched(const json_t *row)
{
    return *result_text(row, "finding");
}

static bool was_not_searched(const json_t *row)
{
    return !was_searched(row);
}

/* For the rows that match, named in front. */
static const struct rule {
    enum verdict verdict;               /* VERDICT_COUNT: any */
    bool (*matches)(const json_t *row); /* in addition to the verdict; NULL: any row */
    enum note_kind kind;
    const char *text;
} RULES[] = {
    {VERDICT_OVERSOLD_AS_EXPECTED, is_not_one_process, NOTE_ADVICE,
     "these oversell, as expected. Let the database check and write in one step, as atomic-decrement "
     "does, or lock the row from the read to the commit, as select-for-update does."},
    {VERDICT_OVERSOLD_AS_EXPECTED, is_one_process, NOTE_ADVICE,
     "correct within one process, but each process has its own mutex. Keep the lock where the stock is: "
     "in the database."},
    {VERDICT_FLAWED, is_one_process, NOTE_ADVICE,
     "no oversell within one process. To see a second process sell the same stock, use --instances 2."},
    {VERDICT_FLAWED, is_shown, NOTE_ADVICE,
     "no oversell under load alone. These fail when a lease expires, a session or connection ends, or a "
     "holder crashes: see the column \"breaks when\"."},
    {VERDICT_FLAWED, is_not_shown, NOTE_ADVICE,
     "no oversell under load alone. These fail when a lease expires, a session or connection ends, or a "
     "holder crashes. To see it, use loadtest explore with --faults expire or --faults crash."},
    {VERDICT_COUNT, has_errors, NOTE_WARNING,
     "some orders failed. See the reason in the service's log, or use fewer --connections."},
    {VERDICT_COUNT, sold_out_early, NOTE_ADVICE,
     "sold out before the throughput phase ended, so there is no rate. Use a shorter --duration, or fewer "
     "units per order."},
    {VERDICT_COUNT, lost_answers, NOTE_WARNING,
     "the orders in the database are not those that the service acknowledged. If no other program orders "
     "this product, this is a bug."},
    {VERDICT_MIXED, NULL, NOTE_WARNING,
     "orders of other strategies changed the product during the run, so there is no result. Use a separate "
     "product (--product)."},
    {VERDICT_NOT_CAUGHT, was_not_searched, NOTE_WARNING,
     "expected to oversell under this load, but did not. Try more --connections or a longer --think-ms."},
    {VERDICT_NOT_CAUGHT, was_searched, NOTE_WARNING,
     "the strategy table declares a flaw, but no schedule showed it. This is a bug: keep the result "
     "(--export-json) and report it."},
    {VERDICT_BROKEN, NULL, NOTE_WARNING,
     "broke its guarantee. This is a bug: keep the result (--export-json) and report it."},
};

/* ---- the notes ----------------------------------------------------------------------------------------- */

static void add_witness(const json_t *row, struct notes *notes)
{
    int64_t oversold = result_number(row, "oversold"), drift = result_number(row, "drift");
    const char *witness = result_text(row, "witness");
    if (oversold == 0 && drift == 0 && !*witness)
        return;
    char damage[160];
    if (oversold > 0)
        snprintf(damage, sizeof damage, "sold %" PRId64 " of %" PRId64, result_number(row, "sold"),
                 result_number(row, "stock"));
    else
        snprintf(damage, sizeof damage, "the stock is off by %" PRId64, drift);
    notes_add(notes, NOTE_WITNESS, "%s: %s%s%s.", result_text(row, "strategy"), damage, *witness ? "; " : "",
              witness);
}

/* Adds the finding of a row that is broken, or whose flaw no schedule showed. */
static void add_finding(const json_t *row, struct notes *notes)
{
    const char *finding = result_text(row, "finding");
    if (*finding)
        notes_add(notes, NOTE_WARNING, "%s: %s.", result_text(row, "strategy"), finding);
}

/* A row that had to be given another load than the rest is not ranked with them, and says why. */
static void add_slowdown(const json_t *row, struct notes *notes)
{
    if (json_is_true(json_object_get(row, "slowed_down")))
        notes_add(notes, NOTE_ADVICE,
                  "%s: no oversell at full speed, so the sell-out was repeated with a pause of %" PRId64
                  " ms between read and write.",
                  result_text(row, "strategy"), result_number(row, "think_ms"));
}

static bool matches(const json_t *row, const struct rule *rule)
{
    return (rule->verdict == VERDICT_COUNT || rule->verdict == result_verdict(row)) &&
           (!rule->matches || rule->matches(row));
}

/* Names the rows that match, then says what the rule has to say. */
static void apply_rule(const json_t *rows, const struct rule *rule, struct notes *notes)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        if (!matches(row, rule))
            continue;
        if (count++ == 0)
            notes_add(notes, rule->kind, "%s", result_text(row, "strategy"));
        else
            notes_append(notes, ", %s", result_text(row, "strategy"));
    }
    if (count > 0)
        notes_append(notes, ": %s", rule->text);
}

void sale_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        add_witness(row, notes);
    }
    json_array_foreach(rows, i, row) {
        add_slowdown(row, notes);
        add_finding(row, notes);
    }
    for (i = 0; i < sizeof RULES / sizeof RULES[0]; i++)
        apply_rule(rows, &RULES[i], notes);
    notes_add_unavailable(notes, rows);
    notes_add_verdicts(notes, rows, "strategy", "strategies");
}
