/* The named steps of an order, and the observer that is called after each of them.
 *
 * A step's name says what has just been done. The trace, the think time, the fault injector and the explorer are observers.
 * Without an observer a step costs one branch. */
#ifndef OVERSELL_BASE_OBSERVER_H
#define OVERSELL_BASE_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum step {
    STEP_WAIT,         /* a lock is taken by somebody else, and the order starts to wait for it */
    STEP_LOCK,         /* the lock is held */
    STEP_FENCE,        /* the fencing token is registered on the product's row */
    STEP_READ,         /* the transaction is open and the stock has been read */
    STEP_WRITE,        /* the new stock is written */
    STEP_TAKE,         /* one guarded statement did the work of read and write */
    STEP_INSERT,       /* the order and its item are inserted */
    STEP_COMMIT,       /* the transaction is committed */
    STEP_COMMIT_STOCK, /* the first of two transactions is committed: stock taken, no order yet */
    STEP_COMMIT_ORDER, /* the second of two transactions is committed */
    STEP_UNLOCK,       /* the lock is released */
    STEP_SETNX,        /* a lock that takes two commands has done the first … */
    STEP_EXPIRE,       /* … and given its key a time to live */
    STEP_GET,          /* a release that takes two commands has read the key … */
    STEP_DEL,          /* … and deleted it */
    STEP_CHECK,        /* the lock was asked whether it is still ours */
    STEP_REFUSE,       /* a statement with our fencing token changed no row: the row has a newer token */
    STEP_COUNT
};

/* The step's name in the notation of the explorer and in traces; static storage. */
const char *step_name(enum step step);

/* The value of a step that has none. */
#define STEP_NO_VALUE INT64_MIN

struct observer {
    /* Called by the order's own thread after each step; may sleep or block. VALUE is the stock read (READ),
     * the stock written or left (WRITE, TAKE), our fencing token (LOCK, FENCE) or the row's (REFUSE), the answer of the
     * lock's server (UNLOCK, CHECK, GET: 1 if the lock was still ours, 0 if it was not; DEL: how many keys were
     * deleted), else STEP_NO_VALUE. */
    void (*on_step)(struct observer *self, enum step step, int64_t value);
    /* Called in place of a pause before another try. An observer that controls the time sets it. NULL: the thread sleeps. */
    void (*on_pause)(struct observer *self);
    /* Called before a sleep that a server will end. An observer that controls the time sets it. NULL: the thread sleeps.
     * It may block. It returns true when the sleep has ended, and false at a deadline. HAS_ENDED asks the server whether
     * the awaited event has happened; any thread may call it while this call lasts. NULL: nothing will end the sleep. */
    bool (*on_sleep)(struct observer *self, bool (*has_ended)(void *context), void *context);
    /* Locks in the memory of a process take orders with different numbers for orders of different processes. 0: as it is. */
    unsigned process;
};

static inline void report_step(struct observer *observer, enum step step, int64_t value)
{
    if (observer)
        observer->on_step(observer, step, value);
}

/* A pause of PAUSE_US microseconds before another try. */
static inline void pause_order(struct observer *observer, int64_t pause_us)
{
    struct timespec pause = {.tv_sec = pause_us / 1000000, .tv_nsec = pause_us % 1000000 * 1000};
    if (observer && observer->on_pause)
        observer->on_pause(observer);
    else
        nanosleep(&pause, NULL);
}

/* Before a sleep until HAS_ENDED(CONTEXT) would be true: false if the observer says that it is in vain. */
static inline bool begin_sleep(struct observer *observer, bool (*has_ended)(void *context), void *context)
{
    return !observer || !observer->on_sleep || observer->on_sleep(observer, has_ended, context);
}

#endif
