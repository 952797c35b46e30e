/* The faults, each a row of data. */
#include "loadtest/faults/fault.h"
#include "loadtest/faults/lock_test.h"

/* ---- what is expected ---------------------------------------------------------------------------------- */

/* A killed process takes its connections with it, and with lock-row its lock: the order's own session may commit after. */
static unsigned expect_kill(const struct strategy *strategy)
{
    if (strategy->lock && !strategy->lock->properties.leased && !strategy->lock->properties.survives_crash)
        return ORDERS_KEPT | SEEN_STUCK;
    if (strategy->guarantee == GUARANTEE_SAFE)
        return ALL_KEPT | I4_LOCK_FREED;
    if (strategy->guarantee != GUARANTEE_WHILE_LEASE_HOLDS)
        return ORDERS_KEPT;
    bool dies_with_connection = (fault_perils(strategy) & PERIL_DISCONNECT) &&
                                fault_lock_on(strategy, "lock-database");
    return ORDERS_KEPT | I4_LOCK_FREED | (dies_with_connection ? 0u : STOCK_KEPT);
}

static unsigned expect_kill_kindly(const struct strategy *strategy)
{
    return fault_expect_leases_held(strategy);
}

static unsigned expect_pause(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_PAUSE, NULL);
}

/* Every writer of such a row is in one process here, and PostgreSQL forgets none of its transactions. Resets by the other process
 * are no writers like that: each write demands the stock that was read. */
static unsigned expect_database(const struct strategy *strategy)
{
    if (strategy->guarantee == GUARANTEE_ONE_PROCESS && strategy->scope == SCOPE_ONE_TX)
        return ALL_KEPT | I5_FLOWS;
    return fault_expect_leases_held(strategy);
}

static unsigned expect_lock_backend(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_DISCONNECT, "lock-database");
}

static unsigned expect_redis_restart(const struct strategy *strategy)
{
    /* Its token begins anew as well, so the row refuses what is late, unless no token was ever written. */
    if (strategy->fencing == FENCE_ON_WRITE)
        return ORDERS_KEPT;
    return fault_expect_peril(strategy, PERIL_RESTART, "redis");
}

/* What was accepted and is lost with Redis is the price of redis-stock; that nothing is oversold is not. */
static unsigned expect_redis_loses(const struct strategy *strategy)
{
    if (strategy->take_stock->kind == STOCK_REDIS)
        return STOCK_KEPT | I5_FLOWS | I6_ANSWERED | I7_ONCE | SEEN_LOST;
    return fault_lock_on(strategy, "redis") ? fault_expect_leases_ended(strategy) : 0;
}

static unsigned expect_redlock_minority(const struct strategy *strategy)
{
    return fault_lock_on(strategy, "redlock") ? fault_expect_leases_held(strategy) : 0;
}

static unsigned expect_redlock_majority(const struct strategy *strategy)
{
    return fault_lock_on(strategy, "redlock") ? fault_expect_leases_ended(strategy) | I5_FLOWS : 0;
}

static unsigned expect_redlock_restart(const struct strategy *strategy)
{
    return fault_lock_on(strategy, "redlock") ? fault_expect_peril(strategy, PERIL_RESTART, "redlock") : 0;
}

static unsigned expect_session(const struct strategy *strategy)
{
    bool there = fault_lock_on(strategy, "zookeeper") || fault_lock_on(strategy, "etcd");
    return there ? fault_expect_peril(strategy, PERIL_PAUSE | PERIL_DISCONNECT, NULL) : 0;
}

static unsigned expect_zookeeper(const struct strategy *strategy)
{
    return fault_lock_on(strategy, "zookeeper") ? fault_expect_leases_ended(strategy) | I5_FLOWS : 0;
}

static unsigned expect_etcd(const struct strategy *strategy)
{
    return fault_lock_on(strategy, "etcd") ? fault_expect_leases_ended(strategy) | I5_FLOWS : 0;
}

static unsigned expect_clock_redis(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_CLOCK, "redis");
}

static unsigned expect_clock_redlock(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_CLOCK, "redlock");
}

static unsigned expect_clock_service(const struct strategy *strategy)
{
    return fault_expect_peril(strategy, PERIL_CLOCK, "lock-database");
}

/* Locks as such, so one row of each; what is asked before the write is not part of the lock. */
static unsigned expect_lock_test(const struct strategy *strategy)
{
    if (strategy->span != SPAN_AROUND_TX || strategy->guarantee == GUARANTEE_ONE_PROCESS ||
        (strategy->shown_by & (SHOWN_BY_LOAD | SHOWN_BY_CRASH)) || strategy->take_stock->asks_lock)
        return 0;
    bool lost = strategy->guarantee != GUARANTEE_SAFE && (fault_perils(strategy) & PERIL_PAUSE);
    return lost ? SEEN_LOST : I1_NOT_OVERSOLD | I2_NOT_LOST;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

/* clang-format off */
const struct fault faults[] = {
    {.name = "kill", .does = "a service is killed at a random moment (kill -9), and started again",
     .cycle = CYCLE_LOAD, .expected = expect_kill, .nemesis = nemesis_kill,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 200},
    {.name = "terminate", .does = "a service is told to end under load (SIGTERM), and must exit with 0; the other one goes on",
     .cycle = CYCLE_LOAD, .expected = expect_kill_kindly, .nemesis = nemesis_terminate,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "pause", .does = "a service that holds a lock and has read sleeps for up to twice its lease (SIGSTOP)",
     .cycle = CYCLE_OVERTAKE, .expected = expect_pause, .nemesis = nemesis_pause, .after = after_pause,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "lock-test", .does = "Jepsen's lock test: five processes update a number under a lock with a lease of 2 s, think for up to 2 s, and are paused every 5 s",
     .cycle = CYCLE_LOCK_TEST, .expected = expect_lock_test, .ttl_ms = LOCK_TEST_LEASE_MS, .bound_ms = 3000, .cycles = 2},
    {.name = "postgres-backend", .does = "a backend of PostgreSQL is killed (kill -9), which makes it begin anew",
     .cycle = CYCLE_LOAD, .expected = expect_database, .nemesis = nemesis_postgres_backend,
     .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "postgres-immediate", .does = "PostgreSQL is ended at once (pg_ctl -m immediate) and started again",
     .cycle = CYCLE_LOAD, .expected = expect_database, .nemesis = nemesis_postgres_immediate,
     .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "disk-full", .does = "the disk of PostgreSQL's log is full (ENOSPC) for up to a second, so that it panics and cannot recover",
     .cycle = CYCLE_LOAD, .expected = expect_database, .enter = enter_disk_full, .nemesis = nemesis_disk_full,
     .leave = leave_disk_full, .possible = disk_possible, .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "commit-reply", .does = "connections are reset after COMMIT was sent and before its reply",
     .cycle = CYCLE_LOAD, .expected = expect_database, .nemesis = nemesis_commit_reply,
     .proxied = 1 << SERVER_POSTGRES, .ttl_ms = 10000, .bound_ms = 1000, .cycles = 20},
    {.name = "commit-late", .does = "connections are reset with a COMMIT on its way, which reaches PostgreSQL 1.5 s later",
     .cycle = CYCLE_LOAD, .expected = expect_database, .nemesis = nemesis_commit_late,
     .proxied = 1 << SERVER_POSTGRES, .ttl_ms = 10000, .bound_ms = 1000, .cycles = 20},
    {.name = "lock-backend", .does = "the backend that holds lock-row's lock is terminated under its holder",
     .cycle = CYCLE_OVERTAKE, .expected = expect_lock_backend, .nemesis = nemesis_lock_backend,
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "delay", .does = "everything comes 50 ms later, in both directions, before one kind of server after the other",
     .cycle = CYCLE_LOAD, .expected = fault_expect_leases_ended, .nemesis = nemesis_delay,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "half-open", .does = "connections stand still for 3 s and are reset then, before one kind of server after the other",
     .cycle = CYCLE_LOAD, .expected = fault_expect_leases_ended, .nemesis = nemesis_half_open,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "one-byte", .does = "everything comes byte by byte, before one kind of server after the other",
     .cycle = CYCLE_LOAD, .expected = fault_expect_leases_ended, .nemesis = nemesis_one_byte,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "cut", .does = "a connection is reset after the N-th byte, N at random, before one kind of server after the other",
     .cycle = CYCLE_LOAD, .expected = fault_expect_leases_ended, .nemesis = nemesis_cut,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 4 * BACKENDS},
    {.name = "session", .does = "the network between a holder and its ZooKeeper or etcd stands still for longer than the session or lease",
     .cycle = CYCLE_OVERTAKE, .expected = expect_session, .nemesis = nemesis_session, .after = after_session,
     .proxied = 1 << SERVER_ZOOKEEPER | 1 << SERVER_ETCD, .proxied_one = true, .think_ms = 8000,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redis-restart", .does = "Redis is killed under the holder of a lock, and restarted empty within its lease",
     .cycle = CYCLE_OVERTAKE, .expected = expect_redis_restart, .nemesis = nemesis_redis_restart,
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 5},
    {.name = "redis-loses", .does = "Redis is killed under load, with accepted orders that are not written yet, and restarted empty",
     .cycle = CYCLE_LOAD, .expected = expect_redis_loses, .nemesis = nemesis_redis_loses, .ample = true,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "redis-failover", .does = "Redis is killed before it has told its replica of a lock, and the replica takes its place",
     .cycle = CYCLE_OVERTAKE, .expected = expect_redis_restart, .before = before_failover, .leave = leave_failover, .nemesis = nemesis_failover,
     .servers_of = "redlock", .proxied = 1 << SERVER_REDIS, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "redlock-2-down", .does = "two of Redlock's five servers are killed; they come back once orders have gone on without them",
     .cycle = CYCLE_LOAD, .expected = expect_redlock_minority, .nemesis = nemesis_redlock_minority,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redlock-3-down", .does = "three of Redlock's five servers are killed for longer than an order waits for its lock",
     .cycle = CYCLE_LOAD, .expected = expect_redlock_majority, .nemesis = nemesis_redlock_majority,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redlock-restart", .does = "two of Redlock's five servers are down while a lock is taken; they come back, and one that voted restarts empty",
     .cycle = CYCLE_OVERTAKE, .expected = expect_redlock_restart, .before = before_redlock_restart, .nemesis = nemesis_redlock_restart,
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 5},
    {.name = "clock-redis", .does = "the clock of the one Redis jumps an hour ahead",
     .cycle = CYCLE_OVERTAKE, .expected = expect_clock_redis, .enter = enter_clock_redis, .nemesis = nemesis_clock_redis,
     .leave = leave_clock_redis, .possible = clock_possible, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "clock-redlock", .does = "the clocks of three of Redlock's five servers jump an hour ahead",
     .cycle = CYCLE_OVERTAKE, .expected = expect_clock_redlock, .enter = enter_clock_redlock,
     .nemesis = nemesis_clock_redlock, .leave = leave_clock_redlock, .possible = clock_possible,
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "clock-service", .does = "the clock of one of the services jumps an hour ahead",
     .cycle = CYCLE_OVERTAKE, .expected = expect_clock_service, .nemesis = nemesis_clock_service,
     .possible = clock_possible, .clocks = true, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "zookeeper-restart", .does = "ZooKeeper is killed and started again",
     .cycle = CYCLE_LOAD, .expected = expect_zookeeper, .nemesis = nemesis_zookeeper_restart,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "etcd-restart", .does = "etcd is killed and started again",
     .cycle = CYCLE_LOAD, .expected = expect_etcd, .nemesis = nemesis_etcd_restart,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "reset-beside", .does = "another process resets the products, or in every fourth cycle replaces them (PUT), while orders are in progress",
     .cycle = CYCLE_LOAD, .expected = expect_database, .nemesis = nemesis_reset_beside, .think_ms = 60,
     .ttl_ms = 10000, .bound_ms = 3000, .cycles = 40},
};
/* clang-format on */

const size_t fault_count = sizeof faults / sizeof faults[0];
