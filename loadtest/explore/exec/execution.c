/* A play: starting it, finding out what can be done next, and what it came to. (How a move is made: loadtest/explore/exec/execute_transition.c.) */
#include "loadtest/explore/exec/execution.h"
#include "base/clock.h"

#include "loadtest/explore/exec/fault_transitions.h"
#include "loadtest/explore/exec/lock_admin.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_TRIES = 5, END_US = 30000000 }; /* an order that nobody holds ends long before */

/* ---- opening and closing -------------------------------------------------------------------------------------- */

/* One order alone, with ample stock. */
static bool learn_profile(struct play *play)
{
    struct play_settings settings = play->settings;
    struct transition alone = {0, TRANSITION_STEP}, transitions[ENABLED_MAX];
    play->settings.actors = 1;
    play->settings.faults = 0;
    play->settings.stock = settings.quantities[0];
    bool well;
    int tries = 0;
    do { /* a first connection may take longer than the single try that a lock has here */
        well = play_start(play);
        while (well && play_enabled(play, transitions) > 0)
            well = play_make(play, alone);
        well = well && play_end(play);
    } while (well && play->ending.outcomes[0] != CREATED && ++tries < FIRST_TRIES);
    play->settings = settings;
    if (!well)
        return false;
    enum outcome alone_it = play->ending.outcomes[0];
    if (alone_it != CREATED) {
        const char *why = play->actors[0].placing.result.error;
        /* An unreachable or slow server says nothing about the strategy. */
        play->fails_alone = alone_it != BACKEND_AWAY && (alone_it != BUSY || !settings.strategy->lock);
        snprintf(play->error, sizeof play->error, "an order that is alone ends as %s%s%s%s",
                 outcome_name(alone_it),
                 alone_it == SOLD_OUT ? ", although there are as many units as it wants" : "",
                 *why ? ": " : "", why);
        return false;
    }
    for (size_t i = 0; i < play->scene.event_count && play->profile_length < PROFILE_MAX; i++)
        if (play->scene.events[i].what < STEP_COUNT)
            play->profile[play->profile_length++] = play->scene.events[i].what;
    if (play->profile_length > 0)
        play->scene.last_step = play->profile[play->profile_length - 1];
    return true;
}

bool play_open(struct play *play, struct explore_shop *shop, const char *url,
               const struct play_settings *settings)
{
    *play = (struct play){.settings = *settings, .shop = shop};
    scene_init(&play->scene);
    for (size_t i = 0; i < settings->actors; i++)
        if (!actor_open(&play->actors[i], &play->scene, (uint8_t)i, url, play->error, sizeof play->error)) {
            play->settings.actors = i;
            play_close(play);
            return false;
        }
    enum lock_status status = time_open(settings->strategy->lock, &play->time);
    /* In one process a local lock in front would hide that what is behind it has ended. */
    play->own_processes = settings->faults & (EXPIRY | CRASH) && play->time &&
                          settings->strategy->guarantee == WHILE_LEASE_HOLDS;
    if (status != LOCK_OK)
        snprintf(play->error, sizeof play->error, "%s: %s", settings->strategy->lock->name,
                 lock_status_name(status));
    else if (learn_profile(play))
        return true;
    play_close(play);
    return false;
}

/* Nobody is held any more: each order that has not ended yet goes on to its end; with ONLY_BEGUN those that have not begun do
 * not begin. *RET_STUCK: one was kept from going on. False: one does not end, and the play is lost. */
static bool let_all_end(struct play *play, bool only_begun, bool *ret_stuck)
{
    int64_t until_us = monotonic_us() + END_US;
    bool ended = true;
    pthread_mutex_lock(&play->scene.mutex);
    *ret_stuck = false;
    play->scene.gives_up = true;
    for (size_t i = 0; i < play->settings.actors; i++) {
        struct actor *actor = &play->actors[i];
        *ret_stuck |= actor->state == ACTOR_WAITING || actor->state == ACTOR_RUNNING;
        if ((actor->state == ACTOR_HELD || actor->state == ACTOR_WAITING) &&
            (actor->is_placing || !only_begun))
            actor_release(actor);
    }
    for (size_t i = 0; i < play->settings.actors; i++)
        while (ended && (play->actors[i].is_placing || !only_begun) && play->actors[i].state != ACTOR_ENDED &&
               play->actors[i].state != ACTOR_CRASHED) {
            struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
            ended = pthread_cond_clockwait(&play->scene.stopped, &play->scene.mutex, CLOCK_MONOTONIC,
                                           &until) == 0;
        }
    pthread_mutex_unlock(&play->scene.mutex);
    if (!ended)
        play->lost = play->shop->lost = true;
    return ended;
}

/* Lets the held orders of an aborted schedule finish. */
static bool end_what_has_begun(struct play *play)
{
    bool begun = false, stuck;
    pthread_mutex_lock(&play->scene.mutex);
    for (size_t i = 0; i < play->settings.actors; i++)
        begun |= play->actors[i].is_placing;
    pthread_mutex_unlock(&play->scene.mutex);
    return !play->lost && (!begun || let_all_end(play, true, &stuck));
}

void play_close(struct play *play)
{
    if (!end_what_has_begun(play))
        return;
    for (size_t i = 0; i < play->settings.actors; i++)
        actor_close(&play->actors[i]);
    scene_destroy(&play->scene);
    lock_close(play->time);
    play->time = NULL;
    play->settings.actors = 0;
}

static bool shop_says_no(struct play *play)
{
    snprintf(play->error, sizeof play->error, "postgresql: %s", play->shop->error);
    return false;
}

bool play_start(void *self)
{
    struct play *play = self;
    const struct stock_policy *policy = stock_policy_of(play->settings.strategy->take_stock);
    if (!end_what_has_begun(play)) {
        snprintf(play->error, sizeof play->error, "an order does not finish");
        return false;
    }
    if (!explore_shop_reset(play->shop, policy->kind, play->settings.stock))
        return shop_says_no(play);
    play->scene.event_count = 0;
    play->scene.gives_up = false;
    play->transition_count = 0;
    play->deadlock = play->fault_made = false;
    play->ending = (struct ending){0};
    play->fails_alone = false;
    play->restarts = 0;
    for (size_t i = 0; i < play->settings.actors; i++)
        if (!actor_prepare(&play->actors[i], play->settings.strategy, play->shop->product_id,
                           play->settings.quantities[i], play->own_processes ? &play->processes : NULL,
                           play->error, sizeof play->error))
            return false;
    return true;
}

/* ---- what can be done ----------------------------------------------------------------------------------------- */

size_t play_enabled(void *self, struct transition *ret_transitions)
{
    struct play *play = self;
    size_t count = 0;
    pthread_mutex_lock(&play->scene.mutex);
    for (size_t i = 0; i < play->settings.actors; i++) {
        const struct actor *actor = &play->actors[i];
        if (actor->state == ACTOR_HELD || (actor->state == ACTOR_WAITING && actor->may_try))
            ret_transitions[count++] = (struct transition){(uint8_t)i, TRANSITION_STEP};
    }
    if (play->settings.faults)
        count = faults_enabled(play, ret_transitions, count);
    pthread_mutex_unlock(&play->scene.mutex);
    return count;
}

/* What happens to an order is no step of its own. */
static bool is_its_own(const struct event *event)
{
    return (event->what < STEP_COUNT && event->what != STEP_WAIT) || event->what == EVENT_RETRY ||
           event->what == EVENT_ENDED || event->what == EVENT_CRASHED;
}

uint8_t play_next_step(const struct play *play, unsigned actor, size_t events)
{
    const struct event *event = play->scene.events + events;
    while (event > play->scene.events) {
        event--;
        if (event->actor != actor || !is_its_own(event))
            continue;
        /* Of a step that an order does twice the first is meant: no strategy has one. */
        for (size_t i = 0; event->what < STEP_COUNT && i + 1 < play->profile_length; i++)
            if (play->profile[i] == event->what)
                return play->profile[i + 1];
        if (event->what != EVENT_RETRY)
            return STEP_COUNT;
        break;
    }
    return play->profile_length > 0 ? play->profile[0] : STEP_COUNT;
}

size_t play_remaining(void *self, unsigned actor)
{
    struct play *play = self;
    uint8_t next = play_next_step(play, actor, play->scene.event_count);
    size_t done = 0;
    while (done < play->profile_length && play->profile[done] != next)
        done++;
    return play->profile_length - done;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

bool play_look(struct play *play, int64_t *ret_stock)
{
    struct explore_books books;
    if (!explore_shop_audit(play->shop, &books))
        return shop_says_no(play);
    *ret_stock = books.left;
    return true;
}

bool play_has_reported(const struct play *play, size_t actor, uint8_t what)
{
    for (size_t i = 0; i < play->scene.event_count; i++)
        if (play->scene.events[i].actor == actor && play->scene.events[i].what == what)
            return true;
    return false;
}

/* Can a correct order end so in this schedule? */
static bool is_explained(const struct play *play, enum outcome outcome)
{
    const struct strategy *strategy = play->settings.strategy;
    switch (outcome) {
    case CREATED:
    case SOLD_OUT:
        return true; /* whether it is sold out: faults_watch */
    /* A wait ended, or nobody could end it; and where orders do not wait, others hold what it wants. */
    case BUSY: return play->fault_made || play->ending.stuck || strategy_stock_kind(strategy) == STOCK_UNITS;
    /* Others were quicker; but in so many tries as some strategies have, all others have had their turn. */
    case CONFLICT: return strategy->max_tries <= 1;
    case LOST_LOCK: return play->fault_made;
    default: return false;
    }
}

static void judge(struct play *play)
{
    struct ending *ending = &play->ending;
    int64_t stock = play->settings.stock, acknowledged = 0;
    ending->drift = ending->books.sold - (stock - ending->books.left);
    ending->oversold = ending->books.sold > stock ? ending->books.sold - stock : 0;
    for (size_t i = 0; i < play->settings.actors; i++) {
        enum outcome outcome = ending->outcomes[i];
        if (play_has_reported(play, i,
                              EVENT_CRASHED)) { /* its client was told nothing; what it committed stands */
            acknowledged += play_has_reported(play, i, STEP_COMMIT) ||
                            play_has_reported(play, i, STEP_COMMIT_ORDER);
            continue;
        }
        acknowledged += outcome == CREATED;
        ending->undersold |= outcome != CREATED && play->settings.quantities[i] <= stock - ending->books.sold;
        ending->failed |= !is_explained(play, outcome);
    }
    ending->answers_wrong = acknowledged != ending->books.orders;
    for (size_t i = 0; i < play->scene.event_count; i++)
        ending->waited |= play->scene.events[i].what == EVENT_WAITS ||
                          play->scene.events[i].what == STEP_WAIT;
}

/* Releases a lock that an order leaked, because it would block all further schedules. */
static bool forget_leftovers(struct play *play, struct actor *actor)
{
    bool well = true;
    pthread_mutex_lock(&play->scene.mutex);
    bool leaked = actor->state == ACTOR_ENDED && actor->hold.depth > 0;
    if (leaked && !actor->lock->ops->server) /* only its own thread can release a mutex */
        well = actor_crash(actor, play->shop);
    pthread_mutex_unlock(&play->scene.mutex);
    while (actor->lock && actor->hold.depth > 0) {
        struct lock_grant grant = actor->hold.grant;
        (void)lock_release(actor->lock, &grant);
    }
    play->ending.leaked |= leaked;
    return well;
}

bool play_end(void *self)
{
    struct play *play = self;
    size_t events = play->scene.event_count;
    bool stuck;
    if (play->lost || !let_all_end(play, false, &stuck)) {
        snprintf(play->error, sizeof play->error, "an order does not finish");
        return false;
    }
    play->ending.deadlock = play->deadlock;
    play->ending.stuck = stuck;
    for (size_t i = 0; i < play->settings.actors; i++)
        if (!forget_leftovers(play, &play->actors[i]))
            return shop_says_no(play);
    play->scene.event_count = events; /* what they did when nobody held them is no part of the schedule */
    for (size_t i = 0; i < play->settings.actors; i++) {
        bool crashed = play_has_reported(play, i, EVENT_CRASHED);
        play->ending.outcomes[i] = crashed ? UNKNOWN : play->actors[i].placing.result.outcome;
        if (crashed)
            time_clear_away(play->settings.strategy->lock, play->time, &play->actors[i].hold);
    }
    if (!explore_shop_audit(play->shop, &play->ending.books))
        return shop_says_no(play);
    judge(play);
    return true;
}

/* FNV-1a, by Fowler, Noll and Vo. */
static uint64_t add_to_sum(uint64_t sum, uint64_t value)
{
    for (unsigned byte = 0; byte < sizeof value; byte++)
        sum = (sum ^ (value >> 8 * byte & 0xff)) * 1099511628211u;
    return sum;
}

uint64_t play_seen(void *self)
{
    const struct play *play = self;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < play->scene.event_count; i++) {
        const struct event *event = &play->scene.events[i];
        bool is_token = event->what == STEP_LOCK || event->what == STEP_FENCE || event->what == STEP_REFUSE;
        sum = add_to_sum(sum, (uint64_t)event->actor << 8 | event->what);
        sum = add_to_sum(sum, is_token ? 0 : (uint64_t)event->value);
    }
    return sum;
}

bool play_is_doubtful(void *self)
{
    enum { RUN_AGAIN = 2 };
    struct play *play = self;
    bool unexpected = play->ending.failed ||
                      (play->ending.stuck && play->settings.strategy->guarantee != UNSAFE);
    if (unexpected && play->doubts++ < RUN_AGAIN)
        return true;
    play->doubts = 0;
    return false;
}

bool ending_is_bad(const struct ending *ending)
{
    return ending->oversold > 0 || ending->drift != 0 || ending->answers_wrong || ending->stuck ||
           ending->failed || ending->false_refusal || ending->leaked;
}

bool ending_breaks_lock(const struct ending *ending)
{
    return ending->robbed || ending->two_holders || ending->hollow;
}
