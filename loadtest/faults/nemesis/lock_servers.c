/* Faults of the servers that locks live on: killed, and started again with or without their memory. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/testbed/redis_cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define DOWN_MS 1500      /* how long a server stays away */
#define ACCEPTED_MS 60000 /* until an order was accepted */
#define HOLD_MS 60000
#define FOLLOWS_MS 60000 /* until a replica has copied its master */
#define POLL_MS 5

static const struct statement ST_HOLD = {"fault_hold", "SELECT 1 FROM product WHERE id = $1 FOR UPDATE", 1};

static const struct statement ST_FENCE = {"fault_fence", "SELECT fence_redis FROM product WHERE id = $1", 1};

/* An error as long as the replica has not got all that its master had; without blanks or quotes, which redis_tell's words cannot have. */
static const char SCRIPT_FOLLOWS[] =
    "EVAL return(string.find(redis.call([[INFO]],[[replication]]),[[master_link_status:up]]))"
    "or(redis.error_reply([[behind]])) 0";

static bool kill_servers(struct fault_run *run, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (!fault_server_signal(run->testbed, names[i], SIGKILL)) {
            complain("%s does not run", names[i]);
            return false;
        }
    return true;
}

static bool restart(struct fault_run *run, const char *const *names, int64_t down_ms)
{
    bool well = kill_servers(run, names) && sleep_unless_interrupted(down_ms) &&
                fault_servers_up(run->testbed, names, NULL);
    run->ready_us = monotonic_us();
    return well;
}

bool nemesis_redis_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"redis", NULL}, 0);
}

bool nemesis_zookeeper_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"zookeeper", NULL}, 0);
}

bool nemesis_etcd_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"etcd", NULL}, 0);
}

/* ---- orders that are written behind -------------------------------------------------------------------- */

/* Which of the strategies writes behind; run->count: none of them. */
static size_t behind(const struct fault_run *run)
{
    size_t i = 0;
    while (i < run->count && run->subjects[i].strategy->take_stock->kind != STOCK_REDIS)
        i++;
    return i;
}

/* Somebody was told of an order since SINCE_US. */
static bool await_accepted(struct fault_run *run, size_t i, int64_t since_us)
{
    int64_t end_us = monotonic_us() + (int64_t)ACCEPTED_MS * 1000;
    while (fault_history_served(run->history, i) <= since_us && monotonic_us() < end_us)
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    return sleep_unless_interrupted(random_between(&run->random, 50, 300));
}

/* With the product's row in somebody else's hands, what is accepted cannot be written. */
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

/* Redis dies with orders that it has accepted and that are not written yet. */
bool nemesis_redis_loses(struct fault_run *run)
{
    size_t i = behind(run);
    struct db *holder = i < run->count
                            ? db_new(run->testbed->base.addresses.database_url, "oversell judge holds")
                            : NULL;
    bool well = !holder || hold_row(run, holder, run->subjects[i].product);
    well = well && restart(run, (const char *[]){"redis", NULL}, 0);
    db_free(holder); /* which lets go of the row */
    run->ready_us = monotonic_us();
    return well;
}

/* ---- Redlock ------------------------------------------------------------------------------------------- */

static const char *const REDLOCK[] = {"redis-1", "redis-2", "redis-3", "redis-4", "redis-5", NULL};

/* The last COUNT of the five. */
static const char *const *last_of_redlock(size_t count)
{
    return &REDLOCK[5 - count];
}

/* It must go on without them, so they stay away until it has. */
bool nemesis_redlock_minority(struct fault_run *run)
{
    bool well = kill_servers(run, last_of_redlock(2));
    run->ready_us = monotonic_us();
    return well && fault_await_service(run) && fault_servers_up(run->testbed, last_of_redlock(2), NULL);
}

/* For longer than an order waits for its lock. */
bool nemesis_redlock_majority(struct fault_run *run)
{
    return restart(run, last_of_redlock(3), FAULT_LOCK_WAIT_MS + DOWN_MS);
}

/* Two are down while the lock is taken by the three others. */
bool before_redlock_restart(struct fault_run *run)
{
    for (size_t i = 0; i < 2; i++)
        (void)fault_server_signal(run->testbed, last_of_redlock(2)[i], SIGKILL);
    return true;
}

/* They come back, and one of the three that voted forgets that it did: three votes are free. */
bool nemesis_redlock_restart(struct fault_run *run)
{
    return fault_server_signal(run->testbed, "redis-3", SIGKILL) &&
           fault_servers_up(run->testbed, last_of_redlock(3), NULL);
}

/* ---- fail-over ----------------------------------------------------------------------------------------- */

/* Redlock's first server plays the replica of the one Redis; nothing else uses it here. */
static bool replica_tell(struct fault_run *run, const char *command)
{
    if (redis_tell(run->testbed->base.addresses.redlock_urls, 0, "%s", command))
        return true;
    complain("the replica refuses: %s", command);
    return false;
}

/* Both are what they were. */
bool leave_failover(struct fault_run *run)
{
    (void)fault_server_signal(run->testbed, "redis-1", SIGKILL);
    return fault_servers_up(run->testbed, (const char *[]){"redis", "redis-1", NULL}, NULL);
}

/* Both servers have begun empty, but a master that fails over has counted until then. So the counters of the fencing tokens
 * go on where their products' rows are, and the replica's lag behind by what it does not hear of. */
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
            complain("the replica does not follow its master");
            return false;
        }
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    }
    return true;
}

/* The replica follows, and then hears nothing any more: what is locked from here on it does not know. */
bool before_failover(struct fault_run *run)
{
    char password[128], text[REDIS_COMMAND_MAX];
    int port;
    if (!redis_address(run->testbed->base.addresses.redis_url, 0, password, &port))
        return false;
    if (!leave_failover(run))
        return false;
    fault_free_locks(run); /* before the replica hears of those that the old master has kept */
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
    /* Then it follows a port without a server, so it receives no further writes before the fail-over. */
    return replica_tell(run, text) && await_replica(run) && replica_tell(run, "REPLICAOF 127.0.0.1 1");
}

/* Clients bring the password that the old master had. */
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
