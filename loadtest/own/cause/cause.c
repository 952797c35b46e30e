/* Says why a schedule of requests went wrong. */
#include "loadtest/own/cause/cause.h"

#include "base/recorder.h"
#include "loadtest/own/cause/request_mistake.h"
#include "loadtest/own/cause/stale_read.h"

#include <stdio.h>
#include <string.h>

enum { QUOTED = 120 };

static char name_of(const struct run_record *record, size_t step)
{
    return (char)('A' + (char)record->steps[step].actor);
}

/* The fault that the record has, and what it shows. False: it has none, or one that explains nothing of this verdict. */
static bool fault_explains(const struct run_record *record, enum verdict verdict,
                           char ret_text[static CAUSE_TEXT])
{
    size_t at = 0;
    while (at < record->count &&
           (record->steps[at].kind == TRANSITION_STEP || record->steps[at].kind == TRANSITION_TIMEOUT))
        at++;
    if (at == record->count)
        return false;
    char name = name_of(record, at);
    bool is_row = strstr(record->steps[at].text, "leases end") != NULL;
    unsigned sold = 0;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        sold += record->answers[i].status > 0 && record->answers[i].meaning == SHOP_SOLD;
    switch (record->steps[at].kind) {
    case TRANSITION_EXPIRE:
        snprintf(
            ret_text, CAUSE_TEXT,
            "The %s that %c held %s expired (%zu) before %c had finished, so another request could take the lock%s. "
            "A lock that expires cannot protect the stock alone: let the row of the stock decide too, with a fencing token or "
            "a condition in the UPDATE.",
            is_row ? "lease" : "key", name, is_row ? "as a row" : "in Redis", at + 1, name,
            sold > 1 ? ", and both sold" : "");
        return verdict != VERDICT_STUCK;
    case TRANSITION_CRASH:
        snprintf(
            ret_text, CAUSE_TEXT,
            "%c crashed (%zu) after it had done only a part of the order. Change the stock and insert the order in "
            "one transaction, and let each lock expire.",
            name, at + 1);
        return true;
    case TRANSITION_CUT:
        snprintf(
            ret_text, CAUSE_TEXT,
            "The order of %c was committed (%zu), but the connection was lost before the answer. Before the service tries again or "
            "refuses, it must look for the order, for instance by an idempotency key.",
            name, at + 1);
        return true;
    default: return false;
    }
}

/* The requests ran one after the other. */
static bool is_serial(const struct run_record *record)
{
    unsigned seen = 0;
    for (size_t i = 0; i < record->count; i++) {
        unsigned actor = 1U << record->steps[i].actor;
        if (record->steps[i].kind != TRANSITION_STEP ||
            (seen & actor && i > 0 && record->steps[i - 1].actor != record->steps[i].actor))
            return false;
        seen |= actor;
    }
    return (seen & (seen - 1)) != 0;
}

/* The step at which the gate held the COMMIT of a statement outside a transaction, while another request acted. The number of steps: none. */
static size_t find_overtaken(const struct run_record *record, size_t *ret_statement)
{
    for (size_t i = 1; i < record->count; i++) {
        size_t before = i;
        if (strncmp(record->steps[i].text, "COMMIT (of", 10) != 0)
            continue;
        while (before-- > 0 && record->steps[before].actor != record->steps[i].actor)
            continue;
        if (before + 1 < i) {
            *ret_statement = before;
            return i;
        }
    }
    return record->count;
}

static bool say_overtaken(const struct run_record *record, char ret_text[static CAUSE_TEXT])
{
    size_t statement = 0, commit = find_overtaken(record, &statement);
    if (commit == record->count)
        return false;
    snprintf(
        ret_text, CAUSE_TEXT,
        "%c acted before %c had committed (%zu) what its statement %zu did, and read the state before it. A function, a trigger or "
        "INSERT … SELECT is not atomic at READ COMMITTED. Let it lock a row that all requests share before it reads, or change the stock "
        "with a condition in the UPDATE.",
        name_of(record, statement + 1), name_of(record, commit), commit + 1, statement + 1);
    return true;
}

/* ---- what is not known ---------------------------------------------------------------------------------------------------------------- */

/* The statement NUMBER of request ACTOR, from 0. None: the number of steps. */
static size_t statement_of(const struct run_record *record, unsigned actor, size_t number)
{
    for (size_t i = 0; i < record->count; i++)
        if (record->steps[i].actor == actor && number-- == 0)
            return i;
    return record->count;
}

/* The first statements of A and the request OTHER that are not the same, or have other answers. False: there are none. */
static bool find_difference(const struct run_record *record, unsigned other, size_t *ret_one, size_t *ret_two)
{
    for (size_t i = 0; i < record->count; i++) {
        const size_t one = statement_of(record, 0, i), two = statement_of(record, other, i);
        *ret_one = one;
        *ret_two = two;
        if (one == record->count || two == record->count)
            return false;
        if (!sql_same_words(record->steps[one].text, record->steps[two].text) ||
            strcmp(record->steps[one].answer, record->steps[two].answer) != 0)
            return true;
    }
    return false;
}

/* "B sent 'SELECT …' (3), which returned '1'" */
static void quote(const struct run_record *record, size_t step, char *ret_text, size_t size)
{
    char text[QUOTED], answer[QUOTED];
    recorder_shorten(record->steps[step].text, text, sizeof text);
    recorder_shorten(record->steps[step].answer, answer, sizeof answer);
    snprintf(ret_text, size, "%c sent '%s' (statement %zu)%s%s%s", name_of(record, step), text, step + 1,
             *answer ? " and got '" : "", answer, *answer ? "'" : "");
}

/* A statement of one request can matter for another: one reads or writes what the other writes. */
static bool statements_meet(const struct run_shapes *run)
{
    for (size_t i = 0; i < run->count; i++)
        for (size_t u = 0; u < run->shape[i].use_count; u++)
            for (size_t j = 0; j < run->count; j++)
                if (!run_same_request(run, i, j) &&
                    shape_use(&run->shape[j], run->shape[i].uses[u].table, ACCESS_UPDATE, ACCESS_INSERT) &&
                    run->shape[i].uses[u].access <= ACCESS_LOCK)
                    return true;
    return false;
}

static bool all_known(const struct run_shapes *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->shape[i].unknown || run->record->steps[i].server == RUNS_REDIS)
            return false;
    return true;
}

static void say_unknown(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    static const char NOT_KNOWN[] = "The command did not recognize the cause in the statements.";
    const struct run_record *record = run->record;
    char one[2 * QUOTED + 80], two[2 * QUOTED + 80];
    size_t first = 0, second = 0;
    bool differs = false;
    for (unsigned other = 1; other < ACTORS_MAX && !differs; other++)
        differs = find_difference(record, other, &first, &second);
    if (all_known(run) && !statements_meet(run)) {
        snprintf(
            ret_text, CAUSE_TEXT,
            "%s No request reads a table that another one changes, so the service bases its decision on something else, such as its "
            "memory, a cache or another server.",
            NOT_KNOWN);
    } else if (differs) {
        quote(record, first, one, sizeof one);
        quote(record, second, two, sizeof two);
        snprintf(ret_text, CAUSE_TEXT, "%s These are the first two that differ: %s. %s.", NOT_KNOWN, one,
                 two);
    } else {
        snprintf(
            ret_text, CAUSE_TEXT,
            "%s As far as the requests have statements in common, they sent the same ones and got the same answers. Compare the reads in the columns "
            "with the changes of the other requests.",
            NOT_KNOWN);
    }
}

/* ---- the cause -------------------------------------------------------------------------------------------------------------------------- */

/* What goes wrong even if the requests run one after the other. */
static void say_serial(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    static const char ALWAYS[] =
        "This happens even if the requests run one after the other, so it needs no concurrency. ";
    char cause[CAUSE_TEXT];
    if (!say_ignored_zero(run, cause) && !say_refused_write(run, cause) && !say_two_lines(run, cause))
        say_unknown(run, cause);
    snprintf(ret_text, CAUSE_TEXT, "%s%.*s", ALWAYS, (int)(CAUSE_TEXT - sizeof ALWAYS), cause);
}

/* Names the requests that wait for each other at the end, as far as PostgreSQL and Redis say it. */
static void say_stuck(const struct run_record *record, char ret_text[static CAUSE_TEXT])
{
    size_t length = (size_t)snprintf(ret_text, CAUSE_TEXT, "No request could continue");
    bool inside = false;
    if (*record->left) {
        const char name[] = {(char)('A' + record->left_by), '\0'};
        snprintf(
            ret_text, CAUSE_TEXT,
            "%s has its answer, but its connection keeps %s, for which the next requests wait. The last statement there was '%.150s'. %s "
            "on every path, before the answer.",
            record->left_by < ACTORS_MAX ? name : "A request",
            record->left_transaction ? "an open transaction and its locks" : "an advisory lock", record->left,
            record->left_transaction ? "End the transaction" : "Release the lock");
        return;
    }
    for (unsigned actor = 0; actor < ACTORS_MAX; actor++) {
        size_t last = record->count;
        for (size_t i = 0; i < record->count; i++)
            last = record->steps[i].actor == actor ? i : last;
        if (last < record->count && record->steps[last].after == REQUEST_INSIDE && !*record->polled) {
            inside = true;
            length += (size_t)snprintf(ret_text + length, CAUSE_TEXT - length,
                                       ", %c waits in the program after (%zu)", 'A' + (char)actor, last + 1);
        }
        if (last == record->count || record->steps[last].after != REQUEST_BLOCKED)
            continue;
        for (unsigned other = 0; other < ACTORS_MAX; other++)
            if (record->steps[last].blockers & 1U << other)
                length += (size_t)snprintf(ret_text + length, CAUSE_TEXT - length, ", %c waits for %c (%zu)",
                                           'A' + (char)actor, 'A' + (char)other, last + 1);
    }
    if (*record->polled && !strchr(ret_text, ','))
        snprintf(
            ret_text + length, CAUSE_TEXT - length,
            ": one repeats '%.150s' without success, and no other request can change that any more. Release each lock on "
            "every path, and give up after a few tries.",
            record->polled);
    else if (inside)
        snprintf(
            ret_text + length, CAUSE_TEXT - length,
            ". Another request has what it waits for: a lock of the program, or a connection of the pool if "
            "a request takes two. Let a request use one connection, and release each lock on every path.");
    else
        snprintf(ret_text + length, CAUSE_TEXT - length,
                 ". Take locks in the same sequence everywhere, and release each lock on every path.");
}

/* A request gave up its tries to take a lock, and sold, or was refused. */
static bool say_gave_up(const struct run_record *record, bool sold, char ret_text[static CAUSE_TEXT])
{
    size_t at = 0;
    while (at < record->count && (record->steps[at].kind != TRANSITION_TIMEOUT ||
                                  (record->answers[record->steps[at].actor].meaning == SHOP_SOLD) != sold))
        at++;
    if (at == record->count)
        return false;
    snprintf(
        ret_text, CAUSE_TEXT,
        sold
            ? "%c gave up waiting for a lock that another request had (%zu), and sold without it. Refuse the buyer when the lock "
              "cannot be taken."
            : "%c gave up waiting for a lock that another request had (%zu), and was refused as sold out although units were left. Try "
              "for longer, or answer with a status that is in no list of \"answers\", such as 503.",
        name_of(record, at), at + 1);
    return true;
}

/* Two requests have sold one unit, for example the same seat, which the second one has overwritten. */
static bool say_sold_twice(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    bool all_sold = true;
    for (size_t i = 0; i < run->count; i++)
        all_sold &= run_was_sold(run, i);
    return all_sold && !is_serial(run->record) && say_stale_read(run, ret_text);
}

static void say_answers_lost(const struct run_shapes *run, char ret_text[static CAUSE_TEXT])
{
    if (!say_sold_without_write(run, ret_text) && !say_refused_write(run, ret_text) &&
        !say_sold_twice(run, ret_text))
        snprintf(
            ret_text, CAUSE_TEXT,
            "The service acknowledged an order that does not exist, or refused a request whose order exists. The statements do not show "
            "why.");
}

/* Units were sold that did not exist, or orders and stock do not agree. */
static void say_wrong_sale(const struct run_record *record, const struct run_shapes *run,
                           char ret_text[static CAUSE_TEXT])
{
    if (say_gave_up(record, true, ret_text))
        return;
    if (is_serial(record))
        say_serial(run, ret_text);
    else if (!say_ignored_zero(run, ret_text) && !say_overtaken(record, ret_text) &&
             !say_stale_read(run, ret_text) && !say_refused_write(run, ret_text) &&
             !say_two_lines(run, ret_text))
        say_unknown(run, ret_text);
}

void cause_of(const struct run_record *record, enum verdict verdict, char ret_text[static CAUSE_TEXT])
{
    static struct run_shapes run; /* large */
    if (fault_explains(record, verdict, ret_text))
        return;
    run_shapes_of(record, &run);
    if (verdict == VERDICT_STUCK)
        say_stuck(record, ret_text);
    else if (verdict == VERDICT_ANSWERS_LOST)
        say_answers_lost(&run, ret_text);
    else if (verdict != VERDICT_TURNED_AWAY)
        say_wrong_sale(record, &run, ret_text);
    else if (!say_gave_up(record, false, ret_text))
        say_turned_away(&run, ret_text);
}
