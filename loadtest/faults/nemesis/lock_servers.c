/* Faults of lock servers: they are killed, started again without their memory, or replaced by a replica. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/redis_cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ACCEPTED_MS 60000 /* until an order was accepted */
#define HOLD_MS 60000
#define FOLLOWS_MS 60000 /* until a replica has copied its master */
#define POLL_MS 5

static const struct statement ST_HOLD = {"fault_hold", "SELECT 1 FROM product WHERE id = $1 FOR UPDATE", 1};

static const struct statement ST_FENCE = {"fault_fence", "SELECT fence_redis FROM product WHERE id = $1", 1};

/* Returns an error until the replica has copied all data of its master. No blanks or quotes, since redis_tell splits at them. */
static const char SCRIPT_FOLLOWS[] =
    "EVAL return(string.find(redis.call([[INFO]],[[replication]]),[[master_link_status:up]]))"
    "or(redis.error_reply([[behind]])) 0";

static bool kill_servers(struct fault_run *run, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (!fault_server_signal(run->testbed, names[i], SIGKILL)) {
            complain("%s is not running", names[i]);
            return false;
        }
    return true;
}

/* Kills the fault's servers, and starts them again without their memory. */
bool nemesis_restart(struct fault_run *run)
{
    bool ok = kill_servers(run, run->fault->servers) && sleep_unless_interrupted(run->fault->down_ms) &&
              fault_servers_up(run->testbed, run->fault->servers, NULL);
    run->ready_us = monotonic_us();
    return ok;
}

/* ---- orders that are written later -------------------------------------------------------------------- */

/* Index of the strategy that writes its orders later (write-behind); run->count: none. */
static size_t behind(const struct fault_run *run)
{
    size_t i = 0;
    while (i < run->count && run->subjects[i].strategy->take_stock->kind != STOCK_REDIS)
        i++;
    return i;
}

/* Waits until an order has been accepted since SINCE_US, and then for a random time. */
static bool await_accepted(struct fault_run *run, size_t i, int64_t since_us)
{
    int64_t end_us = monotonic_us() + (int64_t)ACCEPTED_MS * 1000;
    while (fault_history_served(run->history, i) <= since_us && monotonic_us() < end_us)
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    return sleep_unless_interrupted(random_between(&run->random, 50, 300));
}

/* Locks the product's row, so that accepted orders cannot be written. */
static bool hold_row(struct fault_run *run, struct db *holder, int64_t product)
{
    AUTO_RESULT rows = NULL;
    const char *values[] = {DB_NUMBER(product)};
    int64_t end_us = monotonic_us() + (int64_t)HOLD_MS * 1000;
    db_set_deadline(holder, end_us, end_us);
    if (db_ready(holder) == DB_OK) {
        db_begin(holder, DB_READ_COMMITTED);
        if (db_run(holder, &ST_HOLD, values, &rows) == DB_OK)
            return await_accepted(run, behind(run), monotonic_us());
    }
    complain("cannot hold the product's row: %s", db_error(holder));
    return false;
}

/* Redis is killed while it has accepted orders that are not written yet. */
bool nemesis_redis_loses(struct fault_run *run)
{
    size_t i = behind(run);
    struct db *holder = i < run->count
                            ? db_new(run->testbed->base.addresses.database_url, "oversell judge holds")
                            : NULL;
    bool ok = !holder || hold_row(run, holder, run->subjects[i].product);
    ok = ok && nemesis_restart(run);
    db_free(holder); /* releases the row */
    run->ready_us = monotonic_us();
    return ok;
}

/* ---- Redlock ------------------------------------------------------------------------------------------- */

/* Orders must succeed without these servers, so they stay down until that has been seen. */
bool nemesis_redlock_minority(struct fault_run *run)
{
    bool ok = kill_servers(run, run->fault->servers);
    run->ready_us = monotonic_us();
    return ok && fault_await_service(run) && fault_servers_up(run->testbed, run->fault->servers, NULL);
}

/* The first of the fault's servers stays up, and the others are down while the lock is taken. */
bool before_redlock_restart(struct fault_run *run)
{
    for (size_t i = 1; run->fault->servers[i]; i++)
        (void)fault_server_signal(run->testbed, run->fault->servers[i], SIGKILL);
    return true;
}

/* The servers that were down come back, and one that voted for the holder has forgotten it: a majority of votes is free. */
bool nemesis_redlock_restart(struct fault_run *run)
{
    return fault_server_signal(run->testbed, run->fault->servers[0], SIGKILL) &&
           fault_servers_up(run->testbed, run->fault->servers, NULL);
}

/* ---- failover ------------------------------------------------------------------------------------------ */

/* Redlock's first server serves as the replica of the single Redis; no strategy uses it under this fault. */
static bool replica_tell(struct fault_run *run, const char *command)
{
    if (redis_tell(run->testbed->base.addresses.redlock_urls, 0, "%s", command))
        return true;
    complain("the Redis replica rejects: %s", command);
    return false;
}

/* Restarts both servers in their own roles. */
bool leave_failover(struct fault_run *run)
{
    (void)fault_server_signal(run->testbed, "redis-1", SIGKILL);
    return fault_servers_up(run->testbed, (const char *[]){"redis", "redis-1", NULL}, NULL);
}

/* Both servers start empty, but a real master has counted fencing tokens before it fails over. So the counters continue from the
 * products' rows, and the replica's counters lag by what is not replicated. */
static bool restore_fences(struct fault_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct fault_subject *subject = &run->subjects[i];
        AUTO_RESULT rows = NULL;
        if (subject->strategy->fencing == FENCE_NONE || !fault_lock_on(subject->strategy, "redis"))
            continue;
        struct db *db = fault_db(run->testbed);
        if (!db ||
            db_run(db, &ST_FENCE, (const char *const[]){DB_NUMBER(subject->product)}, &rows) != DB_OK) {
            complain("cannot read a fence: %s", db ? db_error(db) : "no database");
            return false;
        }
        if (PQntuples(rows) == 1 &&
            !redis_tell(run->testbed->base.addresses.redis_url, 0,
                        "SET redisson_lock_token:{oversell:lock:product:%" PRId64 "} %s", subject->product,
                        PQgetvalue(rows, 0, 0))) {
            complain("Redis refused to set the counter of a fencing token");
            return false;
        }
    }
    return true;
}

/* Waits until the replica has copied all data of its master. */
static bool await_replica(struct fault_run *run)
{
    int64_t end_us = monotonic_us() + (int64_t)FOLLOWS_MS * 1000;
    while (!redis_tell(run->testbed->base.addresses.redlock_urls, 0, "%s", SCRIPT_FOLLOWS)) {
        if (monotonic_us() > end_us) {
            complain("the Redis replica does not follow its primary");
            return false;
        }
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    }
    return true;
}

/* Replicates once, and then stops, so that the replica does not know of locks that are taken later. */
bool before_failover(struct fault_run *run)
{
    char password[128], text[REDIS_COMMAND_MAX];
    int port;
    if (!redis_address(run->testbed->base.addresses.redis_url, 0, password, &port))
        return false;
    if (!leave_failover(run))
        return false;
    fault_free_locks(run); /* before they are replicated */
    if (!restore_fences(run))
        return false;
    proxy_aim(run->testbed->proxies[SERVER_REDIS][0], port);
    fault_proxies_cut(run->testbed, 1 << SERVER_REDIS);
    /* Since Redis 7 a master by default waits for more replicas before it syncs. */
    (void)redis_tell(run->testbed->base.addresses.redis_url, 0, "CONFIG SET repl-diskless-sync-delay 0");
    snprintf(text, sizeof text, "CONFIG SET masterauth %s", password);
    if (!replica_tell(run, text))
        return false;
    snprintf(text, sizeof text, "REPLICAOF 127.0.0.1 %d", port);
    /* Then it follows a port without a server, so it receives no further writes before the failover. */
    return replica_tell(run, text) && await_replica(run) && replica_tell(run, "REPLICAOF 127.0.0.1 1");
}

/* The replica takes over with the old master's password, which the clients use. */
bool nemesis_failover(struct fault_run *run)
{
    char own[128], password[128], text[REDIS_COMMAND_MAX];
    int master, port;
    if (!redis_address(run->testbed->base.addresses.redlock_urls, 0, own, &port) ||
        !redis_address(run->testbed->base.addresses.redis_url, 0, password, &master) ||
        !fault_server_signal(run->testbed, "redis", SIGKILL) || !replica_tell(run, "REPLICAOF NO ONE"))
        return false;
    snprintf(text, sizeof text, "CONFIG SET requirepass %s", password);
    if (!replica_tell(run, text))
        return false;
    proxy_aim(run->testbed->proxies[SERVER_REDIS][0], port);
    fault_proxies_cut(run->testbed, 1 << SERVER_REDIS);
    return true;
}
