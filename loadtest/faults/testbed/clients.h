/* The clients of a fault experiment: each a thread that orders with an Idempotency-Key, asks again with the same key where
 * it was not told the outcome, and writes everything into the history. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_CLIENTS_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_CLIENTS_H

#include "loadtest/faults/testbed/history.h"

enum { FAULT_INSTANCES = 2 };

/* One client. */
struct fault_client {
    size_t strategy; /* as the history counts them */
    const char *name;
    int64_t product;
    int instance; /* the service that it orders from … */
    bool fixed;   /* … and from no other, also where that one is dead */
};

struct fault_workload {
    struct fault_history *history;
    const char *urls[FAULT_INSTANCES];
    const struct fault_client *clients;
    size_t count;
    bool once;           /* an order each, else one after the other until they are ended */
    int64_t pause_ms;    /* between two orders of a client: random, up to this */
    int64_t patience_ms; /* an order whose outcome is unknown is asked for again for so long */
    int64_t reply_ms;    /* an answer that takes longer has hung */
    uint64_t seed;
};

struct fault_clients;

/* Starts them. The workload is copied, what it points to must stay. NULL, having said why on stderr. */
struct fault_clients *fault_clients_start(const struct fault_workload *workload);
/* How many still have an order under way, or to come. */
size_t fault_clients_running(const struct fault_clients *clients);
/* Lets each end the order that it has under way, and frees them. NULL does nothing. */
void fault_clients_end(struct fault_clients *clients);

#endif
