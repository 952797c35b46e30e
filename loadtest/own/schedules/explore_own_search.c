/* The search of `loadtest explore shop.json`: runs the schedules one after the other, judges each, and keeps the counterexamples. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/check_row.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "loadtest/search/run_search.h"
#include "loadtest/search/schedule_notation.h"

#include <inttypes.h>
#include <string.h>

enum {
    DIFFERS_MOST = 10,
    TAIL_LINES = 20,
    TRIES_SHARE = 2,  /* try_polls takes a half of the time at most */
    SCHEDULE_MS = 10, /* how long one takes, roughly */
    SHARED_ROUNDS =
        4, /* which request gets a connection that is given back is the program's choice, and chance */
};

/* ---- one schedule --------------------------------------------------------------------------------------------------- */

static unsigned steps_of(const struct counterexample *path, unsigned actor)
{
    unsigned steps = 0;
    for (size_t i = 0; i < path->length; i++)
        steps += path->transitions[i].actor == actor && path->transitions[i].kind == TRANSITION_STEP;
    return steps;
}

/* Keeps the transitions that have run if a request waits in the program from now on, at a point of its work that is not known yet. */
static void note_silence(struct explore_own *explore)
{
    if (explore->occupied > 0)
        return; /* it waits for a connection */
    unsigned inside = runner_inside(explore->runner), began = inside & ~explore->inside;
    explore->inside = inside;
    for (unsigned actor = 0; actor < ACTORS_MAX; actor++) {
        bool is_new = began & 1U << actor && explore->silent_count < SILENT_MAX;
        unsigned steps = steps_of(&explore->ran, actor);
        for (size_t i = 0; i < explore->silent_count; i++)
            is_new &= explore->silent[i].actor != actor || steps_of(&explore->silent[i].path, actor) != steps;
        if (is_new)
            explore->silent[explore->silent_count++] = (struct silent_request){.actor = actor,
                                                                               .path = explore->ran};
    }
}

static bool start(void *self)
{
    struct explore_own *explore = self;
    explore->inside = 0;
    if (!explore_own_start(explore, (size_t)explore->occupied, explore->frees, false))
        return false;
    note_silence(explore);
    return true;
}

static size_t enabled(void *self, struct transition *ret_transitions)
{
    return runner_enabled(((struct explore_own *)self)->runner, ret_transitions);
}

static bool apply(void *self, struct transition transition)
{
    struct explore_own *explore = self;
    if (!explore_own_apply(explore, transition))
        return false;
    note_silence(explore);
    return true;
}

static bool end(void *self)
{
    return runner_end(((struct explore_own *)self)->runner);
}

static uint64_t fingerprint(void *self)
{
    return runner_fingerprint(((struct explore_own *)self)->runner);
}

static void add(int64_t *sum, int64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = INT64_MAX;
}

/* Of the schedules that are like the one that ran the simplest is kept. */
static void keep(struct explore_own *explore, enum verdict verdict)
{
    struct counterexample next = explore->ran;
    const int64_t alike = search_alike(explore->now, NULL, 0, next.transitions);
    const bool is_new = explore->found[verdict] == 0;
    add(&explore->schedules, alike - 1);
    add(&explore->deadlocks, runner_record(explore->runner)->deadlock ? alike - 1 : 0);
    add(&explore->found[verdict], alike);
    explore->run++;
    next.badness = verdict;
    next.switches = next.effort = context_switches(next.transitions, next.length);
    next.occupied = (size_t)explore->occupied;
    next.frees = explore->frees;
    if (is_new || counterexample_is_before(&next, &explore->simplest[verdict]))
        explore->simplest[verdict] = next;
    if (verdict != VERDICT_CLEAN && counterexamples_keep(&explore->worst, &next) == 0)
        explore->first_worst = *runner_record(explore->runner);
}

/* ---- the search --------------------------------------------------------------------------------------------------------- */

/* One request acted between two statements of another. */
static bool takes_turns(const struct run_record *record)
{
    unsigned before = 0; /* actors that have acted before the current one */
    for (size_t i = 1; i < record->count; i++) {
        unsigned now = record->steps[i].actor;
        if (now == record->steps[i - 1].actor)
            continue;
        before |= 1U << record->steps[i - 1].actor;
        if (before & 1U << now)
            return true;
    }
    return false;
}

/* The path of the schedule that has just run is needed after search_run has moved on, so its end keeps it. */
static bool end_and_judge(void *self)
{
    struct explore_own *explore = self;
    if (!end(self) || interrupted()) /* which ends the requests as well */
        return false;
    const struct run_record *record = runner_record(explore->runner);
    explore->last = *record;
    enum verdict verdict = explore_own_count(explore, record);
    if (explore_own_is_doubtful(explore, record))
        return false;
    if (explore->occupied > 0 && record->escaped) { /* so the orders are not those of these requests alone */
        explore->schedules--;
        explore->pool_escaped = true;
    } else if (explore->occupied > 0 && (verdict == VERDICT_CLEAN || verdict == VERDICT_STUCK)) {
        explore->schedules--;
        explore->pool_clean += verdict == VERDICT_CLEAN;
        /* The occupiers hold their connections for longer than a request would, so this is no verdict. */
        explore->pool_stuck |= verdict == VERDICT_STUCK;
        explore->pool_shared += takes_turns(record);
    } else {
        keep(explore, verdict);
    }
    return true;
}

/* What one request alone did, which is no order. */
static void say_no_order(const struct explore_own *explore, const struct run_record *record)
{
    const struct shop_description *description = &explore->description;
    const struct shop_answer *answer = &record->answers[0];
    if (answer->status == 0)
        shop_complain(description, "request",
                      "was not answered: %s (timeout_ms is %" PRId64 "). The last output of the service:",
                      answer->text, description->timeout_ms);
    else if (record->count == 0)
        shop_complain(
            description, "request",
            "was answered with %ld: %s, and no statement has come through the gate. Correct \"request\", or let the service "
            "connect to {postgres}, or to {pghost} and {pgport}",
            answer->status, answer->text);
    else
        shop_complain(description, "request",
                      "placed no order; the answer was %ld: %s. Correct \"request\", \"reset\" or \"sold\"",
                      answer->status, answer->text);
    print_log_tail(explore->service.log[0], TAIL_LINES);
}

/* Says, if it was not answered, what it holds: the next run would wait for that. */
static bool hangs_alone(struct explore_own *explore)
{
    const struct run_record *record = runner_record(explore->runner);
    const struct shop_answer *answer = &record->answers[0];
    if (answer->status || record->count == 0 || !shop_service_runs(&explore->service))
        return false;
    shop_say_not_sold(&explore->description, answer, explore->before.left);
    if (record->left_transaction) /* the service was stopped, and its transaction with it */
        shop_say_open(record->left);
    else
        shop_database_say_open(explore->database);
    return true;
}

/* One request alone, to see that the service works and to measure how long it is silent; then all, so that pools fill. */
bool explore_own_warm_up(struct explore_own *explore)
{
    runner_set(explore->runner, 1, false);
    for (int i = 0; i < 2; i++) { /* the first may open connections */
        runner_watch(explore->runner, i > 0);
        if (!explore_own_run_first(explore) || hangs_alone(explore))
            return false;
    }
    runner_watch(explore->runner, false);
    const struct run_record *record = runner_record(explore->runner);
    bool orders = record->count > 0 && record->after.sold > explore->before.sold,
         works = orders && record->answers[0].meaning == SHOP_SOLD;
    if (!orders)
        say_no_order(explore, record);
    else if (!works)
        shop_say_not_sold(&explore->description, &record->answers[0], explore->before.left);
    runner_measure(explore->runner);
    runner_learn(explore->runner);
    runner_set(explore->runner, (size_t)explore->requests, false);
    struct shop_nature nature;
    explore->statements = record->count;
    if (!works || !explore_own_run_first(explore) ||
        !shop_database_routines(explore->database, &explore->routines) ||
        !shop_database_nature(explore->database, &nature))
        return false;
    runner_set_nature(explore->runner, &nature);
    runner_set_routines(explore->runner, &explore->routines);
    return true;
}

/* BEFORE and NOW begin with the same transitions. */
static void say_difference(const struct run_record *before, const struct run_record *now)
{
    static const char REMEDY[] =
        "Turn off what depends on chance, on time or on earlier requests, such as a cache";
    size_t i = 0, most = before->count < now->count ? before->count : now->count;
    while (i < most && before->steps[i].fingerprint == now->steps[i].fingerprint)
        i++;
    if (i < most)
        complain(
            "a schedule was repeated, and as statement %zu request %c sent '%.150s', where it had sent '%.150s'. %s",
            i + 1, actor_name(now->steps[i].actor), now->steps[i].text, before->steps[i].text, REMEDY);
    else
        complain(
            "a schedule was repeated, and after statement %zu other requests waited or had ended than before. %s",
            i, REMEDY);
}

/* A request that waits in the program for another one stays silent while that is held. One that sleeps does not, and then the search has
 * left out the schedules in which it wakes at other points. */
static bool look_for_sleepers(struct explore_own *explore)
{
    for (size_t i = 0; i < explore->silent_count && !explore->slept && !interrupt_came(); i++) {
        bool followed = explore_own_follow(explore, &explore->silent[i].path, false);
        if (followed && !runner_await_silent(explore->runner))
            return false;
        explore->slept |= followed && runner_record(explore->runner)->slept;
        if (!runner_end(explore->runner))
            return false;
    }
    return true;
}

/* Schedules in which nothing was wrong show nothing if too many requests failed, or if another request can act inside a statement, where the
 * gate cannot hold it. */
static void withdraw_clean(struct explore_own *explore)
{
    bool fails = (explore->unclear - explore->gave_up) * 100 > explore->answers * CHECK_FAILING_PERCENT &&
                 !(explore->allowed & 1U << VERDICT_FAILING);
    enum verdict instead = fails ? VERDICT_FAILING : VERDICT_NOT_EXPLORED;
    if ((!*explore->overtaken && !fails) || explore->worst.count > 0)
        return;
    explore->found[instead] = explore->found[VERDICT_CLEAN];
    explore->simplest[instead] = explore->simplest[VERDICT_CLEAN];
    explore->found[VERDICT_CLEAN] = 0;
}

static bool goes_on(void *self)
{
    const struct explore_own *explore = self;
    return explore->run < explore->max_schedules && (explore->occupied == 0 || explore->worst.count == 0);
}

/* A slow machine may be the cause: the same schedule again, a few times. */
static bool again(void *self, enum search_outcome why)
{
    (void)why;
    return ((struct explore_own *)self)->differed++ < DIFFERS_MOST && end(self);
}

static void footprint(void *self, struct footprint *ret_footprint)
{
    *ret_footprint = runner_footprint(((struct explore_own *)self)->runner);
}

/* Ends a schedule that would only repeat others. */
static bool stop(void *self)
{
    struct explore_own *explore = self;
    if (!end(self) || interrupted())
        return false;
    explore->last = *runner_record(explore->runner);
    return true;
}

/* If no request waited for another, there would be (N × M)! / (N!)^M schedules of M requests with N statements each. */
bool explore_own_reduces(const struct explore_own *explore)
{
    double schedules = 1;
    for (int64_t i = 1; i < explore->requests; i++)
        for (size_t n = 1; n <= explore->statements; n++)
            schedules *= ((double)i * (double)explore->statements + (double)n) / (double)n;
    return strcmp(explore->reduce, "tables") == 0 ||
           (strcmp(explore->reduce, "auto") == 0 &&
            (schedules > (double)explore->max_schedules ||
             schedules * SCHEDULE_MS > (double)explore->time_limit_ms));
}

/* Runs what is left of SEARCH, until LIMIT_US of the monotonic clock. */
static enum search_outcome search_until(struct explore_own *explore, struct search *search, int64_t limit_us)
{
    const struct program program = {.self = explore,
                                    .start = start,
                                    .enabled = enabled,
                                    .apply = apply,
                                    .end = end_and_judge,
                                    .fingerprint = fingerprint,
                                    .footprint = explore->tables.count > 0 ? footprint : NULL,
                                    .stop = stop};
    const struct search_caller caller = {explore, limit_us, goes_on, NULL, again};
    search->bound = NO_BOUND;
    explore->now = search;
    enum search_outcome outcome = run_search(search, &program, &caller);
    if (outcome == SEARCH_DIFFERS)
        say_difference(&explore->last, runner_record(explore->runner));
    return outcome;
}

/* The schedules in which the requests share the last free connection of the pool, if nothing else was found. False, having said why on
 * stderr. */
static bool search_shared(struct explore_own *explore, int64_t limit_us)
{
    enum search_outcome outcome = SEARCH_DONE;
    if (explore->instances > 1 || strcmp(explore->faults, "none") != 0 || explore->worst.count > 0 ||
        !explore->search.done || interrupt_came() ||
        *runner_at_once(explore->runner)) /* such a request takes several connections */
        return true;
    if (!runner_measure_pool(explore->runner, &explore->pool_size))
        return false;
    if (explore->pool_size <= 1 || explore->pool_size == OCCUPIERS_MAX)
        return true;
    explore->occupied = (int64_t)explore->pool_size - 1;
    /* A session lock that both requests have shows only if they go on over two connections. */
    for (int frees = 0; frees < (runner_locks_session(explore->runner) ? 2 : 1); frees++) {
        bool take_turns = true;
        for (int round = 0; round < SHARED_ROUNDS && take_turns && explore->worst.count == 0 &&
                            (outcome == SEARCH_RAN || outcome == SEARCH_DONE);
             round++) {
            const int64_t shared = explore->pool_shared;
            explore->frees = frees > 0;
            explore->shared[frees] = (struct search){0};
            outcome = search_until(explore, &explore->shared[frees], limit_us);
            take_turns = explore->pool_shared > shared;
        }
    }
    explore->occupied = 0;
    explore->frees = false;
    return outcome == SEARCH_RAN || outcome == SEARCH_DONE;
}

/* Finds out before the search, which must not change its choices, whether a request that polls gives up. Ends at LIMIT_US, monotonic. */
static bool try_polls(struct explore_own *explore, int64_t limit_us)
{
    bool done = false;
    runner_occupy(explore->runner, 0, false);
    runner_set(explore->runner, (size_t)explore->requests, false);
    for (unsigned steps = 0;
         !done && steps < RUN_STEPS_MAX && !interrupted() && (steps == 0 || monotonic_us() < limit_us);
         steps++)
        if (!runner_try_polls(explore->runner, steps, &done))
            return false;
    return !interrupted();
}

bool explore_own_search(struct explore_own *explore)
{
    explore->worst.most = SHOWN_MAX;
    int64_t begin = monotonic_us(), limit_us = begin + explore->time_limit_ms * 1000;
    if (!try_polls(explore, begin + explore->time_limit_ms * 1000 / TRIES_SHARE))
        return false;
    if (explore_own_reduces(explore)) {
        if (!shop_database_tables(explore->database, &explore->tables))
            return false;
        runner_trace(explore->runner, &explore->tables);
    }
    begin = monotonic_us();
    enum search_outcome outcome = search_until(explore, &explore->search, limit_us);
    explore->us = monotonic_us() - begin;
    bool ok = (outcome == SEARCH_RAN || outcome == SEARCH_DONE) && look_for_sleepers(explore) &&
              search_shared(explore, limit_us);
    if (!ok && (!interrupted() || explore->run == 0))
        return false;
    explore->occupied = 0;
    explore->frees = false;
    withdraw_clean(explore);
    return true;
}
