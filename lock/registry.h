/* The list of all locks. For each lock there is a strategy with the same name; other strategies may use it too. */
#ifndef OVERSELL_LOCK_REGISTRY_H
#define OVERSELL_LOCK_REGISTRY_H

#include "lock/lock_driver.h"

/* Every lock below, in this order; NULL ends the list. */
extern const struct lock_driver *const all_locks[];

/* Memory of this process: process/ */
extern const struct lock_driver process_mutex;
extern const struct lock_driver process_mutex_per_product;
extern const struct lock_driver process_mutex_wrong_object;
extern const struct lock_driver process_mutex_reentrant;
/* PostgreSQL: postgres/ */
extern const struct lock_driver lock_row, lock_table, lock_shedlock;
/* One Redis server: redis/ */
extern const struct lock_driver redis_setnx_forever, redis_setnx, redis_setnx_repair, redis_del,
    redis_get_del;
extern const struct lock_driver redis_lock, redis_fenced;
extern const struct lock_driver redis_registry, redis_registry_shared;
extern const struct lock_driver redis_reentrant, redis_fair;
/* A majority of several Redis servers: redis/ */
extern const struct lock_driver redlock, redisson_redlock;
/* ZooKeeper: zookeeper/ */
extern const struct lock_driver zookeeper_naive, zookeeper_herd, zookeeper_queue, curator;
/* etcd: etcd/ */
extern const struct lock_driver etcd_mutex, etcd_cas;

/* The server of REDIS_URL, which may keep stock as well as locks. */
extern const struct lock_server redis_server;

#endif
