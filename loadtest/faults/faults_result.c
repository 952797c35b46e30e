/* How a result of `loadtest faults` is printed: its columns, its title, and the notes below the table. */
#include "loadtest/faults/row.h"

#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct column COLUMNS[] = {
    {"fault", "fault", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "what was broken"},
    {"strategy", "strategy", COLUMN_TEXT, 0, SHOW_ALL, 0,
     "how the service protects the stock"},
    {"guarantee", "guarantee", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "what the strategy promises"},
    {"judged_by", "judged by", COLUMN_TEXT, 0, SHOW_ALL, 7,
     "what must hold: I1 not oversold, I2 no acknowledged order lost, I3 books balance, I4 locks are freed, I5 orders flow "
     "again, I6 every answer typed and in time, I7 once for each key"},
    {"expected", "expected", COLUMN_TEXT, 0, SHOW_ALL, 6,
     "whether all of it is kept, or the fault must be seen to break what the strategy does not promise"},
    {"cycles", "cycles", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "how often it was broken"},
    {"acknowledged", "acknow-\nledged", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "orders that clients were told of"},
    {"unclear", "unclear", COLUMN_NUMBER, 0, SHOW_ALL, 8,
     "orders whose clients never learned what became of them"},
    {"lost", "lost", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "orders that clients were told of and that are not there"},
    {"duplicated", "dupli-\ncated", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "Idempotency-Keys with two orders"},
    {"denied", "denied", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "orders that are there although their clients were told that nothing was sold, or that nobody wanted"},
    {"wrong_answers", "wrong\nanswers", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "answers without a type, or that took longer than any may"},
    {"oversold", "over-\nsold", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "units sold beyond those there were"},
    {"drift", "drift", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "sold − (stock − left), of the cycle where it is worst"},
    {"refused", "refused", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "orders whose last answer was: try again later"},
    {"turned_away", "turned\naway", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "clients that were told that all is sold out while units were left"},
    {"disordered", "dis-\nordered", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "orders that no sequence of the sales explains: two that saw the same stock, or one that saw less than a later one"},
    {"sections", "sections", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "critical sections under a lock whose traces were looked at"},
    {"overlaps", "over-\nlaps", COLUMN_NUMBER, 0, SHOW_ALL, 5,
     "those that began while another was not over: the lock had two holders"},
    {"seen_in", "seen\nin", COLUMN_NUMBER, 0, SHOW_ALL, 4,
     "cycles in which units were oversold, the books did not balance, or orders were lost"},
    {"struck", "struck", COLUMN_NUMBER, 0, SHOW_CSV, 0,
     "cycles after whose fault nobody was served for half a lease: in kill, since a holder had died"},
    {"longest_outage_ms", "longest\noutage ms", COLUMN_NUMBER, 0, SHOW_ALL, 0,
     "the longest time after the fault in which nobody was served"},
    {"longest_recovery_ms", "recovery\nms", COLUMN_NUMBER, 0, SHOW_ALL, 3,
     "the longest time until somebody was served, from when what was broken was back (or from the fault, where others go on)"},
    {"verdict", "verdict", COLUMN_VERDICT, 0, SHOW_ALL, 0,
     "what this says about the promise"},
    {"reason", "reason", COLUMN_TEXT, 0, SHOW_CSV, 0,
     "why it could not be tried"},
};
/* clang-format on */

static void print_title(const json_t *document, char *ret_title, size_t size)
{
    const json_t *settings = json_object_get(document, "settings");
    int64_t seed = (int64_t)json_integer_value(json_object_get(settings, "seed"));
    snprintf(ret_title, size,
             "Things broken under orders, by two services, from seed %" PRId64
             "; what clients were told, held against the database",
             seed);
}

/* What share of the acknowledged updates a lock lost, in the words of the test that this one is after. */
static bool add_shares(const json_t *rows, struct notes *notes)
{
    size_t i, tested = 0;
    json_t *row;
    json_array_foreach(rows, i, row) {
        int64_t told = result_number(row, "acknowledged"), lost = result_number(row, "lost");
        if (strcmp(result_text(row, "fault"), "lock-test") != 0 || told == 0)
            continue;
        tested++;
        if (!notes_add(notes, NOTE_ADVICE,
                       "lock-test, %s: %" PRId64 " of %" PRId64 " acknowledged updates lost, %.0f %%.",
                       result_text(row, "strategy"), lost, told, 100.0 * (double)lost / (double)told))
            return false;
    }
    return tested == 0 ||
           notes_add(notes, NOTE_ADVICE,
                     "Jepsen's test of etcd 3.4.3 (2020), after which lock-test is made, lost about 18 %%.");
}

/* Why a fault could not be made is the same for most of its rows: said once. */
static bool add_unavailable(const json_t *rows, struct notes *notes)
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
        if (!notes_add(notes, NOTE_WARNING, "%s, %s: not available: %s", fault, result_text(row, "strategy"),
                       reason))
            return false;
    }
    return true;
}

static bool add_notes(const json_t *document, struct notes *notes)
{
    const json_t *rows = json_object_get(document, "rows");
    size_t i;
    json_t *row, *fault;
    json_array_foreach(json_object_get(document, "faults"), i, fault) {
        if (!notes_add(notes, NOTE_ADVICE, "%s: %s.", result_text(fault, "name"), result_text(fault, "does")))
            return false;
    }
    json_array_foreach(rows, i, row) {
        if (*result_text(row, "oddity") &&
            !notes_add(notes, NOTE_WARNING, "%s, %s: %s", result_text(row, "fault"),
                       result_text(row, "strategy"), result_text(row, "oddity")))
            return false;
    }
    return add_shares(rows, notes) && add_unavailable(rows, notes) &&
           notes_add_verdicts(notes, rows, "row", "rows");
}

const struct result_kind faults_result = {
    .name = "faults",
    .rows = "rows",
    COLUMN_LIST(COLUMNS),
    .title = print_title,
    .notes = add_notes,
};
