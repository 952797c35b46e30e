/* One schedule of `loadtest explore shop.json`: begins it, follows a known one, and judges and counts it when it has ended. */
#include "loadtest/own/check_row.h"
#include "loadtest/own/schedules/explore_own_impl.h"

#include <string.h>

/* ---- running --------------------------------------------------------------------------------------------------------- */

bool explore_own_is_enabled(struct explore_own *explore, struct transition transition)
{
    struct transition choices[ENABLED_MAX];
    return transition_is_among(choices, runner_enabled(explore->runner, choices), transition);
}

bool explore_own_apply(struct explore_own *explore, struct transition transition)
{
    explore->ran.transitions[explore->ran.length++] = transition;
    return runner_apply(explore->runner, transition);
}

bool explore_own_run_rest(struct explore_own *explore)
{
    struct transition choices[ENABLED_MAX];
    bool ok = true;
    while (ok && explore->ran.length < DEPTH_MAX && runner_enabled(explore->runner, choices) > 0 &&
           (choices[0].kind == TRANSITION_STEP || choices[0].kind == TRANSITION_TIMEOUT))
        ok = explore_own_apply(explore, choices[0]);
    return ok;
}

static bool begin_schedule(struct explore_own *explore)
{
    explore->ran.length = 0;
    return runner_start(explore->runner);
}

bool explore_own_run_first(struct explore_own *explore)
{
    return begin_schedule(explore) && explore_own_run_rest(explore) && runner_end(explore->runner);
}

/* A service that has just started is slow at first, so it gets one request alone. */
static bool warm_up_again(struct explore_own *explore)
{
    runner_occupy(explore->runner, 0, false);
    runner_set(explore->runner, 1, false);
    return explore_own_run_first(explore);
}

bool explore_own_start(struct explore_own *explore, size_t occupied, bool frees, bool reads_stock)
{
    if ((occupied > 0 || runner_starts_again(explore->runner)) && !warm_up_again(explore))
        return false;
    runner_occupy(explore->runner, occupied, frees);
    runner_set(explore->runner, (size_t)explore->requests, reads_stock);
    return begin_schedule(explore);
}

bool explore_own_follow(struct explore_own *explore, const struct counterexample *path, bool reads_stock)
{
    bool ok = explore_own_start(explore, path->occupied, path->frees, reads_stock);
    for (size_t i = 0; i < path->length && ok; i++)
        ok = explore_own_is_enabled(explore, path->transitions[i]) &&
             explore_own_apply(explore, path->transitions[i]);
    return ok;
}

/* ---- judging --------------------------------------------------------------------------------------------------------- */

static bool is_sold(const struct shop_answer *answer)
{
    return answer->meaning == SHOP_SOLD;
}

enum verdict explore_own_judge(const struct explore_own *explore, const struct run_record *record)
{
    struct check_answers answers = {0};
    for (int64_t i = 0; i < explore->requests; i++) {
        enum shop_meaning meaning = record->answers[i].meaning;
        answers.acknowledged += meaning == SHOP_SOLD;
        answers.refused += meaning == SHOP_REFUSED;
        answers.unclear += meaning == SHOP_UNCLEAR;
    }
    struct check_counts counts = check_counts_of(&explore->description, &explore->before, &record->after,
                                                 &answers);
    counts.turned_away &= !record->faulted;
    /* Which answers fail in one schedule says nothing about their share. */
    counts.failing = false;
    enum verdict verdict = check_verdict(&counts, explore->allowed);
    return record->stuck && verdict < VERDICT_STUCK ? VERDICT_STUCK : verdict;
}

/* ACTOR waited in vain for a lock that the search let another request keep. */
static bool gave_up(const struct run_record *record, int64_t actor)
{
    for (size_t i = 0; i < record->count; i++)
        if (record->steps[i].kind == TRANSITION_TIMEOUT && record->steps[i].actor == (unsigned)actor)
            return true;
    return false;
}

enum verdict explore_own_count(struct explore_own *explore, const struct run_record *record)
{
    unsigned sold = 0, stepped = 0;
    for (unsigned i = 0; i < (unsigned)explore->requests; i++)
        sold |= is_sold(&record->answers[i]) ? 1U << i : 0;
    for (size_t i = 0; i < record->count; i++)
        stepped |= 1U << record->steps[i].actor;
    explore->schedules++;
    explore->deadlocks += record->deadlock;
    for (int64_t i = 0; i < explore->requests && !record->faulted && explore->occupied == 0; i++) {
        explore->answers++;
        if (record->answers[i].meaning != SHOP_UNCLEAR)
            continue;
        if (explore->unclear++ == 0)
            explore->first_unclear = record->answers[i];
        explore->gave_up += gave_up(record, i);
    }
    explore->faulted |= record->faulted;
    explore->unseen |= sold & ~stepped;
    explore->slept |= record->slept;
    if (record->polls_on && (!*explore->polled || record->polls_unknown > explore->polls_unknown))
        memcpy(explore->polled, record->polled, sizeof explore->polled);
    explore->polls_unknown |= record->polls_unknown;
    if (!*explore->repeated)
        memcpy(explore->repeated, record->repeated, sizeof explore->repeated);
    if (!*explore->stranger) {
        memcpy(explore->stranger, record->stranger, sizeof explore->stranger);
        memcpy(explore->host, record->host, sizeof explore->host);
    }
    if (!*explore->overtaken)
        memcpy(explore->overtaken, record->inside, sizeof explore->overtaken);
    if (!*explore->overtaken_open)
        memcpy(explore->overtaken_open, record->inside_open, sizeof explore->overtaken_open);
    return explore_own_judge(explore, record);
}

bool explore_own_is_doubtful(const struct explore_own *explore, const struct run_record *record)
{
    const struct shop_answer *doubtful = NULL;
    int64_t acknowledged = 0, sold = record->after.sold - explore->before.sold;
    for (int64_t i = 0; i < explore->requests; i++) {
        const struct shop_answer *answer = &record->answers[i];
        acknowledged += is_sold(answer) ? explore->description.units : 0;
        if (is_sold(answer) && *answer->hint)
            doubtful = answer;
    }
    if (!doubtful || acknowledged <= sold || explore_own_judge(explore, record) != VERDICT_ANSWERS_LOST)
        return false;
    shop_complain(
        &explore->description, "request",
        "was answered with %ld, and nothing was sold: %.120s. The file does not say what that means. Add %s",
        doubtful->status, doubtful->text, doubtful->hint);
    return true;
}
