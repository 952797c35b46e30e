/* The clients of a fault run. Each is a thread that places orders with an Idempotency-Key, retries with the same key while the
 * outcome is unknown, and writes everything into the history. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_CLIENTS_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_CLIENTS_H

#include "loadtest/faults/testbed/history.h"

/* One client. */
struct fault_client {
    size_t strategy; /* index, as in the history */
    const char *name;
    int64_t product;
    int instance; /* index of the service that it orders at */
    bool fixed;   /* it never retries at the other service */
    /* Its orders begin at the same moments as those of all others that join, so that they wait in one queue. */
    bool joins;
};

struct fault_workload {
    struct fault_history *history;
    const char *urls[FAULT_INSTANCES];
    const struct fault_client *clients;
    size_t count;
    bool once; /* each client places one order; otherwise it orders until fault_clients_end */
    /* Between two orders of a client: random, up to this. Clients that join order twice in this time. */
    int64_t pause_ms;
    int64_t patience_ms; /* how long a client retries an order whose outcome is unknown */
    int64_t reply_ms;    /* an answer that takes longer counts as hung */
    uint64_t seed;
};

struct fault_clients;

/* Starts the clients. The workload is copied; what it points to must stay valid. NULL, with the reason on stderr. */
struct fault_clients *fault_clients_start(const struct fault_workload *workload);
/* How many clients have not finished. */
size_t fault_clients_running(const struct fault_clients *clients);
/* Waits until each client has finished its current order, and frees them. NULL does nothing. */
void fault_clients_end(struct fault_clients *clients);

#endif
