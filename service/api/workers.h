/* Workers for HTTP calls that may wait, other than orders (those have their own workers, service/orders/order_worker.h). */
#ifndef OVERSELL_SERVICE_API_WORKERS_H
#define OVERSELL_SERVICE_API_WORKERS_H

#include "db/postgres/connection.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct service;

/* Where a handler runs. */
enum lane {
    LANE_HTTP,     /* at once, on the HTTP thread: nothing that waits */
    LANE_ORDERS,   /* on the HTTP thread, which puts the order into the admission queue */
    LANE_READS,    /* on separate threads, so that reading never waits behind orders … */
    LANE_CHANGES,  /* … nor behind a reset or a switch, which wait for orders to end */
    LANE_READY,    /* GET /readyz alone: a flood of reads must not make the service look down */
    LANE_HOLDS,    /* locks taken by hand, each of which keeps a thread */
    LANE_STEPS,    /* the step-through, each of whose threads has an explorer … */
    LANE_SEARCHES, /* … and so have these, so that a step never waits for a search, which takes seconds */
    LANE_COUNT
};

/* Does an explorer answer its calls? Those of a learner are counted (steps_begin_call). */
static inline bool lane_has_steps(enum lane lane)
{
    return lane == LANE_STEPS || lane == LANE_SEARCHES;
}

enum {
    READ_WORKERS = 2,
    READY_WORKERS = 1,
    CHANGE_WORKERS = 4,
    HOLD_WORKERS = 32,
    STEP_WORKERS = 2,
    SEARCH_WORKERS = 2,
    SEARCH_QUEUE = 10, /* about a minute of the longest searches */
    SIDE_QUEUE = 256
};

/* Calls other than orders of one client address that may wait in all lanes together: a part of each queue, so that there is room
 * for others. */
enum { CALLS_OF_ADDRESS = SIDE_QUEUE / 4, SEARCHES_OF_ADDRESS = 4 };

/* A thread that calls the handlers of one lane. All but SERVICE is used by this thread alone. */
struct worker {
    struct service *service;
    pthread_t thread;
    enum lane lane;
    struct db *db;
    struct redis_stock *stock; /* opened when first needed */
    struct explorer *explorer; /* LANE_STEPS and LANE_SEARCHES; started when first needed */
};

/* Starts the workers of all lanes from LANE_READS on. False: out of memory or threads, and no thread is left. */
bool workers_start(struct service *service);
/* Ends the threads after the call that each is handling. Calls that still wait are refused, because each may last as long as an
 * order, and hundreds can wait. False: some threads still wait for a lock by hand, which may take minutes; they are left as they are, and
 * nothing is freed. */
bool workers_stop(struct service *service);

/* The worker's database, connected and with its schema in place, and with these deadlines (see db_set_deadline).
 * DB_OK, or why not. */
enum db_status worker_database(struct worker *worker, int64_t deadline_us, int64_t lock_deadline_us);
/* The worker's connection to the stock in Redis; NULL: out of memory. */
struct redis_stock *worker_stock(struct worker *worker);

#endif
