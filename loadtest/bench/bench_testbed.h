/* Runs the benchmark's measurements on a private stack. Each starts with the shop in the same fresh state, and measures a service,
 * pgbench, or locks that this process takes. */
#ifndef OVERSELL_LOADTEST_BENCH_BENCH_TESTBED_H
#define OVERSELL_LOADTEST_BENCH_BENCH_TESTBED_H

#include "loadtest/bench/connections.h"
#include "loadtest/bench/earlier_orders.h"
#include "loadtest/bench/lock.h"
#include "loadtest/bench/references.h"
#include "loadtest/bench/script.h"
#include "loadtest/cli/progress.h"
#include "loadtest/client/scrape.h"
#include "loadtest/testbed/testbed.h"

#define AMPLE_STOCK 1000000000 /* more than a measurement can sell */
#define HOT_PRODUCT 1
#define SPREAD_FIRST 1001
#define SPREAD_PRODUCTS 1000

struct bench_testbed {
    bool has_shop;       /* set before bench_testbed_open: PostgreSQL and the products are needed … */
    const char *locks;   /* … and the servers of these locks, names with commas between; NULL: none */
    struct testbed base; /* the stack; for the shop also an idle service, which has made the schema */
    struct db *db;       /* the shop's; NULL if there is none */
    int64_t seconds;     /* of each measurement */
    int64_t connections; /* of wrk, where nothing else is said */
    int64_t workers;     /* of the service, where nothing else is said; 0: its default */
    int64_t
        products; /* with stock, in addition to the hot one; 0: SPREAD_PRODUCTS. Set before bench_testbed_open. */
    struct earlier_orders earlier;
    bool zookeeper_is_warm; /* it has been under load */
    struct progress *progress;
    const char
        *profile; /* record where the service's time goes during orders, under this name; NULL: do not */
    struct histogram
        created; /* seconds that the service took for each order that measure_service counted as created */
    int64_t refused;  /* orders of measure_service that the service refused to place in time */
    double written_s; /* seconds from the last answer until all accepted orders were written */
    bool broken;      /* a promise was broken: clients and database do not agree */
    /* Why the measurement that has just failed is not possible on this machine; "": it should be, so the run ends. */
    char unavailable[REASON_SIZE];
};

/* Starts the stack and, for the shop, makes the products. False, having said why on stderr; then there is nothing to close. */
bool bench_testbed_open(struct bench_testbed *bench);
void bench_testbed_close(struct bench_testbed *bench);

/* The answers that a load should get, and that are counted. */
enum counted { COUNT_CREATED, COUNT_SOLD_OUT, COUNT_ECHOED };

/* Orders to one service, through wrk. */
struct service_load {
    const char *strategy;
    const char *path; /* NULL: /orders */
    enum counted counted;
    int64_t first, products, stock;
    const char *kind;    /* of the stock of the one product; NULL: counter */
    int64_t workers;     /* 0: those of the testbed */
    int64_t connections; /* 0: those of the testbed */
    bool may_refuse;     /* an answer that asks to try again later is no broken promise */
    int64_t pages;       /* open meanwhile: workshop pages that show the first product … */
    int64_t learners;    /* … or the pages of this many learners, and the class board */
    bool classroom;      /* the service has a class */
    int64_t seconds;
};

/* Each measures from a fresh state and checks afterwards that the books are right. False, having said why on stderr
 * unless it was an interrupt. */

/* Answers a second. Any other answer than those that should come is a broken promise. Orders that were accepted are
 * awaited: bench->written_s is how long that took. */
bool measure_service(struct bench_testbed *bench, const struct service_load *load, double *ret_per_s);
/* GET requests a second, of one path of the service. */
bool measure_get(struct bench_testbed *bench, const char *path, double *ret_per_s);
/* Orders a second; of no stock, transactions that could make as many. */
bool measure_pgbench(struct bench_testbed *bench, const struct script *script, int64_t first,
                     int64_t products, int64_t stock, int64_t clients, int64_t seconds, double *ret_per_s);

/* What an order costs the service, from which the start and the first orders are taken away. */
struct order_calls {
    double system_calls;
    double allocations; /* malloc, calloc and realloc */
    double round_trips; /* to the database */
};
/* Measures over the given number of orders. On false, bench->unavailable says why this machine cannot measure it. */
bool measure_calls(struct bench_testbed *bench, const struct service_load *load, int64_t orders,
                   struct order_calls *ret_calls);

/* Resident MiB of the service while CONNECTIONS are open. */
bool measure_memory(struct bench_testbed *bench, int64_t connections, double *ret_mib);
/* The latency of the answers to the load's orders, over the load's connections. */
bool measure_latencies(struct bench_testbed *bench, const struct service_load *load,
                       struct latencies *ret_latencies);

/* The same with locks: on false, bench->unavailable says why, unless it was an interrupt. */

/* Acquisitions, each with its release, a second. */
bool measure_lock_cycles(struct bench_testbed *bench, const struct lock_driver *driver,
                         enum lock_rivalry rivalry, size_t threads, int64_t ms, double *ret_per_s);
/* What a case is compared with, on its SERVER; CASE_NAME and NAME are for people. */
bool measure_reference(struct bench_testbed *bench, const struct lock_server *server, reference_fn *reference,
                       const char *case_name, const char *name, size_t threads, double *ret_per_s);
bool measure_hand_overs(struct bench_testbed *bench, const struct lock_driver *driver, size_t threads,
                        int64_t ms, struct hand_overs *ret_hand_overs);

#endif
