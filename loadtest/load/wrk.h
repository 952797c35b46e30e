/* Runs wrk with order.lua for a number of orders or a duration, and counts the answers of each kind. */
#ifndef OVERSELL_LOADTEST_LOAD_WRK_H
#define OVERSELL_LOADTEST_LOAD_WRK_H

#include "loadtest/testbed/testbed.h"

#include <stdbool.h>
#include <stdint.h>

struct load {
    struct testbed *testbed;
    int64_t connections; /* in all; rounded up to a multiple of the instances */
    int64_t quantity;    /* units an order */
    int64_t product;
    int64_t requests;  /* stop after this number of orders; 0: no limit */
    int64_t window_ms; /* stop after so long; 0: no such limit (one of the two must be set) */
    int64_t settled;   /* stop after this number of "sold out" answers in a row; 0: never */
    /* orders whose answer says retry are sent again, until one of a client's orders has got no other answer for so long; 0: they are not
     * */
    int64_t stuck_ms;
    int64_t patience_ms; /* give up after so long without a single answer */
    const char *what;    /* what orders, for a message about a wait: a strategy; NULL: not said */
    /* Called every now and then; may be NULL. */
    void (*progress)(void *context, int64_t answers, int64_t created, double elapsed_s);
    void *context;
};

/* How orders were answered. requests = created + sold_out + busy + errors, each the sum of those below it. */
struct answers {
    int64_t requests;
    int64_t created; /* 201, or 202 if the order is written later */
    int64_t sold_out;
    int64_t busy; /* the client may retry: */
    int64_t lock_busy, conflict, overloaded, lock_lost;
    int64_t errors;
    int64_t unavailable; /* a backend is away */
    int64_t unknown;     /* the service says that it does not know whether the order was made */
    int64_t unanswered;  /* sent, and the connection broke */
    int64_t other;
    /* created orders that were certainly sent after another client had been refused as "sold out" */
    int64_t created_late;
};

/* What a load of a number of orders sold over time. */
enum { SALE_SLOTS_MAX = 64, LOAD_PERCENTILES = 7, LOAD_P99 = 5 };

struct sale_series {
    int64_t slot_us; /* width of a slot; 0: nothing was recorded */
    size_t count;
    int64_t sold[SALE_SLOTS_MAX]; /* units up to the end of each slot */
    int64_t left
        [SALE_SLOTS_MAX]; /* units that the last order of the slot left, as it saw the stock; SALE_UNSEEN: no order said so */
};

#define SALE_UNSEEN INT64_MIN

/* The shares of load_result.latency_us: 0.25, 0.5, … */
extern const double load_percentiles[LOAD_PERCENTILES];

struct load_result {
    struct sale_series sale;
    int64_t latency_us[LOAD_PERCENTILES]; /* of all answers, from the sending of each request; 0: unknown */
    struct answers answers;
    int64_t socket_connect, socket_read, socket_write, slow; /* wrk's own counts; slow: answers after 10 s */
    double elapsed_s;       /* from the first order sent to the last answer */
    int64_t window_created; /* created inside the window */
    double window_s;
};

/* Connections that a load really opens. */
int64_t load_connections(const struct load *load);
/* Sends the load and waits for every answer. False, having said why on stderr unless it was an interrupt. */
bool load_run(const struct load *load, struct load_result *ret_result);
/* Reads wrk's result line, the JSON of order.lua's done(). */
bool load_result_parse(const char *text, struct load_result *ret_result);

#endif
