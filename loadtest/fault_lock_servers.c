/* Faults of the servers that locks live on: killed, and started again with or without their memory. */
#include "loadtest/fault.h"

#include "loadtest/complain.h"
#include "loadtest/fault_redis.h"
#include "loadtest/interrupt.h"
#include "service/steps.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define DOWN_MS 1500 /* how long a server stays away */
#define UNWRITTEN_MS 300

static const struct statement ST_HOLD = {"fault_hold", "SELECT 1 FROM product WHERE id = $1 FOR UPDATE", 1};

static bool restart(struct fault_run *run, const char *const *names, int64_t down_ms)
{
    for (size_t i = 0; names[i]; i++)
        if (!site_signal(run->site, names[i], SIGKILL)) {
            complain("%s does not run", names[i]);
            return false;
        }
    bool well = sleep_unless_interrupted(down_ms) && site_up(run->site, names, NULL);
    run->ready_us = monotonic_us();
    return well;
}

bool strike_redis_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"redis", NULL}, 0);
}

bool strike_zookeeper_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"zookeeper", NULL}, 0);
}

bool strike_etcd_restart(struct fault_run *run)
{
    return restart(run, (const char *[]){"etcd", NULL}, 0);
}

/* ---- orders that are written behind -------------------------------------------------------------------- */

static const struct fault_subject *behind(const struct fault_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (strategy_stock_kind(run->subjects[i].strategy) == STOCK_REDIS)
            return &run->subjects[i];
    return NULL;
}

/* Dies with orders that it has accepted and that could not be written yet, since somebody held the product's row. */
bool strike_redis_loses(struct fault_run *run)
{
    const struct fault_subject *subject = behind(run);
    struct db *holder = subject ? db_new(run->site->addresses.database_url, "oversell judge holds") : NULL;
    AUTO_RESULT rows = NULL;
    bool well = true;
    if (holder) {
        int64_t end_us = monotonic_us() + 20 * 1000 * 1000;
        db_set_deadline(holder, end_us, end_us);
        well = db_ready(holder) == DB_OK;
        if (well)
            db_begin(holder, READ_COMMITTED);
        const char *values[] = {DB_NUMBER(subject->product)};
        well = well && db_run(holder, &ST_HOLD, values, &rows) == DB_OK &&
               sleep_unless_interrupted(UNWRITTEN_MS);
        if (!well && !interrupted())
            complain("cannot hold the product's row: %s", db_error(holder));
    }
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

bool strike_redlock_minority(struct fault_run *run)
{
    return restart(run, last_of_redlock(2), DOWN_MS);
}

bool strike_redlock_majority(struct fault_run *run)
{
    return restart(run, last_of_redlock(3), DOWN_MS);
}

/* Two are down while the lock is taken by the three others. */
bool before_redlock_restart(struct fault_run *run)
{
    for (size_t i = 0; i < 2; i++)
        (void)site_signal(run->site, last_of_redlock(2)[i], SIGKILL);
    return true;
}

/* They come back, and one of the three that voted forgets that it did: three votes are free. */
bool strike_redlock_restart(struct fault_run *run)
{
    return site_signal(run->site, "redis-3", SIGKILL) && site_up(run->site, last_of_redlock(3), NULL);
}

/* ---- fail-over ----------------------------------------------------------------------------------------- */

/* Redlock's first server plays the replica of the one Redis; nothing else uses it here. */
static bool replica_tell(struct fault_run *run, const char *command)
{
    if (redis_tell(run->site->addresses.redlock_urls, 0, "%s", command))
        return true;
    complain("the replica refuses: %s", command);
    return false;
}

/* Both are what they were. */
bool leave_failover(struct fault_run *run)
{
    (void)site_signal(run->site, "redis-1", SIGKILL);
    return site_up(run->site, (const char *[]){"redis", "redis-1", NULL}, NULL);
}

/* The replica follows, and then hears nothing any more: what is locked from here on it does not know. */
bool before_failover(struct fault_run *run)
{
    char password[128], text[REDIS_COMMAND_MAX];
    int port;
    if (!redis_address(run->site->addresses.redis_url, 0, password, &port))
        return false;
    if (!leave_failover(run))
        return false;
    proxy_aim(run->site->proxies[BACKEND_REDIS][0], port);
    site_cut_proxies(run->site, 1 << BACKEND_REDIS);
    snprintf(text, sizeof text, "CONFIG SET masterauth %s", password);
    if (!replica_tell(run, text))
        return false;
    snprintf(text, sizeof text, "REPLICAOF 127.0.0.1 %d", port);
    return replica_tell(run, text) && sleep_unless_interrupted(DOWN_MS) &&
           site_signal(run->site, "redis-1", SIGSTOP);
}

/* Clients bring the password that the old master had. */
bool strike_failover(struct fault_run *run)
{
    char own[128], password[128], text[REDIS_COMMAND_MAX];
    int master, port;
    if (!redis_address(run->site->addresses.redlock_urls, 0, own, &port) ||
        !redis_address(run->site->addresses.redis_url, 0, password, &master) ||
        !site_signal(run->site, "redis", SIGKILL) || !site_signal(run->site, "redis-1", SIGCONT) ||
        !replica_tell(run, "REPLICAOF NO ONE"))
        return false;
    snprintf(text, sizeof text, "CONFIG SET requirepass %s", password);
    if (!replica_tell(run, text))
        return false;
    proxy_aim(run->site->proxies[BACKEND_REDIS][0], port);
    site_cut_proxies(run->site, 1 << BACKEND_REDIS);
    return true;
}
