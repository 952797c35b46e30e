/* An actor: a thread that places one order at a time through the service's engine. The engine reports each step to the actor's
 * observer, which holds the thread there until the controller releases it. The events go into a trace that all actors share. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_ACTOR_THREAD_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_ACTOR_THREAD_H

#include "base/recorder.h"
#include "loadtest/explore/exec/product_schema.h"
#include "loadtest/search/transition.h"
#include "service/engine/create_order.h"

#include <pthread.h>

enum { EVENTS_MAX = 1024 };

enum actor_state {
    ACTOR_HELD,    /* before its first step, or after a step */
    ACTOR_RUNNING, /* on its way to the next step, or blocked in PostgreSQL */
    ACTOR_WAITING, /* it found the lock taken: held until it may try again, or sleeps in the lock's queue */
    ACTOR_ENDED,
    ACTOR_CRASHED, /* its thread was ended in the middle of its order */
};

/* What an actor has of its lock: a grant, a place in the queue, or nothing. */
struct lock_hold {
    struct lock_grant grant; /* a copy, since a release clears the engine's own */
    int depth;      /* how many times the actor holds the lock; 0 while it waits and after the release */
    bool has_grant; /* the server knows of GRANT, perhaps only by the first of two commands */
    bool is_place;  /* GRANT is only a place in the lock's queue */
    bool is_over;   /* a fault or another actor has ended it */
};

/* The trace of an execution, with the lock under which actors and controller take turns. */
struct execution_trace {
    pthread_mutex_t mutex;
    pthread_cond_t stopped; /* signalled when an actor stops running */
    struct event events[EVENTS_MAX];
    size_t event_count;
    uint64_t stops; /* how many times an actor has stopped running */
    bool runs_free; /* the schedule is over: no actor is held, and one that finds the lock taken gives up */
    /* actors are not held after it, since nothing can come between it and the end; or STEP_COUNT */
    uint8_t last_step;
    struct recorder *recorders[ACTORS_MAX]; /* of what each actor sends; NULL: it is not recorded */
};

struct actor {
    struct observer observer; /* first, since the callbacks get its address */
    struct execution_trace *trace;
    uint8_t index;
    const char *url; /* of the database; borrowed */
    pthread_t thread;
    pthread_cond_t go;
    /* Guarded by the trace's mutex: */
    enum actor_state state;
    bool released, quits, dies, times_out;
    bool is_placing; /* its thread is inside an order */
    bool may_try;    /* WAITING: the lock may have become free since */
    bool sleeps;     /* WAITING: until HAS_ENDED says so (NULL: for ever); otherwise it will try again */
    bool (*has_ended)(void *context);
    void *context;
    unsigned waits_for; /* RUNNING: bits of the actors that block it in PostgreSQL */
    /* Used by the thread alone while it runs: */
    struct db *db;
    struct lock *lock;
    struct lock_hold hold;
    unsigned cuts; /* servers of its lock that it cannot reach … */
    char *servers; /* … and the list of servers that it uses instead, malloc'ed; NULL: it reaches all */
    struct order_request request;
    struct placing placing;
};

void trace_init(struct execution_trace *trace);
void trace_destroy(struct execution_trace *trace);
/* Appends an event. The mutex is held. */
void trace_event(struct execution_trace *trace, uint8_t actor, uint8_t what, int64_t value);

/* The number of the last event, from number SINCE on, in which ACTOR reported WHAT; or NO_EVENT. */
#define NO_EVENT SIZE_MAX
size_t trace_last(const struct execution_trace *trace, size_t since, size_t actor, uint8_t what);

/* The controller waits until an actor stops running, or until the monotonic time UNTIL_US. The mutex is held. False: the
 * time is over. Like any wait for a condition it may also return true without a cause. */
bool trace_wait(struct execution_trace *trace, int64_t until_us);

/* Starts the thread; the actor is held before its first step. TRACE and URL are borrowed. False, with RET_ERROR (SIZE bytes):
 * out of memory or threads. */
bool actor_open(struct actor *actor, struct execution_trace *trace, uint8_t index, const char *url,
                char *ret_error, size_t size);
/* Sets up the actor's next order, for which its lock is open; it must not be running. A crashed actor gets a new thread. False, with
 * RET_ERROR. */
bool actor_prepare(struct actor *actor, const struct strategy *strategy, int64_t product_id, int64_t quantity,
                   char *ret_error, size_t size);
/* Releases the held thread. The mutex is held. */
void actor_release(struct actor *actor);
/* Crashes a held actor: ends its thread, its connections, and locks in its memory. Leases on servers stay; its sessions in
 * SCHEMA's database are gone when this returns. The mutex is held, and released meanwhile. False, with SCHEMA's error. */
bool actor_crash(struct actor *actor, struct product_schema *schema);
/* Ends the thread, which must be held before its first step or have ended, and frees what the actor owns, except its lock. */
void actor_close(struct actor *actor);

/* Called by the actor's lock, which is taken: holds the thread. False: the lock must give up. */
bool actor_wait(struct actor *actor);
/* Called by the actor's lock before it asks its server: ends the thread here if the actor has crashed. */
void actor_die_if_due(struct actor *actor);

/* The process id of its PostgreSQL session, or "". */
const char *actor_session(const struct actor *actor);

#endif
