/* What the files of the request runner share. The functions are called by the thread that owns the runner; those that return bool say on
 * stderr why they return false, unless it was an interrupt. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_IMPL_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_IMPL_H

#include "loadtest/own/polls/idle_polls.h"
#include "loadtest/own/redis/held_keys.h"
#include "loadtest/own/redis/idle_repeats.h"
#include "loadtest/own/schedules/request_runner.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    LOOK_US = 2000, /* between two looks at PostgreSQL's lock table */
    QUIET_LEAST_US = 500000,
    NOWHERE = GATE_CONNECTIONS,
    GROUP_MAX = 8,  /* statements at the same time */
    GROUPS_MAX = 4, /* of a request */
};

struct actor {
    struct request_runner *runner;
    unsigned number; /* ACTORS_MAX: it occupies a connection, and is no actor of the schedule */
    unsigned nth;    /* {request}, from 1 */
    struct shop_exchange exchange;
    pthread_t thread;
    atomic_int_fast64_t until_us;   /* then it is given up; the time while it is held does not count */
    bool has_thread, ended, failed; /* ENDED: the answer is there; with the gate's lock */
    bool crashed, cuts;             /* CUTS: the answer to its statement will be lost */
    unsigned met[GROUPS_MAX];       /* bits of the statements of a group that have come */
    unsigned steps, sent;           /* SENT: statements, without the COMMITs that the gate adds */
    /* Of the statements that one request alone sends, it has sent ALONE; a new connection can be asked for more. */
    size_t alone;
    size_t queued; /* bytes behind the statement at which it is held */
    struct shop_answer answer;
    enum request_state state;
    size_t at; /* the connection that is held or blocked; NOWHERE */
    unsigned blockers;
    struct run_step *waits; /* its last step, if that waited; the answer is noted when it comes */
};

/* Statements that one request alone has sent at the same time, by their shapes. */
struct statement_group {
    uint64_t shapes[GROUP_MAX];
    unsigned count;
};

struct request_runner {
    struct runner_settings settings;
    struct actor actors[ACTORS_MAX];
    struct actor occupiers[OCCUPIERS_MAX];
    size_t occupied;   /* how many of them the next start sends */
    bool frees, freed; /* one of their connections is closed when each actor has sent a statement; it was */
    uint64_t alone[RUN_STEPS_MAX]; /* shapes of the statements of one request alone */
    size_t alone_count;
    bool locks_session;           /* one request alone does */
    int64_t quiet_us, silence_us; /* SILENCE_US: the longest that was seen */
    bool spins;                   /* the program has worked while it waited */
    struct run_record record;
    const struct routines *routines; /* NULL: nothing is known about them yet */
    uint64_t fingerprint;
    struct statement_group groups[GROUPS_MAX];
    size_t group_count;
    char at_once
        [MESSAGE_TEXT]; /* two statements that one request alone sends at the same time; "": it sends one after the other */
    int64_t advisory;      /* locks that a session of the service keeps after one request alone */
    bool watches, stopped; /* STOPPED: the service, so it is started again */
    unsigned tries;
    int64_t changes; /* what redis_control_changes said last */
    struct held_keys held;
    struct idle_repeats repeats;
    struct idle_polls polls;
    struct known_polls known, met; /* KNOWN before the search, and MET in it */
    unsigned waited[ACTORS_MAX];   /* how often each actor has waited out its tries in this schedule */
    /* of the connections to which the open transactions in POLLS belong */
    int32_t poll_pids[GATE_CONNECTIONS];
    unsigned holds;            /* bits of the actors that may hold a lock whose rows "expires" changes */
    unsigned ended_rows;       /* how often time has passed for these rows in this schedule */
    struct shop_nature nature; /* of the database */
    bool waits_out_all;        /* what is not known may be waited out as well */
    const struct known_tables *tables; /* NULL: footprints are not wanted */
    /* Of each request what its open transaction has touched; and of the last transition. */
    struct footprint transactions[ACTORS_MAX], last;
    unsigned was_blocked, was_open; /* bits of the requests: before the transition */
    bool has_failed;                /* a transaction, in this schedule */
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

/* All requests have their answers. Notes in the record what a session still has locked, which would make the next request wait; it may release
 * that for as long as a request may be silent. False, having said why on stderr. */
bool runner_note_left(struct request_runner *runner);
/* CONNECTION has an open transaction of a request that was already answered. */
bool runner_is_late(const struct request_runner *runner, const struct gate_connection *connection);

/* ---- several statements at a time; request_groups.c; with the gate's lock ----- */

/* ACTOR alone runs, and is held: notes other statements of it that are held at the same moment as one group. */
void runner_watch_actor(struct request_runner *runner, const struct actor *actor);
/* ACTOR sends several statements at a time, of which one is held. Waits for those that one request alone has sent together with it, and chooses the
 * same one in each run: which of them came first is chance. */
void runner_choose_one(struct request_runner *runner, struct actor *actor);

/* ---- Redis ----- */

/* Empties a private Redis, and forgets who holds what. */
bool runner_empty_redis(struct request_runner *runner);
/* ACTOR's command, of which COMMAND is a copy, has ended. Without the gate's lock. */
bool runner_note_command(struct request_runner *runner, const struct actor *actor,
                         const struct gate_connection *command);
/* ACTOR is about to repeat a command in vain. With the gate's lock, as the rest. */
bool runner_repeats_idly(const struct request_runner *runner, const struct actor *actor);
/* Writes such a command into the record. With the gate's lock. */
void runner_note_repeats(struct request_runner *runner);
/* The keys that ACTOR holds end; appends them to RET_TEXT, of MESSAGE_TEXT bytes. The lock is not held while Redis is asked. */
bool runner_end_keys(struct request_runner *runner, const struct actor *actor, char *ret_text);
/* If all that is left repeats commands in vain, time passes: what expires in Redis does so. */
bool runner_pass_time(struct request_runner *runner);

/* ---- polls of PostgreSQL; request_polls.c; with the gate's lock ----- */

/* The statement of ACTOR over connection AT, of which COMMAND is a copy from before, has ended or waits. */
void runner_note_statement(struct request_runner *runner, const struct actor *actor, size_t at,
                           const struct gate_connection *command);
/* The statement of ACTOR's last step, which has waited on the connection of process PID at AT, has ended. */
void runner_note_unblocked(struct request_runner *runner, const struct actor *actor, size_t at, int32_t pid);
/* ACTOR is about to repeat a statement that has no effect: a number for what it repeats; else 0. */
uint64_t runner_polls(const struct request_runner *runner, const struct actor *actor);
/* ACTOR is held at the end of a transaction that has tried something in vain. That has no effect on others, so no other schedule is lost if it
 * runs at once. */
bool runner_ends_nothing(const struct request_runner *runner, const struct actor *actor);
/* ACTOR polls, and is known to give up after some time. */
bool runner_can_wait_out(const struct request_runner *runner, const struct actor *actor);
/* ACTOR alone repeats its tries until it does something else, or for some time. STEP describes that. NULL: nothing does. */
bool runner_wait_out(struct request_runner *runner, struct actor *actor, struct run_step *step,
                     enum poll_end *ret_end);
/* The leases in PostgreSQL end; appends to RET_TEXT, of MESSAGE_TEXT bytes. The lock is not held while PostgreSQL is asked. */
bool runner_end_rows(struct request_runner *runner, char *ret_text);
/* All that is left polls PostgreSQL in vain: time passes, so leases end, or those that give up do so. */
bool runner_pass_time_sql(struct request_runner *runner);
/* Writes to the record who polls now. */
void runner_note_polls(struct request_runner *runner);
/* Lets the statement run at which ACTOR is held, and describes it in STEP. */
bool runner_run_statement(struct request_runner *runner, struct actor *actor, struct run_step *step);

/* ---- footprints; request_footprints.c; with the gate's lock ----- */

/* The requests have come to their first statements. */
void runner_footprints_begin(struct request_runner *runner);
/* ACTOR is about to make a transition of KIND; and it has made it. */
void runner_footprint_before(struct request_runner *runner, const struct actor *actor,
                             enum transition_kind kind);
void runner_footprint_after(struct request_runner *runner, const struct actor *actor,
                            enum transition_kind kind);

/* ---- faults; with the gate's lock ----- */

/* The fault of the settings can happen to ACTOR now. */
bool runner_can_fault(const struct request_runner *runner, const struct actor *actor);
/* Closes the connections on which ACTOR works; what it sends from now on is refused. */
bool runner_crash(struct request_runner *runner, struct actor *actor);

/* The held statement of CONNECTION is a separate transaction: none is open, and it brings no BEGIN. */
bool runner_runs_alone(const struct gate_connection *connection);
/* It gets a step for its COMMIT. */
bool runner_splits(const struct request_runner *runner, const struct gate_connection *connection);

/* ---- the pool; request_pool.c ----- */

/* Sends the requests that occupy connections. With the gate's lock, as the next ones. */
bool runner_send_occupiers(struct request_runner *runner);
/* Another request than ACTOR is held or blocked on connection AT. */
bool runner_is_taken(const struct request_runner *runner, const struct actor *actor, size_t at);
/* Closes a connection of an occupier if it is time for that: then the pool has room for another one. */
void runner_free_connection(struct request_runner *runner);
/* Others use the whole pool, so ACTOR, which has sent no statement, waits for a connection. */
bool runner_pool_is_busy(const struct request_runner *runner, const struct actor *actor);
/* While others wait for a connection: is the statement held on CONNECTION the next one of ACTOR, as far as one request alone tells? */
bool runner_may_send(const struct request_runner *runner, const struct actor *actor,
                     const struct gate_connection *connection);
/* ACTOR has sent TEXT, which runs now. */
void runner_note_sent(const struct request_runner *runner, struct actor *actor, const char *text);
/* ACTOR has sent the statement that is held on CONNECTION, which belonged to another request before: keeps it if a transaction is open there. */
void runner_note_stranger(struct request_runner *runner, const struct actor *actor,
                          const struct gate_connection *connection);
/* Starts the thread of ACTOR, and waits until it has come to rest. */
bool runner_send(struct request_runner *runner, struct actor *actor);

/* ---- the record ----- */

/* A new step of ACTOR, at the end of the record. NULL: there are too many. */
struct run_step *runner_add_step(struct request_runner *runner, unsigned actor, enum transition_kind kind);

#endif
