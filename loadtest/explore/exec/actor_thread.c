/* The thread of an actor, and the observer that holds it at the steps of its order. */
#include "loadtest/explore/exec/actor_thread.h"
#include "base/clock.h"
#include "base/text.h"

#include "loadtest/explore/exec/lock_admin.h"

#include "db/postgres/connection.h"

#include <stdio.h>
#include <string.h>

/* ---- the trace ------------------------------------------------------------------------------------------------ */

void trace_init(struct execution_trace *trace)
{
    *trace = (struct execution_trace){.last_step = STEP_COUNT};
    pthread_mutex_init(&trace->mutex, NULL);
    pthread_cond_init(&trace->stopped, NULL);
}

void trace_destroy(struct execution_trace *trace)
{
    for (size_t i = 0; i < ACTORS_MAX; i++)
        recorder_free(trace->recorders[i]);
    pthread_cond_destroy(&trace->stopped);
    pthread_mutex_destroy(&trace->mutex);
}

void trace_event(struct execution_trace *trace, uint8_t actor, uint8_t what, int64_t value)
{
    struct recorder *recorder = trace->recorders[actor];
    unsigned answered = 0, sent = recorder ? recorder_count(recorder, &answered) : 0;
    if (trace->event_count < EVENTS_MAX) /* a schedule without an end is stopped long before */
        trace->events[trace->event_count++] = (struct event){actor, what, (uint16_t)sent, (uint16_t)answered,
                                                             value};
}

size_t trace_last(const struct execution_trace *trace, size_t since, size_t actor, uint8_t what)
{
    for (size_t i = trace->event_count; i > since; i--)
        if (trace->events[i - 1].actor == actor && trace->events[i - 1].what == what)
            return i - 1;
    return NO_EVENT;
}

bool trace_wait(struct execution_trace *trace, int64_t until_us)
{
    return wait_until(&trace->stopped, &trace->mutex, until_us);
}

/* ---- holding the thread; the trace's mutex is held ------------------------------------------------------------- */

/* Ends the thread that is held here. Locks in the memory of the process end with it; those on servers stay. */
static _Noreturn void die(struct actor *actor)
{
    struct lock *lock = actor->lock;
    actor->state = ACTOR_CRASHED;
    actor->is_placing = false;
    actor->dies = false; /* the releases below must not come back here */
    pthread_cond_signal(&actor->trace->stopped);
    pthread_mutex_unlock(&actor->trace->mutex);
    while (lock && !lock->driver->server && actor->hold.depth > 0) {
        struct lock_grant grant = actor->hold.grant;
        (void)lock_release(lock, &grant);
    }
    pthread_exit(NULL);
}

/* Takes the trace's mutex; ends the thread if the actor has crashed meanwhile. */
static struct actor *enter(struct observer *self)
{
    struct actor *actor = (struct actor *)self;
    pthread_mutex_lock(&actor->trace->mutex);
    if (actor->dies)
        die(actor);
    return actor;
}

static void wait_for_release(struct actor *actor)
{
    while (!actor->released)
        pthread_cond_wait(&actor->go, &actor->trace->mutex);
    actor->released = false;
    if (actor->dies)
        die(actor);
}

static void hold_thread(struct actor *actor, enum actor_state state)
{
    actor->state = state;
    actor->trace->stops++;
    actor->waits_for = 0;
    actor->may_try = false;
    pthread_cond_signal(&actor->trace->stopped);
    wait_for_release(actor);
    actor->sleeps = false;
}

void actor_release(struct actor *actor)
{
    actor->released = true;
    actor->state = ACTOR_RUNNING;
    pthread_cond_signal(&actor->go);
}

/* ---- the observer's callbacks --------------------------------------------------------------------------------- */

/* Not held: after a read that finds too few units, after a refusal, and after the last step. What follows these (a rollback,
 * the end) has no effect that another order could see. */
static bool is_held_at(const struct actor *actor, enum step step, int64_t value)
{
    if (actor->trace->runs_free || step == actor->trace->last_step || step == STEP_REFUSE ||
        (step == STEP_CHECK && value == 0))
        return false;
    return step != STEP_READ || value >= actor->request.quantity;
}

/* The server may know of its place in the queue. */
static void note_place(struct actor *actor)
{
    const struct lock_grant *grant = &actor->placing.grants[0];
    if (*grant->token)
        actor->hold = (struct lock_hold){.grant = *grant, .has_grant = true, .is_place = true};
}

static void on_step(struct observer *self, enum step step, int64_t value)
{
    struct actor *actor = (struct actor *)self;
    if (step == STEP_WAIT &&
        !lock_has_queue(actor->placing.strategy->lock)) /* the controlled lock reports it */
        return;
    (void)enter(self);
    if (step == STEP_WAIT) {
        note_place(actor);
    } else if (step == STEP_SETNX) { /* the server knows of it before the holder does */
        actor->hold = (struct lock_hold){.grant = actor->placing.grants[0], .has_grant = true};
    } else if (step == STEP_DEL) { /* the server has forgotten it before the release is done */
        actor->hold.is_over = true;
    }
    trace_event(actor->trace, actor->index, (uint8_t)step, value);
    if (is_held_at(actor, step, value))
        hold_thread(actor, ACTOR_HELD);
    pthread_mutex_unlock(&actor->trace->mutex);
}

static void on_pause(struct observer *self)
{
    struct actor *actor = enter(self);
    trace_event(actor->trace, actor->index, EVENT_RETRY, STEP_NO_VALUE);
    if (!actor->trace->runs_free)
        hold_thread(actor, ACTOR_HELD);
    pthread_mutex_unlock(&actor->trace->mutex);
}

/* The actor sleeps in the lock's queue. EVENT_WAITS is reported here, not when it took its place: by now it may have its turn. */
static bool on_sleep(struct observer *self, bool (*has_ended)(void *context), void *context)
{
    struct actor *actor = enter(self);
    note_place(actor);
    trace_event(actor->trace, actor->index, EVENT_WAITS, has_ended ? 0 : WAITS_FOR_EVER);
    actor->sleeps = true;
    actor->has_ended = has_ended;
    actor->context = context;
    if (!actor->trace->runs_free)
        hold_thread(actor, ACTOR_WAITING);
    bool goes_on = !actor->trace->runs_free && !actor->times_out;
    pthread_mutex_unlock(&actor->trace->mutex);
    return goes_on;
}

void actor_die_if_due(struct actor *actor)
{
    (void)enter(&actor->observer);
    pthread_mutex_unlock(&actor->trace->mutex);
}

bool actor_wait(struct actor *actor)
{
    (void)enter(&actor->observer);
    if (!actor->times_out) /* otherwise its sleep has reported the wait */
        trace_event(actor->trace, actor->index, EVENT_WAITS, 0);
    if (!actor->trace->runs_free && !actor->times_out)
        hold_thread(actor, ACTOR_WAITING);
    bool goes_on = !actor->trace->runs_free && !actor->times_out;
    actor->times_out = false;
    pthread_mutex_unlock(&actor->trace->mutex);
    return goes_on;
}

/* ---- the thread ----------------------------------------------------------------------------------------------- */

static void place(struct actor *actor)
{
    actor->is_placing = true;
    pthread_mutex_unlock(&actor->trace->mutex);
    thread_recorder = actor->trace->recorders[actor->index];
    create_order(&actor->placing);
    thread_recorder = NULL;
    pthread_mutex_lock(&actor->trace->mutex);
    actor->is_placing = false;
    if (!actor->dies) /* after a crash it reports nothing */
        trace_event(actor->trace, actor->index, EVENT_ENDED, actor->placing.result.outcome);
}

static void *act(void *arg)
{
    struct actor *actor = arg;
    pthread_mutex_lock(&actor->trace->mutex);
    wait_for_release(actor);
    while (!actor->quits) {
        place(actor);
        hold_thread(actor, ACTOR_ENDED);
    }
    pthread_mutex_unlock(&actor->trace->mutex);
    return NULL;
}

bool actor_open(struct actor *actor, struct execution_trace *trace, uint8_t index, const char *url,
                char *ret_error, size_t size)
{
    *actor = (struct actor){.observer = {.on_step = on_step, .on_pause = on_pause, .on_sleep = on_sleep},
                            .trace = trace,
                            .index = index,
                            .url = url,
                            .state = ACTOR_HELD};
    pthread_cond_init(&actor->go, NULL);
    actor->db = db_new(url, "oversell explore actor");
    if (actor->db && pthread_create(&actor->thread, NULL, act, actor) == 0)
        return true;
    snprintf(ret_error, size, "not enough memory or threads for an order");
    db_free(actor->db);
    pthread_cond_destroy(&actor->go);
    return false;
}

bool actor_crash(struct actor *actor, struct product_schema *schema)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%s", actor_session(actor));
    actor->dies = true;
    if (actor->state != ACTOR_CRASHED)
        actor_release(actor);
    pthread_mutex_unlock(&actor->trace->mutex);
    pthread_join(actor->thread, NULL);
    bool ended = product_schema_end_session(schema, pid);
    if (actor->lock)
        ended &= product_schema_end_session(
            schema, lock_admin_session(actor->placing.strategy->lock, &actor->hold, pid));
    lock_close(actor->lock);
    actor->lock = NULL;
    pthread_mutex_lock(&actor->trace->mutex);
    actor->state = ACTOR_CRASHED;
    return ended;
}

/* After a crash: a new thread with new connections. */
static bool revive(struct actor *actor)
{
    db_free(actor->db);
    actor->db = db_new(actor->url, "oversell explore actor");
    actor->dies = actor->released = false;
    actor->state = ACTOR_HELD;
    return actor->db && pthread_create(&actor->thread, NULL, act, actor) == 0;
}

void actor_close(struct actor *actor)
{
    if (actor->state != ACTOR_CRASHED) {
        pthread_mutex_lock(&actor->trace->mutex);
        actor->quits = true;
        actor_release(actor);
        pthread_mutex_unlock(&actor->trace->mutex);
        pthread_join(actor->thread, NULL);
    }
    db_free(actor->db);
    pthread_cond_destroy(&actor->go);
}

bool actor_prepare(struct actor *actor, const struct strategy *strategy, int64_t product_id, int64_t quantity,
                   char *ret_error, size_t size)
{
    if (actor->state == ACTOR_CRASHED && !revive(actor))
        return text_fail(ret_error, size, "not enough memory or threads for an order");
    db_set_deadline(actor->db, INT64_MAX, INT64_MAX);
    if (product_schema_connect(actor->db) != DB_OK)
        return text_fail(ret_error, size, "postgresql: %s", db_error(actor->db));
    /* Stock in buckets is taken from a random bucket: the same ones in every run. */
    if (strategy->take_stock->kind == STOCK_BUCKETS && db_run_script(actor->db, "SELECT setseed(0)") != DB_OK)
        return text_fail(ret_error, size, "postgresql: %s", db_error(actor->db));
    actor->request = (struct order_request){.product_id = product_id, .quantity = quantity};
    actor->placing = (struct placing){
        .strategy = strategy,
        .request = &actor->request,
        .db = actor->db,
        .lock = actor->lock,
        .observer = &actor->observer,
        .instance = "explore",
        .deadline_us = INT64_MAX,
        .lock_deadline_us = INT64_MAX,
    };
    actor->state = ACTOR_HELD;
    actor->may_try = actor->sleeps = actor->times_out = false;
    actor->waits_for = 0;
    actor->hold = (struct lock_hold){0};
    return true;
}

const char *actor_session(const struct actor *actor)
{
    return db_session(actor->db)->pid;
}
