/* The strategy table: what this program is about. Two strategies differ in a cell or two; read across. */
#include "service/engine/create_order.h"
#include "service/engine/strategy.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* name                      guarantee          shown by                span          lock                         fence        transactions
        isolation                taking of the stock      tries, way of placing, orders of a product together, title, why */

    {"read-write",               GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "No protection: read, then write the result",
        "Two orders read the same stock, and the later write wipes out the earlier one: a lost update."},

    {"decrement",                GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_decrement,          1,   place_by_steps, COMBINE_NONE, "No protection: check, then subtract",
        "No update is lost, but two orders that both found the last unit both take it: the stock goes below zero."},

    {"mutex-early-release",      GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_INSIDE_TX,    &process_mutex,              FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Process mutex, released before COMMIT",
        "The transaction outlives its lock: the next order reads before this one's write can be seen."},

    {"mutex-wrong-object",       GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_AROUND_TX,    &process_mutex_wrong_object, FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A mutex, but every order locks a different one",
        "Each worker locks an object of its own, so nobody ever waits for anybody."},

    {"mutex",                    GUARANTEE_ONE_PROCESS,       SHOWN_BY_SECOND_PROCESS,         SPAN_AROUND_TX,    &process_mutex,              FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Process mutex around the transaction",
        "The mutex outlives the transaction, so each order reads what the last one wrote. "
        "A second process has a mutex of its own, and sells the same stock again."},

    {"mutex-per-product",        GUARANTEE_ONE_PROCESS,       SHOWN_BY_SECOND_PROCESS,         SPAN_AROUND_TX,    &process_mutex_per_product,  FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Process mutex for each product",
        "As mutex, but orders of different products do not wait for each other."},

    {"reentrant-mutex",          GUARANTEE_ONE_PROCESS,       SHOWN_BY_SECOND_PROCESS | SHOWN_BY_CRASH, SPAN_AROUND_TWICE, &process_mutex_reentrant,    FENCE_NONE,    SCOPE_TWO_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Recursive mutex around the stock alone",
        "The critical section is short: the order is inserted in a second transaction, outside the mutex. If that fails, the "
        "service gives the units back. A crash between the two loses the units, and each process has its own mutex."},

    {"select-for-update",        GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_for_update,         1,   place_by_steps, COMBINE_NONE, "SELECT … FOR UPDATE",
        "Reading locks the row until COMMIT, so the next order waits and then reads the new stock."},

    {"atomic-decrement",         GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_guarded,            1,   place_by_steps, COMBINE_NONE, "UPDATE … WHERE count >= n",
        "The database checks and subtracts in one statement, on the newest version of the row."},

    {"atomic-statement",         GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_one_statement, COMBINE_NONE, "The whole order as one statement",
        "As atomic-decrement, in one round trip: the row is held for a commit, not for a conversation."},

    {"check-constraint",         GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_decrement_checked,  1,   place_by_steps, COMBINE_NONE, "Check, then subtract; CHECK (count >= 0)",
        "As decrement, but the schema refuses a stock below zero: the second of two last orders fails."},

    {"optimistic",               GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_optimistic,         50,  place_by_steps, COMBINE_NONE, "Version column, compare and swap",
        "It writes only where the row's version is still the one that was read; else it reads again and retries."},

    {"repeatable-read",          GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_REPEATABLE_READ,         take_read_write,         50,  place_by_steps, COMBINE_NONE, "Read, then write, at REPEATABLE READ",
        "PostgreSQL refuses to overwrite a row that changed after the snapshot (40001); the order retries. "
        "MySQL, under the same name, loses the update."},

    {"serializable",             GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_SERIALIZABLE,            take_read_write,         50,  place_by_steps, COMBINE_NONE, "Read, then write, at SERIALIZABLE",
        "The database finds the transactions that no serial order explains and refuses one; the order retries."},

    {"table-lock",               GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_table_lock,         1,   place_by_steps, COMBINE_NONE, "LOCK TABLE … IN EXCLUSIVE MODE",
        "Every order waits for every other, of any product: right, and much too coarse."},

    {"advisory-lock",            GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_advisory_lock,      1,   place_by_steps, COMBINE_NONE, "pg_advisory_xact_lock, then read, then write",
        "A lock on a number instead of a row, which ends with the transaction. "
        "The read is a statement of its own after it, so it sees what the last holder committed."},

    /* many orders, one transaction */
    {"batched",                  GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_batch, COMBINE_IN_POSTGRES, "Waiting orders combined into one transaction",
        "As select-for-update, but whoever has the row's turn brings all that wait: "
        "one lock and one flush to disk for up to 128 orders, first come, first served."},

    /* stock of another kind */
    {"skip-locked",              GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_units,              1,   place_by_steps, COMBINE_NONE, "One row a unit, FOR UPDATE SKIP LOCKED",
        "Each order locks units that nobody else has locked, and never waits: two cannot get the same one. "
        "Who finds too few while others hold some is told to come back, for those may yet be set free."},

    {"bucketed",                 GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_buckets,            50,  place_by_steps, COMBINE_NONE, "The stock split over 16 rows",
        "As atomic-decrement, on one row of sixteen, so few orders wait for each other. "
        "Where no single row has enough, all are locked in the same order and added up before it is sold out."},

    {"redis-stock",              GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_NONE,      NULL,                        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_redis, COMBINE_IN_REDIS, "Stock taken in Redis, orders written afterwards",
        "One script takes the stock of all waiting orders in Redis, never below zero, and PostgreSQL refuses what would oversell. "
        "The answer is 202: what Redis has accepted and not yet saved when it dies is lost, and its units are sold again."},

    /* locks beyond the process */
    {"lock-row",                 GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &lock_row,                   FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A row of a lock table, FOR UPDATE on its own connection",
        "The lock lives on another connection than the order, and dies with that one: the order goes on without it."},

    {"lock-table",               GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &lock_table,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As Spring's JdbcLockRegistry: INT_LOCK",
        "A unique key and a time of expiry by the clients' clocks, asked for again and again."},

    {"shedlock",                 GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &lock_shedlock,              FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As ShedLock: lock_until",
        "Made so that scheduled jobs run once, misused for orders: whoever is late finds the lock gone."},

    {"redis-setnx-forever",      GUARANTEE_UNSAFE,            SHOWN_BY_CRASH,                  SPAN_AROUND_TX,    &redis_setnx_forever,        FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SETNX, and DEL when done",
        "Nothing ends the lock but its holder: one that dies keeps everybody out for ever."},

    {"redis-setnx",              GUARANTEE_UNSAFE,            SHOWN_BY_CRASH,                  SPAN_AROUND_TX,    &redis_setnx,                FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SETNX, then EXPIRE",
        "Two commands: a holder that dies between them leaves a lock that never expires."},

    {"redis-setnx-repair",       GUARANTEE_UNSAFE,            SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_setnx_repair,         FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SETNX and EXPIRE, with a repair",
        "A loser gives a key without expiry one, so nothing is stuck; but the release still reads, compares and then deletes, "
        "and by then the key may be somebody else's."},

    {"redis-del",                GUARANTEE_UNSAFE,            SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_del,                  FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SET NX PX, released by DEL",
        "Who comes late deletes whatever lock is there, also the next holder's, and lets a third one in."},

    {"redis-get-del",            GUARANTEE_UNSAFE,            SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_get_del,              FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SET NX PX, released by GET, compare, DEL",
        "The lock can end and be taken by another between the GET and the DEL: the same fault in a smaller window."},

    {"redis-lock",               GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_lock,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "SET NX PX, released by a script that compares",
        "Taken and released in one step each, by its owner only: right while the lease lasts. "
        "A holder that pauses for longer writes what it had read, beside the next holder."},

    {"redis-lock-checked",       GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_lock,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_checked,            1,   place_by_steps, COMBINE_NONE, "As redis-lock, asked again before the write",
        "The lease may end between the answer and the write: the window is smaller, and still there."},

    {"redis-lock-early-release", GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_INSIDE_TX,    &redis_lock,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As redis-lock, released before COMMIT",
        "The right lock in the wrong place: the next order reads before this one's write can be seen."},

    {"redis-registry",           GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_registry,             FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As Spring's RedisLockRegistry",
        "One id for the whole process, so a lock of the process in front tells its threads apart."},

    {"redis-registry-shared",    GUARANTEE_UNSAFE,            SHOWN_BY_LOAD,                   SPAN_AROUND_TX,    &redis_registry_shared,      FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Two registries with one id",
        "Both find their own id in the lock and take it for theirs: an owner's id must be its own."},

    {"fence-on-write",           GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_fenced,               FENCE_ON_WRITE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_fence_on_write,     1,   place_by_steps, COMBINE_NONE, "A fencing token, checked by the write alone",
        "The token as usually drawn: a late write of an older holder passes while the newer one has read and not yet written, "
        "and the newer one then overwrites it."},

    {"redis-fenced",             GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_AROUND_TX,    &redis_fenced,               FENCE_BEFORE_READ, SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, COMBINE_NONE, "A fencing token, registered before the read",
        "The row itself refuses whoever is not its newest holder, so what was read can only be changed by who shuts us out. "
        "A pause costs the order, never the stock."},

    {"redis-reentrant",          GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_reentrant,            FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As Redisson's RLock: reentrant, woken, renewed",
        "A hold count instead of a value; waiters are woken by a message, and a watchdog renews the lease while its holder runs. "
        "When the whole process pauses, so does the watchdog."},

    {"redis-fair",               GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redis_fair,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As Redisson's fair lock: a queue in Redis",
        "First come, first served, for more requests to Redis; its lease can still end under its holder."},

    {"redlock",                  GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redlock,                    FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A majority of independent Redis servers",
        "Two of five servers may be down. A pause ends it like any lease, "
        "and a server that restarts without its memory votes twice."},

    {"redisson-redlock",         GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &redisson_redlock,           FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As RedissonRedLock: a majority of RLocks",
        "A majority, but the time that taking it took is not subtracted from the lease."},

    {"zookeeper-naive",          GUARANTEE_UNSAFE,            SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &zookeeper_naive,            FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A queue of nodes, believed at the first wake-up",
        "Woken by the end of the waiter before it, an order takes the lock while its holder still has it; "
        "and who watches a node that is gone already waits for ever."},

    {"zookeeper-herd",           GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &zookeeper_herd,             FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A queue of nodes, all watching the first",
        "Checked again after waking, so it is right; but every release wakes every waiter."},

    {"zookeeper",                GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &zookeeper_queue,            FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A queue of nodes, each watching the one before",
        "One release wakes one waiter, first come, first served; the lock ends with the session."},

    {"curator",                  GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &curator,                    FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "As Curator's InterProcessMutex",
        "The same queue with what a library adds: a create that survives a lost reply, reentrancy, a delete that is made sure."},

    {"zookeeper-fenced",         GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_AROUND_TX,    &zookeeper_queue,            FENCE_BEFORE_READ, SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, COMBINE_NONE, "The queue, and its czxid as a fencing token",
        "The transaction id of the holder's node only grows, and the row refuses whoever is not its newest holder."},

    {"etcd",                     GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &etcd_mutex,                 FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "A queue by create revision, on a lease",
        "As etcd's own mutex: one release wakes one waiter, which looks once more whether its own key is still there. "
        "A process that pauses for longer than its lease loses the lock without knowing."},

    {"etcd-cas",                 GUARANTEE_WHILE_LEASE_HOLDS, SHOWN_BY_EXPIRY,                 SPAN_AROUND_TX,    &etcd_cas,                   FENCE_NONE,    SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, COMBINE_NONE, "Put if absent, on a lease",
        "The simplest lock in etcd. Without the \"if absent\" it would be none at all."},

    {"etcd-fenced",              GUARANTEE_SAFE,              SHOWN_BY_NOTHING,                SPAN_AROUND_TX,    &etcd_mutex,                 FENCE_BEFORE_READ, SCOPE_ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, COMBINE_NONE, "The queue, and its revision as a fencing token",
        "Create revisions only grow, and the row refuses whoever is not its newest holder."},
};
/* clang-format on */

const size_t strategy_count = sizeof strategies / sizeof strategies[0];
_Static_assert(sizeof strategies / sizeof strategies[0] <= STRATEGIES_MAX,
               "metrics have no room for so many");
