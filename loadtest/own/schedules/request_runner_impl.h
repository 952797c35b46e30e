/* What the files of the request runner share. The functions are called by the thread that owns the runner; those that return bool say on
 * stderr why they return false, unless it was an interrupt. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_IMPL_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_IMPL_H

#include "loadtest/own/redis/held_keys.h"
#include "loadtest/own/redis/idle_repeats.h"
#include "loadtest/own/schedules/request_runner.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    LOOK_US = 2000, /* between two looks at PostgreSQL's lock table */
    QUIET_LEAST_US = 500000,
    NOWHERE = GATE_CONNECTIONS,
};

struct actor {
    struct request_runner *runner;
    unsigned number;
    struct shop_exchange exchange;
    pthread_t thread;
    atomic_int_fast64_t until_us;   /* then it is given up; the time while it is held does not count */
    bool has_thread, ended, failed; /* ENDED: the answer is there; with the gate's lock */
    bool crashed, cuts;             /* CUTS: the answer to its statement will be lost */
    unsigned steps;
    size_t queued; /* bytes behind the statement at which it is held */
    struct run_answer answer;
    enum request_state state;
    size_t at; /* the connection that is held or blocked; NOWHERE */
    unsigned blockers;
    struct run_step *waits; /* its last step, if that waited; the answer is noted when it comes */
};

struct request_runner {
    struct runner_settings settings;
    struct actor actors[ACTORS_MAX];
    int64_t quiet_us, silence_us; /* SILENCE_US: the longest that was seen */
    struct run_record record;
    uint64_t fingerprint;
    bool watches, stopped; /* STOPPED: the service, so it is started again */
    unsigned tries;
    int64_t changes; /* what redis_control_changes said last */
    struct held_keys held;
    struct idle_repeats repeats;
};

/* ---- waiting; with the gate's lock ----- */

/* Waits until ACTOR, which runs, has come to rest. */
bool runner_settle(struct request_runner *runner, struct actor *actor);
/* Lets those continue that waited for what has just run. */
bool runner_wake_waiters(struct request_runner *runner);
/* A request is in this state. */
bool runner_has(const struct request_runner *runner, enum request_state state);
/* If all wait for each other PostgreSQL ends one of them after its deadlock_timeout; and a slow or sleeping program is not stuck. */
bool runner_await_deadlock(struct request_runner *runner);

/* Called when all requests have their answers: waits until their transactions have ended, for at most as long as a request may be silent. */
bool runner_await_transactions(struct request_runner *runner);

/* ---- Redis ----- */

/* Empties a private Redis, and forgets who holds what. */
bool runner_empty_redis(struct request_runner *runner);
/* ACTOR's command, of which COMMAND is a copy, has ended. Without the gate's lock. */
bool runner_note_command(struct request_runner *runner, const struct actor *actor,
                         const struct gate_connection *command);
/* ACTOR is about to repeat a command in vain. With the gate's lock, as the rest. */
bool runner_repeats_idly(const struct request_runner *runner, const struct actor *actor);
/* The keys that ACTOR holds end; appends them to RET_TEXT, of MESSAGE_TEXT bytes. The lock is not held while Redis is asked. */
bool runner_end_keys(struct request_runner *runner, const struct actor *actor, char *ret_text);
/* If all that is left repeats commands in vain, time passes: what expires in Redis does so. */
bool runner_pass_time(struct request_runner *runner);

/* ---- faults; with the gate's lock ----- */

/* The fault of the settings can happen to ACTOR now. */
bool runner_can_fault(const struct request_runner *runner, const struct actor *actor);
/* Closes the connections on which ACTOR works; what it sends from now on is refused. */
bool runner_crash(struct request_runner *runner, struct actor *actor);

/* ---- the record ----- */

/* A new step of ACTOR, at the end of the record. NULL: there are too many. */
struct run_step *runner_add_step(struct request_runner *runner, unsigned actor, enum transition_kind kind);

#endif
