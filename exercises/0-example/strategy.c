/* Exercise 0, the worked example: two orders read the same stock. */
#include "service/engine/create_order.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* name   guarantee          shown by        span       lock            fence     transactions
        isolation       taking of the stock  tries, way of placing, title, why */
    {"mine",  GUARANTEE_SAFE,              SHOWN_BY_NOTHING,        SPAN_NONE,   NULL,           FENCE_NONE, SCOPE_ONE_TX,
        DB_READ_COMMITTED, take_read_write,     1, place_by_steps, COMBINE_NONE, "Read, then write the result",
        "It promises to be safe, and is not."},
};
/* clang-format on */

const size_t strategy_count = 1;
