/* The strategy table: what this program is about. Neighbours differ in a cell or two; compare them. */
#include "service/engine/batch.h"
#include "service/engine/strategy.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* A row shows what is particular to it. What it leaves out is zero: no lock, no fence, one transaction at READ COMMITTED,
     * one try, and the engine's steps (create_order.c). */

    /* ---- no protection -------------------------------------------------------------------------------------------- */

    {.name = "read-write",                .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,
     .title = "No protection: read, then write the result",
     .why = "Two orders read the same stock, and the later write overwrites the earlier one: a lost update."},

    {.name = "decrement",                 .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_decrement,
     .title = "No protection: check, then subtract",
     .why = "No update is lost. But two orders that both see the last unit both take it, so the stock goes below zero."},

    /* ---- a mutex of the process ----------------------------------------------------------------------------------- */

    {.name = "mutex-early-release",       .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &process_mutex,                 .span = SPAN_INSIDE_TX,
     .title = "Process mutex, released before COMMIT",
     .why = "The order releases its mutex before it commits. The next order then reads the stock before this order's write is "
            "visible."},

    {.name = "mutex-wrong-object",        .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &process_mutex_wrong_object,    .span = SPAN_AROUND_TX,
     .title = "A mutex, but every order locks a different one",
     .why = "Each worker locks its own object, so no order ever waits for another."},

    {.name = "mutex",                     .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS,
     .take_stock = &take_read_write,       .lock = &process_mutex,                 .span = SPAN_AROUND_TX,
     .title = "Process mutex around the transaction",
     .why = "The order holds the mutex until after COMMIT, so each order reads what the last one wrote. A second process has its "
            "own mutex and sells the same stock again."},

    {.name = "mutex-per-product",         .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS,
     .take_stock = &take_read_write,       .lock = &process_mutex_per_product,     .span = SPAN_AROUND_TX,
     .title = "Process mutex for each product",
     .why = "As mutex, but orders of different products do not wait for each other."},

    {.name = "reentrant-mutex",           .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS | SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &process_mutex_reentrant,       .span = SPAN_AROUND_TWICE, .scope = SCOPE_TWO_TX,
     .title = "Recursive mutex around the stock alone",
     .why = "The critical section is short: a second transaction inserts the order, outside the mutex. If that fails, the service "
            "gives the units back. A crash between the two loses the units, and each process has its own mutex."},

    /* ---- PostgreSQL: locks, guards, versions, isolation ----------------------------------------------------------- */

    {.name = "select-for-update",         .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_for_update,       .combining = COMBINE_IN_TURN,
     .title = "SELECT … FOR UPDATE",
     .why = "The read locks the row until COMMIT, so the next order waits and then reads the new stock.",
     .fits = "rules that need several statements"},

    {.name = "atomic-decrement",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_guarded,          .combining = COMBINE_IN_TURN,
     .title = "UPDATE … WHERE count >= n",
     .why = "The database checks and subtracts in one statement, on the newest version of the row.",
     .fits = "stock and counters: the default choice"},

    {.name = "atomic-statement",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_while_placing,    .combining = COMBINE_IN_TURN,
     .place = place_in_one_statement,
     .title = "The whole order as one statement",
     .why = "As atomic-decrement, in one round trip: the row is locked only for the statement and its commit.",
     .fits = "hot products, simple rules"},

    {.name = "check-constraint",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_decrement_checked, .combining = COMBINE_IN_TURN,
     .title = "Check, then subtract; CHECK (count >= 0)",
     .why = "As decrement, but the schema rejects a stock below zero: the second of two last orders fails.",
     .fits = "a last guard in the schema"},

    {.name = "optimistic",                .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_optimistic,       .max_tries = 50,
     .title = "Version column, compare and swap",
     .why = "The order writes only if the row still has the version that it read. Otherwise it reads again and retries.",
     .fits = "rows that seldom conflict"},

    {.name = "repeatable-read",           .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_read_write,       .isolation = DB_REPEATABLE_READ, .max_tries = 50,
     .title = "Read, then write, at REPEATABLE READ",
     .why = "PostgreSQL refuses to overwrite a row that changed after the snapshot (40001), and the order retries. MySQL's level of "
            "the same name loses the update.",
     .fits = "rows that seldom conflict"},

    {.name = "serializable",              .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_read_write,       .isolation = DB_SERIALIZABLE, .max_tries = 50,
     .title = "Read, then write, at SERIALIZABLE",
     .why = "The database rejects a transaction that could be part of a result which no serial execution gives, and sometimes one that "
            "could not. That order retries.",
     .fits = "rules over several rows"},

    {.name = "table-lock",                .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_table_lock,
     .title = "LOCK TABLE … IN EXCLUSIVE MODE",
     .why = "Every order waits for every other order, of any product: correct, and much too coarse.",
     .fits = "maintenance, not orders"},

    {.name = "advisory-lock",             .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_advisory_lock,
     .title = "pg_advisory_xact_lock, then read, then write",
     .why = "The lock is on a number instead of a row and ends with the transaction. The read is a separate statement after it, so "
            "it sees what the last holder committed.",
     .fits = "what has no row to lock"},

    /* ---- many orders, one transaction ----------------------------------------------------------------------------- */

    {.name = "batched",                   .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_while_placing,    .combining = COMBINE_IN_POSTGRES,
     .place = place_in_batch,
     .title = "Waiting orders combined into one transaction",
     .why = "As select-for-update, but one worker places all waiting orders of the product in one transaction: one row lock and one "
            "flush to disk for up to 128 orders, first come, first served.",
     .fits = "one very hot product"},

    /* ---- stock of another kind ------------------------------------------------------------------------------------ */

    {.name = "skip-locked",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_units,
     .title = "One row per unit, FOR UPDATE SKIP LOCKED",
     .why = "Each order locks units that no other order has locked, and never waits, so two orders cannot get the same unit. If too "
            "few units are free while others are locked, the order must retry, because those units may become free again.",
     .fits = "seats, coupons, numbered units"},

    {.name = "bucketed",                  .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_buckets,          .max_tries = 50,
     .title = "The stock split over 16 rows",
     .why = "As atomic-decrement, on one of sixteen rows, so few orders wait for each other. If no single row has enough, the order "
            "locks all rows in a fixed order and adds them up before it reports sold out.",
     .fits = "hot products with a large stock"},

    {.name = "redis-stock",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_in_redis,         .combining = COMBINE_IN_REDIS,
     .title = "Stock taken in Redis, orders written afterwards",
     .why = "One script takes the stock of all waiting orders in Redis, never below zero, and PostgreSQL rejects what would "
            "oversell. The answer is 202. If Redis dies, orders that it accepted and did not save are lost, and their units are "
            "sold again.",
     .fits = "flash sales that may lose orders"},

    /* ---- locks beyond the process --------------------------------------------------------------------------------- */

    {.name = "lock-row",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_row,                      .span = SPAN_AROUND_TX,
     .title = "A row of a lock table, FOR UPDATE on its own connection",
     .why = "The lock belongs to a different connection than the order. If that connection breaks, the order continues without the "
            "lock."},

    {.name = "lock-table",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_table,                    .span = SPAN_AROUND_TX,
     .title = "In the format of Spring's JdbcLockRegistry: INT_LOCK",
     .why = "A unique key with an expiry time by the clients' clocks. Waiting orders poll it."},

    {.name = "shedlock",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_shedlock,                 .span = SPAN_AROUND_TX,
     .title = "In the format of ShedLock: lock_until",
     .why = "Made so that a scheduled job runs on one machine at a time, misused here for orders: an order that takes "
            "too long loses the lock.",
     .fits = "cron jobs"},

    {.name = "redis-setnx-forever",       .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &redis_setnx_forever,           .span = SPAN_AROUND_TX,
     .title = "SETNX, and DEL when done",
     .why = "The lock has no expiry: if its holder dies, nobody gets it again. And DEL compares nothing, so any client can delete it."},

    {.name = "redis-setnx",               .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &redis_setnx,                   .span = SPAN_AROUND_TX,
     .title = "SETNX, then EXPIRE",
     .why = "Two commands: a holder that dies between them leaves a lock that never expires."},

    {.name = "redis-setnx-repair",        .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_setnx_repair,            .span = SPAN_AROUND_TX,
     .title = "SETNX and EXPIRE, with a repair",
     .why = "A waiter adds an expiry to a key that has none, so the lock is never stuck. But the release reads, compares and then "
            "deletes, and by then the key may belong to another holder."},

    {.name = "redis-del",                 .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_del,                     .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by DEL",
     .why = "A late holder deletes whatever lock exists, including the next holder's, and so lets a third order in."},

    {.name = "redis-get-del",             .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_get_del,                 .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by GET, compare, DEL",
     .why = "Between GET and DEL the lock can expire and another order can take it: the same bug with a smaller window."},

    {.name = "redis-lock",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_lock,                    .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by a script that compares",
     .why = "Taken and released in one step each, and only by its owner: correct while the lease lasts. A holder that pauses for "
            "longer writes a stale result while the next holder works."},

    {.name = "redis-lock-checked",        .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_checked,          .lock = &redis_lock,                    .span = SPAN_AROUND_TX,
     .title = "As redis-lock, asked again before the write",
     .why = "The lease may expire between the answer and the write: the window is smaller, but it exists."},

    {.name = "redis-lock-early-release",  .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &redis_lock,                    .span = SPAN_INSIDE_TX,
     .title = "As redis-lock, released before COMMIT",
     .why = "The right lock in the wrong place: the next order reads before this order's write is visible."},

    {.name = "redis-registry",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_registry,                .span = SPAN_AROUND_TX,
     .title = "In the format of Spring's RedisLockRegistry",
     .why = "All threads of a process share one id in Redis, so a local lock in front of it separates the threads."},

    {.name = "redis-registry-shared",     .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &redis_registry_shared,         .span = SPAN_AROUND_TX,
     .title = "Two registries with one id",
     .why = "Both registries find their own id in the lock and believe that they hold it: each owner needs a unique id."},

    {.name = "fence-on-write",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_fence_on_write,   .lock = &redis_fenced,                  .span = SPAN_AROUND_TX, .fencing = FENCE_ON_WRITE,
     .title = "A fencing token, checked by the write alone",
     .why = "The usual picture of a token. A late write of an older holder passes while the newer holder has read and not yet "
            "written, and then the newer holder overwrites it.",
     .instead = "check the token before the read"},

    {.name = "redis-fenced",              .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &redis_fenced,                  .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "A fencing token, registered before the read",
     .why = "The row rejects every holder but the newest, so only a newer holder can change what was read, and it shuts this one "
            "out. A pause costs the order, and not the stock, while all writers register.",
     .fits = "locks in front of rows you control"},

    {.name = "redis-reentrant",           .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_reentrant,               .span = SPAN_AROUND_TX,
     .title = "In the format of Redisson's RLock: reentrant, woken, renewed",
     .why = "A hold count instead of a value. A message wakes the waiters, and a watchdog renews the lease while its holder runs. "
            "When the whole process pauses, so does the watchdog.",
     .fits = "reentrant"},

    {.name = "redis-fair",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_fair,                    .span = SPAN_AROUND_TX,
     .title = "In the format of Redisson's fair lock: a queue in Redis",
     .why = "First come, first served: waiting orders stand in a list in Redis, and a message wakes the first. Its lease can still expire "
            "while the holder works.",
     .fits = "fair"},

    {.name = "redlock",                   .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redlock,                       .span = SPAN_AROUND_TX,
     .title = "A majority of independent Redis servers",
     .why = "Two of five servers may be down. A pause outlives it like any lease, and a server that restarts without its memory "
            "votes twice."},

    {.name = "redisson-redlock",          .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redisson_redlock,              .span = SPAN_AROUND_TX,
     .title = "In the format of RedissonRedLock: a majority of RLocks",
     .why = "A majority, but the time that it took to acquire the lock is not subtracted from the lease."},

    {.name = "zookeeper-naive",           .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_naive,               .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, believed at the first wake-up",
     .why = "An order wakes when the waiter before it disappears, and takes the lock without checking who holds it. An order that "
            "watches a node which is already gone waits forever."},

    {.name = "zookeeper-herd",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_herd,                .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, all watching the first",
     .why = "Each waiter checks again after it wakes, so the lock is correct. But every release wakes every waiter.",
     .instead = "zookeeper wakes one waiter"},

    {.name = "zookeeper",                 .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_queue,               .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, each watching the one before",
     .why = "One release wakes one waiter, first come, first served. The lock ends with the session.",
     .fits = "fair"},

    {.name = "curator",                   .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &curator,                       .span = SPAN_AROUND_TX,
     .title = "In the format of Curator's InterProcessMutex",
     .why = "As zookeeper, and reentrant: a holder that acquires the lock again gets it without asking the server.",
     .fits = "fair"},

    {.name = "zookeeper-fenced",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &zookeeper_queue,               .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "The queue, and its czxid as a fencing token",
     .why = "The transaction id of the holder's node only grows, and the row rejects every holder but the newest.",
     .fits = "locks in front of rows you control"},

    {.name = "etcd",                      .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &etcd_mutex,                    .span = SPAN_AROUND_TX,
     .title = "A queue by create revision, on a lease",
     .why = "As etcd's own mutex: one release wakes one waiter, which checks again whether its own key still exists. A process that "
            "pauses for longer than its lease loses the lock without noticing.",
     .fits = "fair"},

    {.name = "etcd-cas",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &etcd_cas,                      .span = SPAN_AROUND_TX,
     .title = "Put if absent, on a lease",
     .why = "The simplest lock in etcd. Without \"if absent\" it would not be a lock."},

    {.name = "etcd-fenced",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &etcd_mutex,                    .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "The queue, and its revision as a fencing token",
     .why = "Create revisions only grow, and the row rejects every holder but the newest.",
     .fits = "locks in front of rows you control"},
};
/* clang-format on */

const size_t strategy_count = sizeof strategies / sizeof strategies[0];
_Static_assert(sizeof strategies / sizeof strategies[0] <= STRATEGIES_MAX,
               "the metrics have no room for more strategies");
