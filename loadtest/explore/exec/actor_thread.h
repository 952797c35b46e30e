/* An actor: one order at a time, placed by a thread of its own through the service's engine, and held at every step until
 * the controller lets it go. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_ACTOR_THREAD_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_ACTOR_THREAD_H

#include "loadtest/explore/core/transition.h"
#include "loadtest/explore/exec/product_schema.h"
#include "service/engine/create_order.h"

#include <pthread.h>

enum { EVENTS_MAX = 1024 };

enum actor_state {
    ACTOR_HELD,    /* before its first step, or after one */
    ACTOR_RUNNING, /* on its way to the next; or PostgreSQL lets it wait */
    ACTOR_WAITING, /* it found the lock taken, and is held until it shall try again, or sleeps until it is woken */
    ACTOR_ENDED,
    ACTOR_CRASHED, /* its thread has ended in the middle of its order */
};

/* What an order has of its lock. */
struct lock_hold {
    struct lock_grant grant; /* a copy: a release spends the other */
    int depth;               /* how often it has it: 0 while it waits, and after the release */
    /* The server knows of it: also where only the first of two commands is done, and in a release … */
    bool has_grant;
    bool is_place; /* … or of its place in the queue, and it has no more than that … */
    bool is_over;  /* … and somebody or something has ended that */
};

/* What the actors of a play and its controller share. */
struct execution_trace {
    pthread_mutex_t mutex;
    pthread_cond_t stopped; /* an actor is no longer running */
    struct event events[EVENTS_MAX];
    size_t event_count;
    uint64_t stops; /* how often an actor has stopped running */
    bool runs_free; /* the schedule is over: nobody is held any more, and who finds the lock taken is busy */
    uint8_t
        last_step; /* the step after which an order has nothing more to do, so that it need not be held; or STEP_COUNT */
};

struct actor {
    struct observer observer; /* first: the callbacks get its address */
    struct execution_trace *trace;
    uint8_t index;
    const char *url; /* of the database; not ours */
    pthread_t thread;
    pthread_cond_t go;
    /* Guarded by the scene's mutex: */
    enum actor_state state;
    bool released, quits, dies, times_out;
    bool is_placing; /* its thread is inside an order */
    bool may_try;    /* WAITING: an event since then may have freed the lock */
    bool sleeps;     /* WAITING: until this has happened, NULL: for ever; else it is to try again */
    bool (*has_ended)(void *context);
    void *context;
    unsigned waits_for; /* RUNNING: bits of the actors that PostgreSQL lets it wait for */
    /* The thread's own while it runs: */
    struct db *db;
    struct lock *lock;
    struct lock_hold hold;
    unsigned cuts; /* servers of its lock that it cannot reach … */
    char *servers; /* … and the list in which they are missing, malloc'ed; NULL: it reaches all */
    struct order_request request;
    struct placing placing;
};

void trace_init(struct execution_trace *trace);
void trace_destroy(struct execution_trace *trace);
/* Notes what happened. The mutex is held. */
void trace_event(struct execution_trace *trace, uint8_t actor, uint8_t what, int64_t value);

/* The controller waits until an actor stops running, or until the monotonic time UNTIL_US. The mutex is held. False: the
 * time is over. Like any wait for a condition it may also return true without a cause. */
bool trace_wait(struct execution_trace *trace, int64_t until_us);

/* Starts the thread; the actor is held before its first step. LOCK (which may be NULL) becomes the actor's own. False:
 * there is no thread or no memory, or no database; RET_ERROR of SIZE bytes says which. */
bool actor_open(struct actor *actor, struct execution_trace *trace, uint8_t index, const char *url,
                char *ret_error, size_t size);
/* Gives the actor its next order's strategy; it must not be running. One that has crashed begins a new life, as the next
 * process: NEXT_PROCESS is used up where locks are to take each actor for a process of its own, NULL: all are one. */
bool actor_prepare(struct actor *actor, const struct strategy *strategy, int64_t product_id, int64_t quantity,
                   unsigned *next_process, char *ret_error, size_t size);
/* Lets it go on. The mutex is held. */
void actor_release(struct actor *actor);
/* Ends it in the middle of its order: its thread, its connections, and the locks that are its memory. It must be held,
 * or on its way to its end because it dies.
 * What the servers know of it stays, but for SCHEMA's sessions of it, which have gone when this returns. The mutex is held,
 * but not meanwhile. */
bool actor_crash(struct actor *actor, struct product_schema *schema);
/* Ends the thread, which must be held before its first step, or have ended. */
void actor_close(struct actor *actor);

/* For the actor's lock: holds the thread because the lock is taken. False: it shall give up. */
bool actor_wait(struct actor *actor);
/* For the actor's lock, before it asks its server for anything: ends the thread here where the actor is to die. */
void actor_die_if_due(struct actor *actor);

/* The server process that works for it, or "". */
const char *actor_session(const struct actor *actor);

#endif
