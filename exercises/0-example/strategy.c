/* Exercise 0, the worked example: two orders read the same stock. */
#include "service/engine/create_order.h"

/* service/engine/strategy.h explains each cell. A cell that is left out is zero: the ordinary case. */
const struct strategy strategies[] = {
    {.name = "mine",
     .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_read_write,
     .title = "Read, then write the result",
     .why = "It promises to be safe, and is not."},
};

const size_t strategy_count = 1;
