/* The faults, each a row of data, and the functions that derive from the strategy table what is expected under them. */
#include "loadtest/faults/fault.h"
#include "loadtest/faults/lock_test.h"

/* ---- expectations --------------------------------------------------------------------------------------- */

/* Servers restart, but no lease ends while its holder works. */
static unsigned expect_leases_held(const struct fault *fault, const struct strategy *strategy)
{
    (void)fault;
    bool held = strategy->guarantee == GUARANTEE_SAFE || strategy->guarantee == GUARANTEE_WHILE_LEASE_HOLDS;
    return held ? ALL_KEPT | I5_FLOWS : ORDERS_KEPT;
}

/* A lease may end while its holder works, so only safe strategies keep the stock. */
static unsigned expect_leases_ended(const struct fault *fault, const struct strategy *strategy)
{
    (void)fault;
    return strategy->guarantee == GUARANTEE_SAFE ? ALL_KEPT | I5_FLOWS : ORDERS_KEPT;
}

/* As before, and orders must succeed again under every strategy. */
static unsigned expect_leases_ended_flow(const struct fault *fault, const struct strategy *strategy)
{
    return expect_leases_ended(fault, strategy) | I5_FLOWS;
}

/* The fault certainly ends the locks that it can end (PERILS, LOCK_ON). */
static unsigned expect_peril(const struct fault *fault, const struct strategy *strategy)
{
    if (strategy->guarantee == GUARANTEE_SAFE)
        return ALL_KEPT;
    if (strategy->span != SPAN_AROUND_TX || strategy->guarantee == GUARANTEE_ONE_PROCESS ||
        (strategy->shown_by & SHOWN_BY_LOAD))
        return 0; /* oversells without any fault */
    if ((fault_perils(strategy) & fault->perils) &&
        (!fault->lock_on || fault_lock_on(strategy, fault->lock_on)))
        return ORDERS_KEPT | SEEN_OVERSOLD;
    return strategy->guarantee == GUARANTEE_WHILE_LEASE_HOLDS ? ALL_KEPT : ORDERS_KEPT;
}

/* Of a process that dies between two transactions, the units that its order has taken are gone. */
static unsigned without_gone(const struct strategy *strategy, unsigned expected)
{
    return strategy->scope == SCOPE_TWO_TX ? expected & ~(unsigned)I8_NO_UNIT_GONE : expected;
}

/* A killed process loses its connections, and with lock-row its lock: the order's own session may still commit. */
static unsigned expect_kill(const struct fault *fault, const struct strategy *strategy)
{
    (void)fault;
    if (strategy->lock && strategy->lock->properties.carrier != CARRIER_LEASE &&
        !strategy->lock->properties.survives_crash)
        return without_gone(strategy, ORDERS_KEPT | SEEN_STUCK);
    if (strategy->guarantee == GUARANTEE_SAFE)
        return ALL_KEPT | I4_LOCK_FREED;
    if (strategy->guarantee != GUARANTEE_WHILE_LEASE_HOLDS)
        return without_gone(strategy, ORDERS_KEPT);
    bool ends_with_connection = (fault_perils(strategy) & PERIL_DISCONNECT) &&
                                fault_lock_on(strategy, "lock-database");
    return ORDERS_KEPT | I4_LOCK_FREED | (ends_with_connection ? 0u : STOCK_KEPT);
}

/* All orders of a one-process strategy are in one process here, and PostgreSQL keeps its transactions. A reset by the other
 * process does no harm, because each write requires that the stock is the one that was read. */
static unsigned expect_database(const struct fault *fault, const struct strategy *strategy)
{
    if (strategy->guarantee == GUARANTEE_ONE_PROCESS && strategy->scope == SCOPE_ONE_TX)
        return ALL_KEPT | I5_FLOWS;
    return expect_leases_held(fault, strategy);
}

/* The restart also resets the counter of fencing tokens, so the row rejects the late order, unless no token was written. */
static unsigned expect_redis_restart(const struct fault *fault, const struct strategy *strategy)
{
    return strategy->fencing == FENCE_ON_WRITE ? ORDERS_KEPT : expect_peril(fault, strategy);
}

/* redis-stock may lose accepted orders with Redis, but must not oversell. */
static unsigned expect_redis_loses(const struct fault *fault, const struct strategy *strategy)
{
    if (strategy->take_stock->kind == STOCK_REDIS)
        return STOCK_KEPT | I5_FLOWS | I6_ANSWERED | I7_ONCE | SEEN_LOST;
    return fault_lock_on(strategy, "redis") ? expect_leases_ended(fault, strategy) : 0;
}

/* This tests locks, so it takes one strategy for each lock; a check of the lock before the write is not part of the lock. */
static unsigned expect_lock_test(const struct fault *fault, const struct strategy *strategy)
{
    if (strategy->span != SPAN_AROUND_TX || strategy->guarantee == GUARANTEE_ONE_PROCESS ||
        (strategy->shown_by & (SHOWN_BY_LOAD | SHOWN_BY_CRASH)) || strategy->take_stock->asks_lock)
        return 0;
    bool lost = strategy->guarantee != GUARANTEE_SAFE && (fault_perils(strategy) & fault->perils);
    return lost ? SEEN_LOST : I1_NOT_OVERSOLD | I2_NOT_LOST;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

/* clang-format off */
const struct fault faults[] = {
    {.name = "kill", .does = "a service is killed at a random moment (kill -9) and restarted",
     .cycle = CYCLE_LOAD, .at_victim = true, .expect = expect_kill, .nemesis = nemesis_kill,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 200},
    {.name = "terminate", .does = "a service gets SIGTERM under load, and must exit with status 0; the other service continues",
     .cycle = CYCLE_LOAD, .at_victim = true, .expect = expect_leases_held, .nemesis = nemesis_terminate,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "pause", .does = "a service that has read the stock under its lock is paused for up to twice the lease (SIGSTOP)",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_PAUSE, .nemesis = nemesis_pause, .after = after_pause,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "lock-test", .does = "Jepsen's lock test: five processes update a number under a lock with a lease of 2 s, think for up to 2 s, and are paused every 5 s",
     .cycle = CYCLE_LOCK_TEST, .expect = expect_lock_test, .perils = PERIL_PAUSE, .ttl_ms = LOCK_TEST_LEASE_MS, .bound_ms = 3000, .cycles = 2},
    {.name = "postgres-backend", .does = "a backend process of PostgreSQL is killed (kill -9), so PostgreSQL restarts",
     .cycle = CYCLE_LOAD, .expect = expect_database, .nemesis = nemesis_postgres_backend,
     .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "postgres-immediate", .does = "PostgreSQL is stopped without a checkpoint (pg_ctl -m immediate) and restarted",
     .cycle = CYCLE_LOAD, .expect = expect_database, .nemesis = nemesis_postgres_immediate,
     .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "disk-full", .does = "the disk with PostgreSQL's write-ahead log is full (ENOSPC) for up to a second, so PostgreSQL panics and cannot recover",
     .cycle = CYCLE_LOAD, .expect = expect_database, .enter = enter_disk_full, .nemesis = nemesis_disk_full,
     .leave = leave_disk_full, .shim = &disk_shim, .ttl_ms = 2000, .bound_ms = 1000, .cycles = 20},
    {.name = "commit-reply", .does = "connections are reset after a COMMIT was sent: it never reaches PostgreSQL, or its reply never arrives",
     .cycle = CYCLE_LOAD, .expect = expect_database, .nemesis = nemesis_commit,
     .proxied = 1 << SERVER_POSTGRES, .ttl_ms = 10000, .bound_ms = 1000, .cycles = 20},
    {.name = "commit-late", .does = "connections are reset after a COMMIT was sent, and the COMMIT reaches PostgreSQL 1.5 s later",
     .cycle = CYCLE_LOAD, .expect = expect_database, .nemesis = nemesis_commit, .rules = {.held_ms = 1500},
     .proxied = 1 << SERVER_POSTGRES, .ttl_ms = 10000, .bound_ms = 1000, .cycles = 20},
    {.name = "lock-backend", .does = "the backend process that holds the lock of lock-row is terminated while an order uses the lock",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_DISCONNECT, .lock_on = "lock-database", .nemesis = nemesis_lock_backend,
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "delay", .does = "all data to and from one kind of server is delayed by 50 ms, one kind after another",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended, .nemesis = nemesis_network, .rules = {.delay_ms = 50}, .lasts_ms = 1500,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "half-open", .does = "connections to one kind of server transfer nothing for 3 s and are then reset, one kind after another",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended, .nemesis = nemesis_network, .rules = {.stall = {true, true}}, .lasts_ms = 3000,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "one-byte", .does = "all data to and from one kind of server arrives byte by byte, one kind after another",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended, .nemesis = nemesis_network, .rules = {.piece = 1}, .lasts_ms = 1500,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 2 * BACKENDS},
    {.name = "cut", .does = "a connection to one kind of server is reset after a random number of bytes, one kind after another",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended, .nemesis = nemesis_cut,
     .proxied = BEFORE_ALL, .ttl_ms = 2000, .bound_ms = 3000, .cycles = 4 * BACKENDS},
    {.name = "session", .does = "the network between a lock holder and ZooKeeper or etcd transfers nothing for longer than the session or lease",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_PAUSE | PERIL_DISCONNECT, .only = {"zookeeper", "etcd"}, .nemesis = nemesis_session, .rules = {.stall = {true, true}}, .after = after_session,
     .proxied = 1 << SERVER_ZOOKEEPER | 1 << SERVER_ETCD, .proxied_one = true, .think_ms = 8000,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redis-restart", .does = "Redis is killed while an order holds a lock, and restarted empty within the lease",
     .cycle = CYCLE_OVERTAKE, .expect = expect_redis_restart, .perils = PERIL_RESTART, .lock_on = "redis", .nemesis = nemesis_restart, .servers = {"redis"},
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 5},
    {.name = "redis-loses", .does = "Redis is killed under load with accepted orders that are not written yet, and restarted empty",
     .cycle = CYCLE_LOAD, .expect = expect_redis_loses, .nemesis = nemesis_redis_loses, .servers = {"redis"}, .ample = true,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 10},
    {.name = "redis-failover", .does = "Redis is killed before it has replicated a lock, and the replica takes over",
     .cycle = CYCLE_OVERTAKE, .expect = expect_redis_restart, .perils = PERIL_RESTART, .lock_on = "redis", .before = before_failover, .leave = leave_failover, .nemesis = nemesis_failover,
     .servers_of = "redlock", .proxied = 1 << SERVER_REDIS, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "redlock-2-down", .does = "two of Redlock's five servers are killed, and restarted after orders have continued without them",
     .cycle = CYCLE_LOAD, .expect = expect_leases_held, .only = {"redlock"}, .nemesis = nemesis_redlock_minority, .servers = {"redis-4", "redis-5"},
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redlock-3-down", .does = "three of Redlock's five servers are killed for longer than an order waits for its lock",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended_flow, .only = {"redlock"}, .nemesis = nemesis_restart, .servers = {"redis-3", "redis-4", "redis-5"},
     .down_ms = FAULT_LOCK_WAIT_MS + 1500,
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "redlock-restart", .does = "two of Redlock's five servers are down while a lock is acquired; they return, and a server that voted restarts empty",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_RESTART, .only = {"redlock"}, .before = before_redlock_restart, .nemesis = nemesis_redlock_restart,
     .servers = {"redis-3", "redis-4", "redis-5"},
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 5},
    {.name = "clock-redis", .does = "the clock of the only Redis server jumps ahead by an hour",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_CLOCK, .lock_on = "redis", .enter = enter_clocks, .nemesis = nemesis_clocks,
     .leave = leave_clocks, .shim = &clock_shim, .servers = {"redis"}, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "clock-redlock", .does = "the clocks of three of Redlock's five servers jump ahead by an hour",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_CLOCK, .lock_on = "redlock", .enter = enter_clocks,
     .nemesis = nemesis_clocks, .leave = leave_clocks, .shim = &clock_shim, .servers = {"redis-1", "redis-2", "redis-3"},
     .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "clock-service", .does = "the clock of one service jumps ahead by an hour",
     .cycle = CYCLE_OVERTAKE, .expect = expect_peril, .perils = PERIL_CLOCK, .lock_on = "lock-database", .nemesis = nemesis_clock_service,
     .shim = &clock_shim, .clocks = true, .ttl_ms = 30000, .bound_ms = 3000, .cycles = 3},
    {.name = "zookeeper-restart", .does = "ZooKeeper is killed and restarted",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended_flow, .only = {"zookeeper"}, .nemesis = nemesis_restart, .servers = {"zookeeper"},
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "etcd-restart", .does = "etcd is killed and restarted",
     .cycle = CYCLE_LOAD, .expect = expect_leases_ended_flow, .only = {"etcd"}, .nemesis = nemesis_restart, .servers = {"etcd"},
     .ttl_ms = 2000, .bound_ms = 3000, .cycles = 5},
    {.name = "reset-beside", .does = "another process resets the products while orders are in progress, and replaces them (PUT) in every fourth cycle",
     .cycle = CYCLE_LOAD, .expect = expect_database, .nemesis = nemesis_reset_beside, .think_ms = 60,
     .ttl_ms = 10000, .bound_ms = 3000, .cycles = 40},
};
/* clang-format on */

const size_t fault_count = sizeof faults / sizeof faults[0];
