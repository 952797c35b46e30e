/* The table of locks. */
#include "lock/lock.h"

#include <stddef.h>

const struct lock_ops *const all_locks[] = {
    &process_mutex, &process_mutex_per_product, &process_mutex_wrong_object, &process_mutex_reentrant, NULL,
};
