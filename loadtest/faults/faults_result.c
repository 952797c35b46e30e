/* How a result of `loadtest faults` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/faults/row.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"fault", "fault", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "the injected fault"},
    {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "how the service protects the stock"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "when the strategy prevents oversells"},
    {"judged_by", "judged by", COLUMN_TEXT, 0, SHOW_ALL, 7,
     "what must hold: I1 no oversell, I2 no acknowledged order lost, I3 stock correct, I4 locks released, I5 orders "
     "succeed again, I6 every answer typed and in time, I7 one order per Idempotency-Key, I8 no unit leaves the stock without an order"},
    {"expected", "expected", COLUMN_TEXT, 0, SHOW_ALL, 6,
     "kept: all of \"judged by\" must hold; caught: the fault must show the flaw"},
    {"cycles", "cycles", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "how often the fault was injected"},
    {"critical", "met", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "orders that the fault met in their critical moment: between their read and their answer, or accepted and not yet written"},
    {"acknowledged", "acknow-\nledged", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "orders that the service acknowledged"},
    {"unclear", "unclear", COLUMN_NUMBER, 0, SHOW_ALL, 8,
     "orders whose client got no answer that says whether they were created"},
    {"lost", "lost", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "acknowledged orders that are not in the database"},
    {"duplicated", "dupli-\ncated", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "Idempotency-Keys with two orders"},
    {"denied", "denied", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "orders in the database that the service rejected, or that no client sent"},
    {"wrong_answers", "wrong\nanswers", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "answers without a problem type, or after the time limit"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "units sold beyond the stock"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "sold − (stock − left), of the cycle with the largest difference"},
    {"gone", "gone", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "units that left the stock without an order, in all cycles"},
    {"refused", "refused", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "orders whose last answer allows a retry"},
    {"turned_away", "turned\naway", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "orders answered with \"sold out\" while units were left"},
    {"disordered", "dis-\nordered", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "orders that no serial execution explains: two read the same stock, or one read less than a later one"},
    {"sections", "sections", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "critical sections under a lock whose traces were compared"},
    {"overlaps", "over-\nlaps", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "critical sections that began before another ended: the lock had two holders"},
    {"seen_in", "seen\nin", COLUMN_NUMBER, 0, SHOW_ALL, 4,
     "cycles with an oversell, an incorrect stock, or a lost order"},
    {"struck", "struck", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "cycles in which no order succeeded for half a lease after the fault: in kill, a lock holder had died"},
    {"longest_outage_ms", "longest\noutage ms", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "longest time after the fault without a successful order"},
    {"longest_recovery_ms", "recovery\nms", COLUMN_NUMBER, 0, SHOW_ALL, 3,
     "longest time from the end of the fault (or from the fault, if other servers continue) to the next successful order"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "whether the strategy kept its guarantee"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why the strategy was not run"},
};
/* clang-format on */

static void print_title(const json_t *document, FILE *out)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t seed = (int64_t)json_integer_value(json_object_get(settings, "seed"));
    fprintf(out,
            "Faults injected into two services under load, seed %" PRId64
            "; the history of the clients compared with the database",
            seed);
}

/* Names the rows that say nothing because the fault met none of their orders. */
static void add_unmet(const json_t *rows, struct notes *notes)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *met = json_object_get(row, "critical");
        if (result_verdict(row) == VERDICT_NOTHING_SHOWN && met && json_integer_value(met) == 0)
            notes_add(notes, NOTE_WARNING,
                      "%s, %s: nothing shown: in %" PRId64
                      " cycles the fault met no order between its read and its answer. Use more --cycles.",
                      result_text(row, "fault"), result_text(row, "strategy"), result_number(row, "cycles"));
    }
}

/* What share of the acknowledged updates a lock lost, in the words of the test that this one is after. */
static void add_shares(const json_t *rows, struct notes *notes)
{
    size_t i, tested = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        int64_t told = result_number(row, "acknowledged"), lost = result_number(row, "lost");
        if (strcmp(result_text(row, "fault"), "lock-test") != 0 || told == 0)
            continue;
        tested++;
        notes_add(notes, NOTE_ADVICE,
                  "lock-test, %s: %" PRId64 " of %" PRId64 " acknowledged updates lost, %.0f %%.",
                  result_text(row, "strategy"), lost, told, 100.0 * (double)lost / (double)told);
    }
    if (tested > 0)
        notes_add(notes, NOTE_ADVICE,
                  "For comparison: Jepsen's lock test of etcd 3.4.3 (2020) lost about 18 %%.");
}

/* Why a fault could not be made is the same for most of its rows: said once. */
static void add_unavailable(const json_t *rows, struct notes *notes)
{
    size_t i;
    json_t *row;
    const char *fault = "", *reason = "";
    json_array_foreach(rows, i, row) {
        if (result_verdict(row) != VERDICT_UNAVAILABLE || (strcmp(result_text(row, "fault"), fault) == 0 &&
                                                           strcmp(result_text(row, "reason"), reason) == 0))
            continue;
        fault = result_text(row, "fault");
        reason = result_text(row, "reason");
        notes_add(notes, NOTE_WARNING, "%s, %s: not available: %s", fault, result_text(row, "strategy"),
                  reason);
    }
}

static void print_headline(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *broken = NULL;
    size_t i, caught = 0;
    int64_t cycles = 0, acknowledged = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        broken = !broken && verdict_fails(result_verdict(row)) ? row : broken;
        caught += result_verdict(row) == VERDICT_CAUGHT;
        cycles += result_number(row, "cycles");
        acknowledged += result_number(row, "acknowledged");
    }
    char orders[NUMBER_MAX], injected[NUMBER_MAX], flaws[NUMBER_MAX + 60] = "";
    if (caught > 0)
        snprintf(flaws, sizeof flaws, "; %zu %s", caught,
                 caught == 1 ? "flaw was shown" : "flaws were shown");
    if (broken)
        fprintf(out, "%s under the fault %s is not as expected (%s).", result_text(broken, "strategy"),
                result_text(broken, "fault"), result_text(broken, "verdict"));
    else if (cycles > 0)
        fprintf(out, "Every guarantee held in %s faults and %s acknowledged orders%s.",
                number_text((double)cycles, 0, injected), number_text((double)acknowledged, 0, orders),
                flaws);
}

static void add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i;
    json_t *row, *fault;
    json_array_foreach(json_object_get(document, "faults"), i, fault) {
        notes_add(notes, NOTE_ADVICE, "%s: %s.", result_text(fault, "name"), result_text(fault, "does"));
    }
    json_array_foreach(rows, i, row) {
        if (*result_text(row, "oddity"))
            notes_add(notes, NOTE_WARNING, "%s, %s: %s", result_text(row, "fault"),
                      result_text(row, "strategy"), result_text(row, "oddity"));
    }
    add_unmet(rows, notes);
    add_shares(rows, notes);
    add_unavailable(rows, notes);
    notes_add_verdicts(notes, rows, "row", "rows");
}

const struct result_kind faults_result = {
    .name = "faults",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    KEY_COLUMNS("fault", "strategy", "verdict", "lost", "oversold", "longest_outage_ms",
                "longest_recovery_ms"),
    .title = print_title,
    .headline = print_headline,
    .notes = add_notes,
    .charts = faults_charts,
};
