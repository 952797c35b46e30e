/* The history of a fault run: what the clients wanted to order, and which answers they got. The checker compares it with the
 * database. Any thread may call, except where it says otherwise. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_HISTORY_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAULT_STRATEGIES_MAX = 64, FAULT_INSTANCES = 2 };

/* The last answer that a client got for an intent. */
enum told {
    TOLD_NOTHING,  /* no answer, or "outcome unknown": the order may exist */
    TOLD_CREATED,  /* 201 or 202 */
    TOLD_SOLD_OUT, /* 409 */
    TOLD_REFUSED,  /* 503, or another 409: nothing was sold, try again */
    TOLD_WRONG,    /* an answer that a valid order must never get */
};

/* An intent: one order that a client wants. Its Idempotency-Key ends with its number. */
struct intent {
    size_t strategy;
    int instance; /* the service that got its first request */
    enum told told;
    bool doubtful;              /* a request without an answer may have created the order */
    bool hung;                  /* an answer took longer than any answer may */
    int64_t order_id;           /* with TOLD_CREATED */
    int64_t began_us, ended_us; /* monotonic */
};

/* A reset or replacement of a product while clients order: one sale ends, and the next one begins. */
struct sale_change {
    int64_t began_us, ended_us; /* the call, monotonic; 0: there was none in this cycle */
    bool keeps_orders;          /* a PUT; a reset deletes them */
};

/* When the fault of a cycle can have met an order: between its read and its answer, or accepted and not yet written. */
struct fault_strike {
    int64_t from_us, until_us; /* monotonic; 0: not yet. A fault that ends at once has one moment */
    int64_t from_wall_us;      /* FROM_US as microseconds since 1970 */
    int instance;              /* only orders of this service; negative: of all */
};

/* The sale that an intent was for. */
enum sale_of {
    SALE_BEFORE, /* answered before the change began */
    SALE_EITHER, /* concurrent with the change */
    SALE_LAST,   /* begun after the change, or without any change */
};

struct fault_history {
    pthread_mutex_t mutex;
    char tag[40]; /* the prefix of this run's keys */
    struct intent *intents;
    size_t count, room;
    size_t from;            /* the first intent of this cycle */
    int64_t quantity;       /* units an order in this cycle: 1 unless set after fault_history_begin_cycle */
    int64_t cycle_began_us; /* when it began, monotonic */
    struct fault_strike strike;
    bool writes_later[FAULT_STRATEGIES_MAX]; /* the strategy accepts orders, and writes them later */
    int64_t open[FAULT_STRATEGIES_MAX][FAULT_INSTANCES]; /* intents that have no answer yet */
    int64_t served_us[FAULT_STRATEGIES_MAX];             /* when a client last got "created" or "sold out" */
    /* By strategy. Written by the thread that makes the changes, and read by it when the clients have ended. */
    struct sale_change changes[FAULT_STRATEGIES_MAX];
    char oddity[256]; /* describes the first wrong answer */
};

/* TAG must differ from those of all other histories with orders in this database. */
void fault_history_open(const char *tag, struct fault_history *ret_history);
void fault_history_close(struct fault_history *history);

/* Begins a cycle: no order has been served in it yet. */
void fault_history_begin_cycle(struct fault_history *history);
/* Records an intent before its first request, to the service INSTANCE. False when out of memory. */
bool fault_history_intend(struct fault_history *history, size_t strategy, int instance, size_t *ret_number);
/* How many intents have been recorded. */
size_t fault_history_size(struct fault_history *history);
/* Records how the intent ended. */
void fault_history_told(struct fault_history *history, size_t number, const struct intent *end);
/* Keeps the first description of a wrong answer, and ignores later ones. */
void fault_history_oddity(struct fault_history *history, const char *text);
/* When a client last got "created" or "sold out" under the strategy; 0: not yet in this cycle. */
int64_t fault_history_served(struct fault_history *history, size_t strategy);

/* Is an order of the strategy where the fault should meet one: in progress at INSTANCE (negative: at any service), or, if it writes
 * orders later, accepted a moment ago? */
bool fault_history_is_exposed(struct fault_history *history, size_t strategy, int instance);
/* Did the strike meet the intent's order? COMMITTED_US: microseconds since 1970; 0: the order is not there. */
bool fault_history_was_met(const struct fault_history *history, const struct intent *intent,
                           int64_t committed_us);

/* The sale of an intent of this cycle that has ended. */
enum sale_of fault_history_sale(const struct fault_history *history, const struct intent *intent);
/* Must the intent's order exist at the end of the cycle? */
bool fault_history_stands(const struct fault_history *history, const struct intent *intent);
/* Must it be gone, because it was created before a reset? */
bool fault_history_is_deleted(const struct fault_history *history, const struct intent *intent);

/* The Idempotency-Key of an intent; BUFFER of 64 bytes, returned. */
const char *fault_history_key(const struct fault_history *history, size_t number, char *buffer);
/* The number of the intent with this key; false: there is none. */
bool fault_history_find(const struct fault_history *history, const char *key, size_t *ret_number);

#endif
