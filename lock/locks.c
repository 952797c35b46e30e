/* The table of locks. */
#include "lock/lock.h"

const struct lock_ops *const all_locks[] = {
    /* the process itself */
    &process_mutex, &process_mutex_per_product, &process_mutex_wrong_object, &process_mutex_reentrant, NULL,
};
