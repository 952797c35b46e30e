/* The strategy table: what this program is about. Neighbours differ in a cell or two; compare them. */
#include "service/engine/create_order.h"
#include "service/engine/strategy.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* A row shows what is particular to it. What it leaves out is zero: no lock, no fence, one transaction at READ COMMITTED,
     * one try, and the engine's steps (create_order.c). */

    /* ---- no protection -------------------------------------------------------------------------------------------- */

    {.name = "read-write",                .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,
     .title = "No protection: read, then write the result",
     .why = "Two orders read the same stock, and the later write wipes out the earlier one: a lost update."},

    {.name = "decrement",                 .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_decrement,
     .title = "No protection: check, then subtract",
     .why = "No update is lost, but two orders that both found the last unit both take it: the stock goes below zero."},

    /* ---- a mutex of the process ----------------------------------------------------------------------------------- */

    {.name = "mutex-early-release",       .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &process_mutex,                 .span = SPAN_INSIDE_TX,
     .title = "Process mutex, released before COMMIT",
     .why = "The transaction outlives its lock: the next order reads before this one's write can be seen."},

    {.name = "mutex-wrong-object",        .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &process_mutex_wrong_object,    .span = SPAN_AROUND_TX,
     .title = "A mutex, but every order locks a different one",
     .why = "Each worker locks an object of its own, so nobody ever waits for anybody."},

    {.name = "mutex",                     .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS,
     .take_stock = &take_read_write,       .lock = &process_mutex,                 .span = SPAN_AROUND_TX,
     .title = "Process mutex around the transaction",
     .why = "The mutex outlives the transaction, so each order reads what the last one wrote. "
            "A second process has a mutex of its own, and sells the same stock again."},

    {.name = "mutex-per-product",         .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS,
     .take_stock = &take_read_write,       .lock = &process_mutex_per_product,     .span = SPAN_AROUND_TX,
     .title = "Process mutex for each product",
     .why = "As mutex, but orders of different products do not wait for each other."},

    {.name = "reentrant-mutex",           .guarantee = GUARANTEE_ONE_PROCESS,        .shown_by = SHOWN_BY_SECOND_PROCESS | SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &process_mutex_reentrant,       .span = SPAN_AROUND_TWICE, .scope = SCOPE_TWO_TX,
     .title = "Recursive mutex around the stock alone",
     .why = "The critical section is short: the order is inserted in a second transaction, outside the mutex. If that fails, the "
            "service gives the units back. A crash between the two loses the units, and each process has its own mutex."},

    /* ---- PostgreSQL: locks, guards, versions, isolation ----------------------------------------------------------- */

    {.name = "select-for-update",         .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_for_update,
     .title = "SELECT … FOR UPDATE",
     .why = "Reading locks the row until COMMIT, so the next order waits and then reads the new stock."},

    {.name = "atomic-decrement",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_guarded,
     .title = "UPDATE … WHERE count >= n",
     .why = "The database checks and subtracts in one statement, on the newest version of the row."},

    {.name = "atomic-statement",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_while_placing,    .place = place_in_one_statement,
     .title = "The whole order as one statement",
     .why = "As atomic-decrement, in one round trip: the row is held for a commit, not for a conversation."},

    {.name = "check-constraint",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_decrement_checked,
     .title = "Check, then subtract; CHECK (count >= 0)",
     .why = "As decrement, but the schema refuses a stock below zero: the second of two last orders fails."},

    {.name = "optimistic",                .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_optimistic,       .max_tries = 50,
     .title = "Version column, compare and swap",
     .why = "It writes only where the row's version is still the one that was read; else it reads again and retries."},

    {.name = "repeatable-read",           .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_read_write,       .isolation = DB_REPEATABLE_READ, .max_tries = 50,
     .title = "Read, then write, at REPEATABLE READ",
     .why = "PostgreSQL refuses to overwrite a row that changed after the snapshot (40001); the order retries. "
            "MySQL, under the same name, loses the update."},

    {.name = "serializable",              .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_read_write,       .isolation = DB_SERIALIZABLE, .max_tries = 50,
     .title = "Read, then write, at SERIALIZABLE",
     .why = "The database finds the transactions that no serial order explains and refuses one; the order retries."},

    {.name = "table-lock",                .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_table_lock,
     .title = "LOCK TABLE … IN EXCLUSIVE MODE",
     .why = "Every order waits for every other, of any product: right, and much too coarse."},

    {.name = "advisory-lock",             .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_advisory_lock,
     .title = "pg_advisory_xact_lock, then read, then write",
     .why = "A lock on a number instead of a row, which ends with the transaction. "
            "The read is a statement of its own after it, so it sees what the last holder committed."},

    /* ---- many orders, one transaction ----------------------------------------------------------------------------- */

    {.name = "batched",                   .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_while_placing,    .combining = COMBINE_IN_POSTGRES,
     .title = "Waiting orders combined into one transaction",
     .why = "As select-for-update, but whoever has the row's turn brings all that wait: "
            "one lock and one flush to disk for up to 128 orders, first come, first served."},

    /* ---- stock of another kind ------------------------------------------------------------------------------------ */

    {.name = "skip-locked",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_units,
     .title = "One row a unit, FOR UPDATE SKIP LOCKED",
     .why = "Each order locks units that nobody else has locked, and never waits: two cannot get the same one. "
            "Who finds too few while others hold some is told to come back, for those may yet be set free."},

    {.name = "bucketed",                  .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_buckets,          .max_tries = 50,
     .title = "The stock split over 16 rows",
     .why = "As atomic-decrement, on one row of sixteen, so few orders wait for each other. "
            "Where no single row has enough, all are locked in the same order and added up before it is sold out."},

    {.name = "redis-stock",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_in_redis,         .combining = COMBINE_IN_REDIS,
     .title = "Stock taken in Redis, orders written afterwards",
     .why = "One script takes the stock of all waiting orders in Redis, never below zero, and PostgreSQL refuses what would oversell. "
            "The answer is 202: what Redis has accepted and not yet saved when it dies is lost, and its units are sold again."},

    /* ---- locks beyond the process --------------------------------------------------------------------------------- */

    {.name = "lock-row",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_row,                      .span = SPAN_AROUND_TX,
     .title = "A row of a lock table, FOR UPDATE on its own connection",
     .why = "The lock lives on another connection than the order, and dies with that one: the order goes on without it."},

    {.name = "lock-table",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_table,                    .span = SPAN_AROUND_TX,
     .title = "As Spring's JdbcLockRegistry: INT_LOCK",
     .why = "A unique key and a time of expiry by the clients' clocks, asked for again and again."},

    {.name = "shedlock",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &lock_shedlock,                 .span = SPAN_AROUND_TX,
     .title = "As ShedLock: lock_until",
     .why = "Made so that scheduled jobs run once, misused for orders: whoever is late finds the lock gone."},

    {.name = "redis-setnx-forever",       .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &redis_setnx_forever,           .span = SPAN_AROUND_TX,
     .title = "SETNX, and DEL when done",
     .why = "Nothing ends the lock but its holder: one that dies keeps everybody out for ever."},

    {.name = "redis-setnx",               .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_CRASH,
     .take_stock = &take_read_write,       .lock = &redis_setnx,                   .span = SPAN_AROUND_TX,
     .title = "SETNX, then EXPIRE",
     .why = "Two commands: a holder that dies between them leaves a lock that never expires."},

    {.name = "redis-setnx-repair",        .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_setnx_repair,            .span = SPAN_AROUND_TX,
     .title = "SETNX and EXPIRE, with a repair",
     .why = "A loser gives a key without expiry one, so nothing is stuck; but the release still reads, compares and then deletes, "
            "and by then the key may be somebody else's."},

    {.name = "redis-del",                 .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_del,                     .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by DEL",
     .why = "Who comes late deletes whatever lock is there, also the next holder's, and lets a third one in."},

    {.name = "redis-get-del",             .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_get_del,                 .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by GET, compare, DEL",
     .why = "The lock can end and be taken by another between the GET and the DEL: the same fault in a smaller window."},

    {.name = "redis-lock",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_lock,                    .span = SPAN_AROUND_TX,
     .title = "SET NX PX, released by a script that compares",
     .why = "Taken and released in one step each, by its owner only: right while the lease lasts. "
            "A holder that pauses for longer writes what it had read, beside the next holder."},

    {.name = "redis-lock-checked",        .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_checked,          .lock = &redis_lock,                    .span = SPAN_AROUND_TX,
     .title = "As redis-lock, asked again before the write",
     .why = "The lease may end between the answer and the write: the window is smaller, and still there."},

    {.name = "redis-lock-early-release",  .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &redis_lock,                    .span = SPAN_INSIDE_TX,
     .title = "As redis-lock, released before COMMIT",
     .why = "The right lock in the wrong place: the next order reads before this one's write can be seen."},

    {.name = "redis-registry",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_registry,                .span = SPAN_AROUND_TX,
     .title = "As Spring's RedisLockRegistry",
     .why = "One id for the whole process, so a lock of the process in front tells its threads apart."},

    {.name = "redis-registry-shared",     .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_LOAD,
     .take_stock = &take_read_write,       .lock = &redis_registry_shared,         .span = SPAN_AROUND_TX,
     .title = "Two registries with one id",
     .why = "Both find their own id in the lock and take it for theirs: an owner's id must be its own."},

    {.name = "fence-on-write",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_fence_on_write,   .lock = &redis_fenced,                  .span = SPAN_AROUND_TX, .fencing = FENCE_ON_WRITE,
     .title = "A fencing token, checked by the write alone",
     .why = "The token as usually drawn: a late write of an older holder passes while the newer one has read and not yet written, "
            "and the newer one then overwrites it."},

    {.name = "redis-fenced",              .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &redis_fenced,                  .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "A fencing token, registered before the read",
     .why = "The row itself refuses whoever is not its newest holder, so what was read can only be changed by who shuts us out. "
            "A pause costs the order, never the stock."},

    {.name = "redis-reentrant",           .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_reentrant,               .span = SPAN_AROUND_TX,
     .title = "As Redisson's RLock: reentrant, woken, renewed",
     .why = "A hold count instead of a value; waiters are woken by a message, and a watchdog renews the lease while its holder runs. "
            "When the whole process pauses, so does the watchdog."},

    {.name = "redis-fair",                .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redis_fair,                    .span = SPAN_AROUND_TX,
     .title = "As Redisson's fair lock: a queue in Redis",
     .why = "First come, first served, for more requests to Redis; its lease can still end under its holder."},

    {.name = "redlock",                   .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redlock,                       .span = SPAN_AROUND_TX,
     .title = "A majority of independent Redis servers",
     .why = "Two of five servers may be down. A pause ends it like any lease, "
            "and a server that restarts without its memory votes twice."},

    {.name = "redisson-redlock",          .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &redisson_redlock,              .span = SPAN_AROUND_TX,
     .title = "As RedissonRedLock: a majority of RLocks",
     .why = "A majority, but the time that taking it took is not subtracted from the lease."},

    {.name = "zookeeper-naive",           .guarantee = GUARANTEE_UNSAFE,             .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_naive,               .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, believed at the first wake-up",
     .why = "Woken by the end of the waiter before it, an order takes the lock while its holder still has it; "
            "and who watches a node that is gone already waits for ever."},

    {.name = "zookeeper-herd",            .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_herd,                .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, all watching the first",
     .why = "Checked again after waking, so it is right; but every release wakes every waiter."},

    {.name = "zookeeper",                 .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &zookeeper_queue,               .span = SPAN_AROUND_TX,
     .title = "A queue of nodes, each watching the one before",
     .why = "One release wakes one waiter, first come, first served; the lock ends with the session."},

    {.name = "curator",                   .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &curator,                       .span = SPAN_AROUND_TX,
     .title = "As Curator's InterProcessMutex",
     .why = "The same queue with what a library adds: a create that survives a lost reply, reentrancy, a delete that is made sure."},

    {.name = "zookeeper-fenced",          .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &zookeeper_queue,               .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "The queue, and its czxid as a fencing token",
     .why = "The transaction id of the holder's node only grows, and the row refuses whoever is not its newest holder."},

    {.name = "etcd",                      .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &etcd_mutex,                    .span = SPAN_AROUND_TX,
     .title = "A queue by create revision, on a lease",
     .why = "As etcd's own mutex: one release wakes one waiter, which looks once more whether its own key is still there. "
            "A process that pauses for longer than its lease loses the lock without knowing."},

    {.name = "etcd-cas",                  .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,  .shown_by = SHOWN_BY_EXPIRY,
     .take_stock = &take_read_write,       .lock = &etcd_cas,                      .span = SPAN_AROUND_TX,
     .title = "Put if absent, on a lease",
     .why = "The simplest lock in etcd. Without the \"if absent\" it would be none at all."},

    {.name = "etcd-fenced",               .guarantee = GUARANTEE_SAFE,
     .take_stock = &take_fenced,           .lock = &etcd_mutex,                    .span = SPAN_AROUND_TX, .fencing = FENCE_BEFORE_READ,
     .title = "The queue, and its revision as a fencing token",
     .why = "Create revisions only grow, and the row refuses whoever is not its newest holder."},
};
/* clang-format on */

const size_t strategy_count = sizeof strategies / sizeof strategies[0];
_Static_assert(sizeof strategies / sizeof strategies[0] <= STRATEGIES_MAX,
               "metrics have no room for so many");
