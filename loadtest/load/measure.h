/* Puts one strategy under load: sells the stock out once, then sells at full speed, and reads the audit after each. */
#ifndef OVERSELL_LOADTEST_LOAD_MEASURE_H
#define OVERSELL_LOADTEST_LOAD_MEASURE_H

#include "loadtest/cli/progress.h"
#include "loadtest/client/key_probe.h"
#include "loadtest/client/scrape.h"
#include "loadtest/load/wrk.h"
#include "loadtest/stats/verdict.h"
#include "loadtest/testbed/testbed.h"

#include <jansson.h>

/* What a comparison does with every strategy. */
struct plan {
    bool sell_out, throughput; /* the phases */
    bool sell_out_last;        /* throughput first, so that the sell-out's orders stay */
    bool pairs; /* a short sell-out of PAIRS_STOCK units, two per order, precedes the main one */
    int64_t connections;
    int64_t stock;        /* units to sell out */
    int64_t quantity;     /* units an order */
    int64_t requests;     /* orders sent to sell out; 0: four times as many as the stock can serve */
    int64_t duration_ms;  /* of the throughput phase */
    int64_t think_ms;     /* pause inside the critical section */
    int64_t product;      /* the product that is sold; its orders are deleted */
    const char *switched; /* what is switched to each strategy: the "service", or only the "product" */
    int64_t patience_ms;  /* give up after this time without an answer */
};

/* A strategy as GET /strategies has it; points into that JSON. */
struct subject {
    const json_t *cells;
    const char *name;
    enum guarantee guarantee;
    unsigned shown_by; /* enum shown_by, or-ed */
    int64_t tries;     /* the most tries of one order */
    const char *lock;  /* the lock's name; NULL: no lock outside the order's transaction */
    bool available;
    const char *reason; /* why it is not available, or NULL */
    const char *kind;   /* of stock */
    int64_t most;       /* units that a product of this kind can have */
};

/* Odd, so that orders of two units leave one unit over. */
enum { PAIRS_STOCK = 51, PAIRS_QUANTITY = 2, FINDING_MAX = 200 };

struct phase {
    bool ran;
    bool sells_out;
    bool in_turn;            /* every service placed the waiting orders of a product in turn */
    bool hasty;              /* lock waits were so short that even a slow lock server makes them time out */
    int64_t stock, quantity; /* initial units, and units per order */
    struct load_result load;
    struct books books;
    struct scrape scrape; /* what the services' metrics gained */
    /* Answers to single orders after the load, one to each service while enough units were left. */
    enum answer last_call[INSTANCES_MAX];
    size_t last_calls;
};

struct measurement {
    char key_finding[KEY_FINDING]; /* a wrong answer to a repeated Idempotency-Key; "": none */
    struct phase pairs, sell_out, throughput;
    int64_t think_ms; /* the think time of the last sell-out */
    enum verdict verdict;
    char finding
        [FINDING_MAX]; /* why the strategy is broken, a sentence without a full stop; "" if it is not */
};

/* False, with a message on stderr: the JSON is not a strategy as docs/openapi.yaml describes it. */
bool subject_read(const json_t *strategy, struct subject *ret_subject);

/* Makes the subject unavailable, with the reason, if the plan's stock is more than the subject's kind of stock can have. */
void subject_fit(struct subject *subject, const struct plan *plan);

/* The product whose strategy is switched, or 0 for all. */
int64_t plan_switched(const struct plan *plan);

/* Orders that the plan sends to sell out. */
int64_t plan_requests(const struct plan *plan);

/* Measures one strategy. If full speed does not catch a flaw that this run should show, repeats the sell-out with longer and
 * longer think times. False on a failure, with a message on stderr, or at an interrupt. */
bool measure(struct testbed *testbed, const struct plan *plan, const struct subject *subject,
             struct progress *progress, struct measurement *ret_measurement);

/* Sets the verdict and the finding from what the phases of INSTANCES services found. Pure. */
void measurement_judge(const struct subject *subject, int instances, struct measurement *measurement);

/* The throughput phase sold out before its time was up, so its rate is meaningless. */
bool measurement_sold_out_early(const struct measurement *measurement);

/* The database has exactly the orders that clients got as created. An order of unknown outcome may exist or not. */
bool phase_answers_match(const struct phase *phase);

/* The steps that other loads share; each returns false, having said why on stderr unless it was an interrupt. */

/* Switches every service to this strategy, for one product or all (PRODUCT 0). LOCK_WAITS_MS: of each
 * service; NULL: as they are. */
bool switch_strategy(struct testbed *testbed, int64_t product, const struct subject *subject,
                     int64_t think_ms, enum in_turn in_turn, const int64_t *lock_waits_ms);
/* Deletes the product's orders and sets its stock, of the strategy's kind. */
bool set_stock(struct testbed *testbed, const struct subject *subject, int64_t product, int64_t stock);
/* More units than a short load can sell. */
int64_t ample_stock(const struct subject *subject);
/* Sums what all services have counted for one strategy so far. */
bool scrape_all(struct testbed *testbed, const char *strategy, struct scrape *ret_sum);
/* Reads the audit after all services have finished the product's orders. */
bool settled_books(struct testbed *testbed, int64_t product, struct books *ret_books);

/* The database has the CREATED orders that clients know of, and at most UNCLEAR more, whose outcome clients do not know. */
bool books_match(const struct books *books, int64_t created, int64_t unclear);
/* Adds the evidence of the audit. */
void add_books(struct evidence *evidence, const struct books *books);

#endif
