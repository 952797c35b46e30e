/* The strategy table: what this program is about. Two strategies differ in a cell or two; read across. */
#include "service/engine/create_order.h"
#include "service/engine/strategy.h"

/* clang-format off */
const struct strategy strategies[] = {
    /* name                      guarantee          shown by                span          lock                         fence        transactions
        isolation                taking of the stock      tries, way of placing, orders of a product together, title, why */

    {"read-write",               UNSAFE,            LOAD,                   NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "No protection: read, then write the result",
        "Two orders read the same stock, and the later write wipes out the earlier one: a lost update."},

    {"decrement",                UNSAFE,            LOAD,                   NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_decrement,          1,   place_by_steps, ONE_BY_ONE, "No protection: check, then subtract",
        "No update is lost, but two orders that both found the last unit both take it: the stock goes below zero."},

    {"mutex-early-release",      UNSAFE,            LOAD,                   INSIDE_TX,    &process_mutex,              NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Process mutex, released before COMMIT",
        "The transaction outlives its lock: the next order reads before this one's write can be seen."},

    {"mutex-wrong-object",       UNSAFE,            LOAD,                   AROUND_TX,    &process_mutex_wrong_object, NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A mutex, but every order locks a different one",
        "Each worker locks an object of its own, so nobody ever waits for anybody."},

    {"mutex",                    ONE_PROCESS,       SECOND_PROCESS,         AROUND_TX,    &process_mutex,              NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Process mutex around the transaction",
        "The mutex outlives the transaction, so each order reads what the last one wrote. "
        "A second process has a mutex of its own, and sells the same stock again."},

    {"mutex-per-product",        ONE_PROCESS,       SECOND_PROCESS,         AROUND_TX,    &process_mutex_per_product,  NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Process mutex for each product",
        "As mutex, but orders of different products do not wait for each other."},

    {"reentrant-mutex",          ONE_PROCESS,       SECOND_PROCESS | CRASH, AROUND_TWICE, &process_mutex_reentrant,    NO_FENCE,    TWO_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Recursive mutex around the stock alone",
        "The critical section is short: the order is inserted in a second transaction, outside the mutex. If that fails, the "
        "service gives the units back. A crash between the two loses the units, and each process has its own mutex."},

    {"select-for-update",        SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_for_update,         1,   place_by_steps, ONE_BY_ONE, "SELECT … FOR UPDATE",
        "Reading locks the row until COMMIT, so the next order waits and then reads the new stock."},

    {"atomic-decrement",         SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_guarded,            1,   place_by_steps, ONE_BY_ONE, "UPDATE … WHERE count >= n",
        "The database checks and subtracts in one statement, on the newest version of the row."},

    {"atomic-statement",         SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_one_statement, ONE_BY_ONE, "The whole order as one statement",
        "As atomic-decrement, in one round trip: the row is held for a commit, not for a conversation."},

    {"check-constraint",         SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_decrement_checked,  1,   place_by_steps, ONE_BY_ONE, "Check, then subtract; CHECK (count >= 0)",
        "As decrement, but the schema refuses a stock below zero: the second of two last orders fails."},

    {"optimistic",               SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_optimistic,         50,  place_by_steps, ONE_BY_ONE, "Version column, compare and swap",
        "It writes only where the row's version is still the one that was read; else it reads again and retries."},

    {"repeatable-read",          SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_REPEATABLE_READ,         take_read_write,         50,  place_by_steps, ONE_BY_ONE, "Read, then write, at REPEATABLE READ",
        "PostgreSQL refuses to overwrite a row that changed after the snapshot (40001); the order retries. "
        "MySQL, under the same name, loses the update."},

    {"serializable",             SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_SERIALIZABLE,            take_read_write,         50,  place_by_steps, ONE_BY_ONE, "Read, then write, at SERIALIZABLE",
        "The database finds the transactions that no serial order explains and refuses one; the order retries."},

    {"table-lock",               SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_table_lock,         1,   place_by_steps, ONE_BY_ONE, "LOCK TABLE … IN EXCLUSIVE MODE",
        "Every order waits for every other, of any product: right, and much too coarse."},

    {"advisory-lock",            SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_advisory_lock,      1,   place_by_steps, ONE_BY_ONE, "pg_advisory_xact_lock, then read, then write",
        "A lock on a number instead of a row, which ends with the transaction. "
        "The read is a statement of its own after it, so it sees what the last holder committed."},

    /* many orders, one transaction */
    {"batched",                  SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_batch, COMBINED_IN_POSTGRES, "Waiting orders combined into one transaction",
        "As select-for-update, but whoever has the row's turn brings all that wait: "
        "one lock and one flush to disk for up to 128 orders, first come, first served."},

    /* stock of another kind */
    {"skip-locked",              SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_units,              1,   place_by_steps, ONE_BY_ONE, "One row a unit, FOR UPDATE SKIP LOCKED",
        "Each order locks units that nobody else has locked, and never waits: two cannot get the same one. "
        "Who finds too few while others hold some is told to come back, for those may yet be set free."},

    {"bucketed",                 SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_buckets,            50,  place_by_steps, ONE_BY_ONE, "The stock split over 16 rows",
        "As atomic-decrement, on one row of sixteen, so few orders wait for each other. "
        "Where no single row has enough, all are locked in the same order and added up before it is sold out."},

    {"redis-stock",              SAFE,              NOTHING,                NO_LOCK,      NULL,                        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          NULL,                    1,   place_in_redis, COMBINED_IN_REDIS, "Stock taken in Redis, orders written afterwards",
        "One script takes the stock of all waiting orders in Redis, never below zero, and PostgreSQL refuses what would oversell. "
        "The answer is 202: what Redis has accepted and not yet saved when it dies is lost, and its units are sold again."},

    /* locks beyond the process */
    {"lock-row",                 WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &lock_row,                   NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A row of a lock table, FOR UPDATE on its own connection",
        "The lock lives on another connection than the order, and dies with that one: the order goes on without it."},

    {"lock-table",               WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &lock_table,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As Spring's JdbcLockRegistry: INT_LOCK",
        "A unique key and a time of expiry by the clients' clocks, asked for again and again."},

    {"shedlock",                 WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &lock_shedlock,              NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As ShedLock: lock_until",
        "Made so that scheduled jobs run once, misused for orders: whoever is late finds the lock gone."},

    {"redis-setnx-forever",      UNSAFE,            CRASH,                  AROUND_TX,    &redis_setnx_forever,        NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SETNX, and DEL when done",
        "Nothing ends the lock but its holder: one that dies keeps everybody out for ever."},

    {"redis-setnx",              UNSAFE,            CRASH,                  AROUND_TX,    &redis_setnx,                NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SETNX, then EXPIRE",
        "Two commands: a holder that dies between them leaves a lock that never expires."},

    {"redis-setnx-repair",       UNSAFE,            EXPIRY,                 AROUND_TX,    &redis_setnx_repair,         NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SETNX and EXPIRE, with a repair",
        "A loser gives a key without expiry one, so nothing is stuck; but the release still reads, compares and then deletes, "
        "and by then the key may be somebody else's."},

    {"redis-del",                UNSAFE,            EXPIRY,                 AROUND_TX,    &redis_del,                  NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SET NX PX, released by DEL",
        "Who comes late deletes whatever lock is there, also the next holder's, and lets a third one in."},

    {"redis-get-del",            UNSAFE,            EXPIRY,                 AROUND_TX,    &redis_get_del,              NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SET NX PX, released by GET, compare, DEL",
        "The lock can end and be taken by another between the GET and the DEL: the same fault in a smaller window."},

    {"redis-lock",               WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_lock,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "SET NX PX, released by a script that compares",
        "Taken and released in one step each, by its owner only: right while the lease lasts. "
        "A holder that pauses for longer writes what it had read, beside the next holder."},

    {"redis-lock-checked",       WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_lock,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_checked,            1,   place_by_steps, ONE_BY_ONE, "As redis-lock, asked again before the write",
        "The lease may end between the answer and the write: the window is smaller, and still there."},

    {"redis-lock-early-release", UNSAFE,            LOAD,                   INSIDE_TX,    &redis_lock,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As redis-lock, released before COMMIT",
        "The right lock in the wrong place: the next order reads before this one's write can be seen."},

    {"redis-registry",           WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_registry,             NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As Spring's RedisLockRegistry",
        "One id for the whole process, so a lock of the process in front tells its threads apart."},

    {"redis-registry-shared",    UNSAFE,            LOAD,                   AROUND_TX,    &redis_registry_shared,      NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Two registries with one id",
        "Both find their own id in the lock and take it for theirs: an owner's id must be its own."},

    {"fence-on-write",           WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_fenced,               ON_WRITE,    ONE_TX,
        DB_READ_COMMITTED,          take_fence_on_write,     1,   place_by_steps, ONE_BY_ONE, "A fencing token, checked by the write alone",
        "The token as usually drawn: a late write of an older holder passes while the newer one has read and not yet written, "
        "and the newer one then overwrites it."},

    {"redis-fenced",             SAFE,              NOTHING,                AROUND_TX,    &redis_fenced,               BEFORE_READ, ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, ONE_BY_ONE, "A fencing token, registered before the read",
        "The row itself refuses whoever is not its newest holder, so what was read can only be changed by who shuts us out. "
        "A pause costs the order, never the stock."},

    {"redis-reentrant",          WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_reentrant,            NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As Redisson's RLock: reentrant, woken, renewed",
        "A hold count instead of a value; waiters are woken by a message, and a watchdog renews the lease while its holder runs. "
        "When the whole process pauses, so does the watchdog."},

    {"redis-fair",               WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redis_fair,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As Redisson's fair lock: a queue in Redis",
        "First come, first served, for more requests to Redis; its lease can still end under its holder."},

    {"redlock",                  WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redlock,                    NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A majority of independent Redis servers",
        "Two of five servers may be down. A pause ends it like any lease, "
        "and a server that restarts without its memory votes twice."},

    {"redisson-redlock",         WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &redisson_redlock,           NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As RedissonRedLock: a majority of RLocks",
        "A majority, but the time that taking it took is not subtracted from the lease."},

    {"zookeeper-naive",          UNSAFE,            EXPIRY,                 AROUND_TX,    &zookeeper_naive,            NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A queue of nodes, believed at the first wake-up",
        "Woken by the end of the waiter before it, an order takes the lock while its holder still has it; "
        "and who watches a node that is gone already waits for ever."},

    {"zookeeper-herd",           WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &zookeeper_herd,             NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A queue of nodes, all watching the first",
        "Checked again after waking, so it is right; but every release wakes every waiter."},

    {"zookeeper",                WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &zookeeper_queue,            NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A queue of nodes, each watching the one before",
        "One release wakes one waiter, first come, first served; the lock ends with the session."},

    {"curator",                  WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &curator,                    NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "As Curator's InterProcessMutex",
        "The same queue with what a library adds: a create that survives a lost reply, reentrancy, a delete that is made sure."},

    {"zookeeper-fenced",         SAFE,              NOTHING,                AROUND_TX,    &zookeeper_queue,            BEFORE_READ, ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, ONE_BY_ONE, "The queue, and its czxid as a fencing token",
        "The transaction id of the holder's node only grows, and the row refuses whoever is not its newest holder."},

    {"etcd",                     WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &etcd_mutex,                 NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "A queue by create revision, on a lease",
        "As etcd's own mutex: one release wakes one waiter, which looks once more whether its own key is still there. "
        "A process that pauses for longer than its lease loses the lock without knowing."},

    {"etcd-cas",                 WHILE_LEASE_HOLDS, EXPIRY,                 AROUND_TX,    &etcd_cas,                   NO_FENCE,    ONE_TX,
        DB_READ_COMMITTED,          take_read_write,         1,   place_by_steps, ONE_BY_ONE, "Put if absent, on a lease",
        "The simplest lock in etcd. Without the \"if absent\" it would be none at all."},

    {"etcd-fenced",              SAFE,              NOTHING,                AROUND_TX,    &etcd_mutex,                 BEFORE_READ, ONE_TX,
        DB_READ_COMMITTED,          take_fenced,             1,   place_by_steps, ONE_BY_ONE, "The queue, and its revision as a fencing token",
        "Create revisions only grow, and the row refuses whoever is not its newest holder."},
};
/* clang-format on */

const size_t strategy_count = sizeof strategies / sizeof strategies[0];
_Static_assert(sizeof strategies / sizeof strategies[0] <= STRATEGIES_MAX,
               "metrics have no room for so many");
