/* Runs schedules that are known: a counterexample once more, or the schedule that the user named with --replay. */
#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/schedules/explore_own_impl.h"
#include "loadtest/own/schedules/explore_own_result.h"

#include <string.h>

enum { REPLAY_TRIES = 3 };

/* ---- a counterexample ----------------------------------------------------------------------------------------------------- */

enum repetition { REPEATED, ENDED_OTHERWISE, NOT_FOLLOWED };

/* Runs the schedule of a counterexample once more. NOT_FOLLOWED: a request was not held where it was before. */
static enum repetition repeat(struct explore_own *explore, const struct counterexample *worst,
                              bool reads_stock)
{
    bool ok = explore_own_follow(explore, worst, reads_stock);
    if (!runner_end(explore->runner) || !ok)
        return NOT_FOLLOWED;
    return explore_own_judge(explore, runner_record(explore->runner)) == (enum verdict)worst->badness
               ? REPEATED
               : ENDED_OTHERWISE;
}

/* Repeats a counterexample as often, and returns it as it is shown; the last repetition reads the stock after each transaction. NULL, having
 * said why on stderr. */
json_t *explore_own_show(struct explore_own *explore, const struct counterexample *worst, int repetitions)
{
    char words[SCHEDULE_TEXT];
    int64_t reproduced = 0, replays = 0;
    if (interrupt_came())
        repetitions = 1; /* for the cause */
    for (int i = 0; i < repetitions && !interrupted(); i++) {
        enum repetition made = NOT_FOLLOWED;
        /* On a slow machine a request can seem to wait in the program: then the schedule cannot be followed. */
        for (int tries = 0; tries < REPLAY_TRIES && made == NOT_FOLLOWED && !interrupted(); tries++) {
            made = repeat(explore, worst, i + 1 == repetitions);
            explore->differed += made == NOT_FOLLOWED;
        }
        reproduced += made == REPEATED;
        replays += !interrupted() || made == REPEATED;
    }
    /* The last repetition may have ended in the middle. The cause of a schedule needs the stock after each transaction. */
    bool cut = interrupted() != 0;
    json_t *shown = explored_schedule(cut ? &explore->first_worst : runner_record(explore->runner),
                                      schedule_write(worst->transitions, worst->length, words),
                                      (size_t)explore->requests, (enum verdict)worst->badness);
    static const char SHARED[] =
        "The requests shared a connection of the pool: a transaction, a session lock or a setting of one of them held for the other as "
        "well. Keep one connection for all statements of a request.";
    static const char CUT[] = "An interrupt ended the search before the cause could be read from a replay.";
    if (shown && (!cut || json_object_set_new(shown, "cause", json_string(CUT)) == 0) &&
        (worst->occupied == 0 || json_object_set_new(shown, "cause", json_string(SHARED)) == 0) &&
        json_object_set_new(shown, "occupied", json_integer((json_int_t)worst->occupied)) == 0 &&
        json_object_set_new(shown, "frees", json_boolean(worst->frees)) == 0 &&
        json_object_set_new(shown, "switches", json_integer(worst->switches)) == 0 &&
        json_object_set_new(shown, "replays", json_integer((json_int_t)replays)) == 0 &&
        json_object_set_new(shown, "reproduced", json_integer((json_int_t)reproduced)) == 0)
        return shown;
    complain("out of memory");
    json_decref(shown);
    return NULL;
}

/* ---- one schedule that the user names ------------------------------------------------------------------------------ */

/* Runs the schedule as far as the requests can follow it, and then the rest of each. A request that has been changed may send fewer
 * statements, or wait. */
static bool follow(struct explore_own *explore)
{
    unsigned done[ACTORS_MAX] = {0};
    runner_wait_out_all(explore->runner);
    bool ok = explore_own_start(explore, (size_t)explore->occupied, explore->frees, true);
    for (size_t i = 0; i < explore->schedule.count; i++) {
        const struct schedule_part *part = &explore->schedule.parts[i];
        const struct transition next = {part->actor, part->kind};
        bool is_step = part->kind == TRANSITION_STEP;
        for (bool goes_on = true; goes_on && ok && explore->ran.length < DEPTH_MAX; goes_on = is_step) {
            if ((is_step && done[part->actor] >= part->upto) || !explore_own_is_enabled(explore, next))
                break;
            ok = explore_own_apply(explore, next);
            done[part->actor] += is_step;
        }
    }
    ok = ok && explore_own_run_rest(explore);
    return runner_end(explore->runner) && ok;
}

bool explore_own_replay(struct explore_own *explore, json_t **ret_shown)
{
    char words[SCHEDULE_TEXT];
    int64_t begin = monotonic_us();
    if (!follow(explore))
        return false;
    const struct run_record *record = runner_record(explore->runner);
    explore->us = monotonic_us() - begin;
    enum verdict verdict = explore_own_count(explore, record);
    if (explore_own_is_doubtful(explore, record))
        return false;
    if (verdict == VERDICT_CLEAN) /* else the schedule still shows what is wrong */
        changed_statement(explore->saved.steps, record, explore->changed);
    explore->found[verdict] = 1;
    explore->simplest[verdict] = explore->ran;
    *ret_shown = explored_schedule(record,
                                   schedule_write(explore->ran.transitions, explore->ran.length, words),
                                   (size_t)explore->requests, verdict);
    if (!*ret_shown)
        complain("out of memory");
    return *ret_shown;
}
