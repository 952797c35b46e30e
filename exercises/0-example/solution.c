/* Exercise 0, solved: the read locks the row until COMMIT. */
#include "service/engine/create_order.h"

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_for_update,
     .title = "SELECT … FOR UPDATE, then write",
     .why = "The second order waits for the first one's COMMIT, and then reads what it wrote."},
};

const size_t strategy_count = 1;
