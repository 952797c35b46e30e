/* Runs a few requests to a user's service in a given sequence: each is held at its next statement until the caller lets it run. At any
 * moment one request at most runs, so the next statement belongs to that request, on any connection. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_REQUEST_RUNNER_H

#include "loadtest/own/cause/run_record.h"
#include "loadtest/own/gate/statement_gate.h"
#include "loadtest/own/polls/idle_polls.h"
#include "loadtest/own/redis/redis_control.h"
#include "loadtest/own/shop_http.h"
#include "loadtest/own/shop_service.h"
#include "loadtest/search/statement_footprint.h"
#include "loadtest/search/transition.h"

enum { OCCUPIERS_MAX = 40 }; /* further requests, which occupy connections of a pool */

struct request_runner;

struct runner_settings {
    const struct shop_plan *plan; /* of the service, which is restarted if a request does not end */
    struct shop_service *service;
    struct shop_database *database; /* the real one, not by way of the gate */
    struct gate *gate;              /* in front of PostgreSQL and, if REDIS is not NULL, Redis */
    struct redis_control *redis;    /* NULL: the service is not given one */
    bool redis_is_ours;             /* it is emptied before each schedule */
    enum transition_kind fault;     /* may happen once in each schedule; TRANSITION_STEP: none */
    /* pattern of the keys that TRANSITION_EXPIRE ends; NULL: all that look like locks */
    const char *expire_key;
    size_t requests;
    bool reads_stock; /* after each statement that ends a transaction */
    int64_t stock;
};

/* NULL, having said why on stderr. */
struct request_runner *runner_open(const struct runner_settings *settings);
void runner_close(struct request_runner *runner);
/* How long a request is silent until it counts as waiting in the program. */
int64_t runner_quiet_ms(const struct request_runner *runner);
/* The longest silence of a request so far becomes the base of that time. Before it none counts as waiting there. */
void runner_measure(struct request_runner *runner);
/* From the next start, with one request alone: looks whether that sends two statements at the same time. */
void runner_watch(struct request_runner *runner, bool watches);
/* Two such statements; "": none were seen. Of these the runner runs one after the other, always in the same sequence. */
const char *runner_at_once(const struct request_runner *runner);
/* From the next start: what runs inside statements, which must outlive the runner. Statements outside a transaction that are not atomic get
 * a step for their COMMIT, as if they were in one. */
void runner_set_routines(struct request_runner *runner, const struct routines *routines);
/* From the next start: what is known of the database. All false at first. */
void runner_set_nature(struct request_runner *runner, const struct shop_nature *nature);
/* From the next start: as many requests, and READS_STOCK of the settings. */
void runner_set(struct request_runner *runner, size_t requests, bool reads_stock);

/* From the next start: before the requests of the schedule, as many more are sent and held at their first statements, so that they occupy
 * connections of the service's pool. 0: none. FREES: once each request of the schedule has sent a statement, one of these connections is
 * closed, so that the pool has another one from then on. */
void runner_occupy(struct request_runner *runner, size_t connections, bool frees);
/* Finds out how many connections the pool of the service has: sends requests until one waits in the program and the others are held in
 * PostgreSQL. RET_SIZE is 0 if there is no pool or no SQL at the beginning, and OCCUPIERS_MAX if it has that many or more. Ends them all; nothing of them has
 * run. */
bool runner_measure_pool(struct request_runner *runner, size_t *ret_size);
/* The statements of the last schedule are those of one request alone: they tell later whose a statement is. */
void runner_learn(struct request_runner *runner);
/* One request alone takes a lock that belongs to its session. */
bool runner_locks_session(const struct request_runner *runner);

/* Runs A for STEPS statements and then B alone. If B then polls PostgreSQL, it gets some time alone, to find out whether it gives up; the
 * searches after that let it do so at every point (TRANSITION_TIMEOUT). Then both run to their ends. RET_DONE: A has fewer statements. */
bool runner_try_polls(struct request_runner *runner, unsigned steps, bool *ret_done);
/* From now on each poll may be waited out, also one of which it is not known how it ends. */
void runner_wait_out_all(struct request_runner *runner);

/* Resets, and sends the requests up to their first statements. The functions return false having said why on stderr. */
bool runner_start(struct request_runner *runner);
/* Will runner_start start the service, because the last schedule has left requests without an end? */
bool runner_starts_again(const struct request_runner *runner);
/* From the next start: TABLES, which must outlive the runner, tell what the statements touch. NULL: runner_footprint is not called. */
void runner_trace(struct request_runner *runner, const struct known_tables *tables);
/* What the last transition has read and written in PostgreSQL, as far as it is known. What requests share in the memory of the program, in
 * files or in other services is not in it. */
struct footprint runner_footprint(const struct request_runner *runner);

/* The requests that are held, and the faults that can happen, as transitions; returns their number, at most ENABLED_MAX. */
size_t runner_enabled(struct request_runner *runner, struct transition *ret_transitions);
/* TRANSITION_STEP lets the actor run to its next statement, or until it waits, or to its answer; and those that waited for it.
 * TRANSITION_TIMEOUT: it alone repeats what it polls until it gives up. TRANSITION_EXPIRE: the keys that it holds as locks in Redis are gone. TRANSITION_CRASH: its connections to PostgreSQL that are in use are
 * closed, and nothing that it does from now on reaches a server. TRANSITION_CUT: its statement is done, and the connection is lost before
 * the answer. */
bool runner_apply(struct request_runner *runner, struct transition transition);
/* Bits of the requests that wait in the program. */
unsigned runner_inside(const struct request_runner *runner);
/* While all other requests are held, waits until a request that runs in the program continues, for at most as long as for a stuck one. */
bool runner_await_silent(struct request_runner *runner);
/* Ends what is stuck, and reads stock and orders. */
bool runner_end(struct request_runner *runner);
/* Hash of what has happened since the start. Literals and parameters are left out, since they may differ in each run. */
uint64_t runner_fingerprint(const struct request_runner *runner);
const struct run_record *runner_record(const struct request_runner *runner);

#endif
