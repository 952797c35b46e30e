/* The list of all locks. */
#include "lock/registry.h"

const struct lock_driver *const all_locks[] = {
    /* the process itself */
    &process_mutex,
    &process_mutex_per_product,
    &process_mutex_wrong_object,
    &process_mutex_reentrant,
    /* PostgreSQL */
    &lock_row,
    &lock_table,
    &lock_shedlock,
    /* Redis: plain values */
    &redis_setnx_forever,
    &redis_setnx,
    &redis_setnx_repair,
    &redis_del,
    &redis_get_del,
    &redis_lock,
    &redis_fenced,
    &redis_registry,
    &redis_registry_shared,
    /* Redis: locks that wake their waiters, and locks on a majority of several servers */
    &redis_reentrant,
    &redis_fair,
    &redlock,
    &redisson_redlock,
    /* ZooKeeper */
    &zookeeper_naive,
    &zookeeper_herd,
    &zookeeper_queue,
    &curator,
    /* etcd */
    &etcd_mutex,
    &etcd_cas,
    NULL,
};
