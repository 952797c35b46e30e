/* Measures the memory of a service while many clients stay connected. */
#include "loadtest/bench/memory.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/openloop/transfer.h"
#include "loadtest/testbed/process.h"

#include <inttypes.h>

#define PATIENCE_MS 120000 /* for all connections, and for all orders of a round */

static void count_created(void *context, const struct transfer_end *end)
{
    *(int64_t *)context += end->answered && end->answer == ANSWER_CREATED;
}

/* One order over each connection, all at the same time. */
static bool order_on_all(struct transfers *transfers, int64_t product)
{
    int64_t end_us = monotonic_us() + (int64_t)PATIENCE_MS * 1000;
    bool well = true;
    while (well && transfers_free(transfers))
        well = transfer_start(transfers, 0, product, 1);
    while (well && transfers_under_way(transfers) > 0 && monotonic_us() < end_us && !interrupted())
        well = transfers_work(transfers, end_us);
    return well && transfers_under_way(transfers) == 0;
}

bool memory_with_connections(const struct testbed *testbed, int64_t product, int64_t connections,
                             int64_t orders, double *ret_mib)
{
    int64_t created = 0, resident = 0;
    struct transfers *transfers = transfers_open(testbed, (size_t)connections, count_created, &created);
    bool well = transfers && transfers_connect(transfers, PATIENCE_MS);
    for (int64_t i = 0; i < orders && well; i++)
        well = order_on_all(transfers, product);
    if (transfers && !interrupted() && created != orders * connections) {
        complain("of %" PRId64 " orders over %" PRId64 " connections %" PRId64 " were created",
                 orders * connections, connections, created);
        well = false;
    }
    well = well && process_memory(testbed->services[0].pid, "VmRSS", &resident);
    *ret_mib = (double)resident / (1 << 20);
    transfers_close(transfers);
    return well;
}
