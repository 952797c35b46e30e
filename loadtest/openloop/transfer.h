/* Orders under way, many at once, on one thread that never waits: libcurl's multi interface behind epoll. Libcurl keeps
 * the connections; an order that is given up takes its connection with it. No order is sent twice. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_TRANSFER_H
#define OVERSELL_LOADTEST_OPENLOOP_TRANSFER_H

#include "loadtest/client/answer.h"
#include "loadtest/testbed/testbed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transfers;

/* An order that is under way or has just ended; belongs to its transfers. */
struct transfer;

struct transfer_end {
    bool answered; /* else the connection broke, or none could be made */
    enum answer answer;
    size_t tag; /* as given to transfer_start */
};

/* COUNT connections to the services of the testbed, in turn, and calls ENDED whenever an order has ended by itself. NULL,
 * having said why on stderr. */
struct transfers *transfers_open(const struct testbed *testbed, size_t count,
                                 void (*ended)(void *context, const struct transfer_end *end), void *context);
void transfers_close(struct transfers *transfers);
/* Opens all connections, with a request that changes nothing over each; false, having said why unless interrupted. */
bool transfers_connect(struct transfers *transfers, int64_t ms);

/* An order may start: not as many are under way as there are connections. */
bool transfers_free(const struct transfers *transfers);
/* Orders under way. */
size_t transfers_under_way(const struct transfers *transfers);
/* Sends an order now; one must be free. False, having said why on stderr. */
bool transfer_start(struct transfers *transfers, size_t tag, int64_t product, int64_t quantity);
/* The tag of the order that has been under way longest; one must be. */
size_t transfers_oldest(const struct transfers *transfers);
/* Gives that order up. */
void transfers_abandon_oldest(struct transfers *transfers);
/* Moves everything that can be moved, then waits for more until UNTIL_US (monotonic) at most; a signal ends the wait. */
bool transfers_work(struct transfers *transfers, int64_t until_us);

#endif
