/* Exercise 0, solved: the read locks the row until COMMIT. */
#include "service/engine/create_order.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* name   guarantee          shown by        span       lock            fence     transactions
        isolation       taking of the stock  tries, way of placing, title, why */
    {"mine",  GUARANTEE_SAFE,              SHOWN_BY_NOTHING,        SPAN_NONE,   NULL,           FENCE_NONE, SCOPE_ONE_TX,
        DB_READ_COMMITTED, take_for_update,     1, place_by_steps, COMBINE_NONE, "SELECT … FOR UPDATE, then write",
        "Who reads second waits for the first one's COMMIT, and then reads what it wrote."},
};
/* clang-format on */

const size_t strategy_count = 1;
