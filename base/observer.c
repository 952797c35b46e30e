/* The names of the steps of an order. */
#include "base/observer.h"

const char *step_name(enum step step)
{
    static const char *const names[STEP_COUNT] = {
        [STEP_WAIT] = "wait",
        [STEP_LOCK] = "lock",
        [STEP_FENCE] = "fence",
        [STEP_READ] = "read",
        [STEP_WRITE] = "write",
        [STEP_TAKE] = "take",
        [STEP_INSERT] = "insert",
        [STEP_COMMIT] = "commit",
        [STEP_COMMIT_STOCK] = "commit-stock",
        [STEP_COMMIT_ORDER] = "commit-order",
        [STEP_UNLOCK] = "unlock",
        [STEP_SETNX] = "setnx",
        [STEP_EXPIRE] = "expire",
        [STEP_GET] = "get",
        [STEP_DEL] = "del",
        [STEP_CHECK] = "check",
        [STEP_REFUSE] = "refuse",
    };
    return names[step];
}
