/* A load run as the service keeps it, for service/runs/runs.c and service/runs/load_test.c. */
#ifndef OVERSELL_SERVICE_RUNS_RUNS_IMPL_H
#define OVERSELL_SERVICE_RUNS_RUNS_IMPL_H

#include "service/runs/runs.h"

#include <pthread.h>

enum { RUNS_KEPT = 16, RUN_PLACES_MAX = 256 };

enum run_state { RUN_RUNNING, RUN_DONE, RUN_CANCELLED, RUN_FAILED };

struct run {
    int64_t id; /* 0: none */
    enum run_state state;
    struct run_order order;
    uint16_t port;
    char started_at[32];
    int64_t started_us, ended_us; /* on the monotonic clock; ended_us is 0 while it is in progress */
    json_t *load;                 /* its latest progress report, or NULL */
    json_t *rows;                 /* of the strategies that are done */
    json_t *document;             /* the load test's whole result, or NULL */
    char *traces;                 /* JSON text, or NULL */
    char *text;                   /* the run as JSON, or NULL if it has to be generated again */
    char error[400];              /* the last error */
};

/* A product's place in the queue for runs. */
struct run_place {
    int64_t product_id, asked_us;
    char address[48]; /* as in struct run_order */
};

struct runs {
    const struct config *config;
    pthread_mutex_t mutex; /* guards all below, and every run */
    pthread_cond_t ended;
    struct run kept[RUNS_KEPT];
    int64_t last_id;
    struct run *current;                     /* NULL: none is in progress */
    struct run_place places[RUN_PLACES_MAX]; /* first come, first served */
    int place_count;
    bool cancelled; /* the current run has to end */
    bool stopping;
    bool has_thread; /* THREAD has to be joined */
    pthread_t thread;
};

/* Runs the load test from its start to its end, and notes its output in RUN. For the run's thread, without the mutex. */
void run_load_test(struct runs *runs, struct run *run);
/* Drops the JSON text of the run, because something about the run has changed. The caller holds the mutex. */
void run_changed(struct run *run);

#endif
