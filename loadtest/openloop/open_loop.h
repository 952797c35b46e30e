/* An open-loop load: every order is sent when its buyer comes, whether or not the orders before it have been answered,
 * and its latency counts from that moment, not from when there was a connection for it. So a service that falls behind
 * shows the delay that its buyers would see, where a closed loop (wrk.h) would only come less often. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_OPEN_LOOP_H
#define OVERSELL_LOADTEST_OPENLOOP_OPEN_LOOP_H

#include "loadtest/client/answer.h"
#include "loadtest/openloop/schedule.h"
#include "loadtest/stats/hdr.h"
#include "loadtest/testbed/testbed.h"

/* An arrival that this program itself gets round to so much too late is counted as late. */
#define LATE_MS 10

struct open_load {
    struct testbed *testbed; /* its services take turns */
    const struct schedule *schedule;
    int64_t first_product;
    size_t products;
    int64_t quantity;    /* units an order */
    int64_t connections; /* open before the start; as many orders are under way at most */
    int64_t backlog;     /* arrivals that may wait for a connection; one more is dropped */
    int64_t timeout_ms;  /* of an order, from its arrival */
    /* Called every now and then; may be NULL. */
    void (*progress)(void *context, int64_t answers, int64_t created, double elapsed_s);
    void *context;
};

/* What became of the arrivals: scheduled = dropped + timed_out_waiting + timed_out_sent + unanswered + the answers. */
struct open_counts {
    int64_t scheduled;
    int64_t dropped;           /* neither a connection nor a place in the backlog was free */
    int64_t timed_out_waiting; /* never sent */
    int64_t timed_out_sent;    /* sent and given up: the order may have been made */
    int64_t unanswered;        /* the connection broke or could not be had: the same */
    int64_t answers[ANSWER_COUNT];
    int64_t late; /* of all of these */
};

/* What clients know of one product. */
struct open_sales {
    int64_t created; /* by 201 or 202 */
    int64_t unclear; /* orders that may have been made */
};

/* What happened over time. Slot I ends I + 1 slots after the start; the last one also has what came later. */
enum { OPEN_SLOTS = 60, OPEN_SLOTS_MAX = OPEN_SLOTS + 20 /* even */ };

struct open_series {
    /* a share 1 / OPEN_SLOTS of the time in which buyers arrive; longer if the answers take long */
    int64_t slot_us;
    int64_t arrived[OPEN_SLOTS_MAX], answered[OPEN_SLOTS_MAX];
    int64_t given_up[OPEN_SLOTS_MAX]; /* dropped, timed out, or without an answer */
};

struct open_result {
    struct open_series series;
    struct open_counts phases[PHASES_MAX]; /* by the arrival's phase */
    struct hdr *latencies;                 /* of phase P and answer A: [P * ANSWER_COUNT + A] */
    struct open_sales *sales;              /* of each product */
    int64_t most_waiting;                  /* arrivals without a connection, at the worst moment … */
    int64_t behind;                        /* … and when the last arrival had come */
    int64_t worst_lag_us;                  /* by which this program got round to an arrival too late */
    double elapsed_s;                      /* from the start to the last answer */
};

/* Carries the whole schedule out. False, having said why on stderr unless it was an interrupt; else the result is to be
 * freed. */
bool open_load_run(const struct open_load *load, struct open_result *ret_result);
void open_result_free(struct open_result *result);

const struct hdr *open_latency(const struct open_result *result, size_t phase, enum answer answer);
/* The sums over all phases. */
struct open_counts open_totals(const struct open_result *result);
int64_t open_answered(const struct open_counts *counts);

#endif
