/* The running service: what all handlers share, and what each worker owns. */
#ifndef OVERSELL_SERVICE_API_SERVICE_H
#define OVERSELL_SERVICE_API_SERVICE_H

#include "base/queue.h"
#include "db/postgres/connection.h"
#include "lock/lock.h"
#include "service/api/shared.h"
#include "service/classroom/sandbox.h"
#include "service/config/config.h"
#include "service/engine/unsold.h"
#include "service/http/server.h"
#include "service/orders/product_queue.h"
#include "service/orders/sales.h"
#include "service/orders/trace.h"
#include "service/runs/runs.h"
#include "service/write_behind/order_ids.h"
#include "service/write_behind/redis_stock.h"
#include "service/write_behind/writer.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where a handler runs. */
enum lane {
    LANE_HTTP,    /* at once, on the HTTP thread: nothing that waits */
    LANE_ORDERS,  /* on the HTTP thread, which puts the order into the admission queue for a worker */
    LANE_READS,   /* on threads of their own, so that a look at the books never waits behind orders … */
    LANE_CHANGES, /* … nor behind a reset or a switch, which wait for orders to end */
    LANE_HOLDS,   /* locks taken by hand, each of which keeps a thread */
    LANE_STEPS,   /* the step-through, each of whose threads has an explorer */
    LANE_COUNT
};

enum { READ_WORKERS = 2, CHANGE_WORKERS = 4, HOLD_WORKERS = 32, STEP_WORKERS = 4, SIDE_QUEUE = 256 };

/* A thread that handles exchanges of one lane, and what it alone uses. */
struct worker {
    struct service *service;
    pthread_t thread;
    enum lane lane;
    int id; /* within its lane */
    struct db *db;
    struct lock **locks;       /* by strategy index; opened when first needed */
    struct redis_stock *stock; /* opened when first needed */
    struct explorer *explorer; /* LANE_STEPS; started when first needed */
    struct trace_ring *traces; /* LANE_ORDERS */
};

struct service {
    struct config config;
    char instance[INSTANCE_MAX + 1];
    struct product_queues *orders; /* the admission queue, and the settings of the products */
    struct sales sales;
    struct unsold_list *unsold; /* units of failed orders that are still to be given back */
    struct order_ids *ids;      /* for orders that are accepted in Redis … */
    struct writer *writer;      /* … and what writes them to PostgreSQL; NULL: nothing */
    struct http *http;          /* the main thread's; requests may come before it is set */
    atomic_uint port;           /* where it listens; 0: not known yet */
    struct runs *runs;
    struct shared *shared;
    struct sandboxes *sandboxes;
    char class_code[16];              /* "" where there is no class */
    struct queue *queues[LANE_COUNT]; /* NULL for LANE_HTTP and LANE_ORDERS */
    struct worker *workers;           /* lane by lane, those of LANE_ORDERS first */
    int worker_count;
    struct trace_ring **traces; /* of the order workers */
    atomic_bool draining;
    atomic_int holds;     /* locks that are held, or waited for, by hand */
    atomic_int searches;  /* that explorers are busy with */
    atomic_bool migrated; /* the schema is known to be in place */
};

/* Starts the workers; false with nothing left running. */
bool workers_start(struct service *service);
/* Lets what is queued be handled, then ends the threads. */
void workers_stop(struct service *service);

/* The number of orders that wait or are being placed: of one product, or of all (0). */
int orders_running(const struct service *service, int64_t product_id);

/* DB, connected and with the schema in place, by the deadlines that it has. DB_OK, or why not. Any thread. */
enum db_status service_database(struct service *service, struct db *db);
/* The worker's database, connected and with its schema in place, and with these deadlines (see db_set_deadline).
 * DB_OK, or why not. */
enum db_status worker_database(struct worker *worker, int64_t deadline_us, int64_t lock_deadline_us);
/* The worker's handle of the strategy's lock; NULL where it has none. *ret_status tells if it could be opened. */
struct lock *worker_lock(struct worker *worker, const struct strategy *strategy,
                         enum lock_status *ret_status);

/* The worker's connection to where stock lies in Redis; NULL when out of memory. */
struct redis_stock *worker_stock(struct worker *worker);

/* Takes a complete request from service/http/server.c: routes it, checks what is common to all, and hands it to its lane. */
bool service_dispatch(struct exchange *x);
void service_refuse(struct exchange *x, int status, const char *detail);

#endif
