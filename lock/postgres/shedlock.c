/* `shedlock`: a row that says until when a name is taken, as ShedLock keeps it for scheduled jobs.
 *
 *     acquire   one statement makes the row, or takes it over where its lock_until has passed; else try again later
 *     release   the same row, with lock_until set back to now; rows are never deleted
 *
 * ShedLock (github.com/lukas-krecan/ShedLock, JdbcTemplateLockProvider) makes a job run on one machine at a time: a
 * machine that finds the name taken skips the job. Here it is misused as a mutex, so a contender that finds it taken asks
 * again every 100 ms. No waiter is woken and there is no queue: the first to ask after a release is next.
 *
 * What can go wrong: a holder that is paused or slow past lock_until continues as if it held the lock, while another has it.
 * Each client uses its own clock: one whose clock is ahead takes over a lock that is still held. */
#include "base/clock.h"
#include "lock/postgres/session.h"
#include "lock/registry.h"

enum { POLL_MS = 100 };

/* $1 name, $2 who, $3 now */
#define UNTIL "$3::timestamp + $4::bigint * interval '1 millisecond'"
#define MINE "name = $1 AND locked_by = $2 AND lock_until > $3::timestamp"

static const struct statement ST_ACQUIRE = {
    "shedlock_acquire",
    "INSERT INTO shedlock (name, locked_by, locked_at, lock_until) VALUES ($1, $2, $3::timestamp, " UNTIL ") "
    "ON CONFLICT (name) DO UPDATE SET locked_by = excluded.locked_by, locked_at = excluded.locked_at, "
    "lock_until = excluded.lock_until WHERE shedlock.lock_until <= excluded.locked_at",
    4};
static const struct statement ST_RELEASE = {"shedlock_release",
                                            "UPDATE shedlock SET lock_until = $3::timestamp WHERE " MINE, 3};
static const struct statement ST_EXTEND = {"shedlock_extend",
                                           "UPDATE shedlock SET lock_until = " UNTIL " WHERE " MINE, 4};
static const struct statement ST_STILL_HELD = {"shedlock_still_held", "SELECT FROM shedlock WHERE " MINE, 3};

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct pg_lock *pg = (struct pg_lock *)lock;
    char token[LOCK_TOKEN_SIZE];
    if (!lock_random_token(token))
        return lock_fail(lock, LOCK_FAILED, "no random numbers");
    enum lock_status status;
    int64_t asked_us;
    do {
        asked_us = monotonic_us();
        status = pg_touch(pg, deadline_us, &ST_ACQUIRE,
                          (const char *const[]){key, token, PG_UTC_NOW, DB_NUMBER(lock->lease_ms)});
    } while (status == LOCK_TIMED_OUT && lock_poll_pause(lock, POLL_MS, deadline_us));
    if (status == LOCK_AWAY)
        (void)pg_undo(pg, &ST_RELEASE, (const char *const[]){key, token, PG_UTC_NOW});
    if (status != LOCK_OK)
        return status;

    lock_fill_grant(ret_grant, key, token, asked_us + lock->lease_ms * 1000);
    return LOCK_OK;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    return pg_release((struct pg_lock *)lock, &ST_RELEASE,
                      (const char *const[]){grant->key, grant->token, PG_UTC_NOW});
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    return pg_touch_ours((struct pg_lock *)lock, 0, &ST_STILL_HELD,
                         (const char *const[]){grant->key, grant->token, PG_UTC_NOW});
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    const char *values[] = {grant->key, grant->token, PG_UTC_NOW, DB_NUMBER(lock->lease_ms)};
    return pg_touch_ours((struct pg_lock *)lock, INT64_MAX, &ST_EXTEND, values);
}

const struct lock_driver lock_shedlock = {
    .name = "shedlock",
    .server = &lock_database,
    .properties = {.mechanism = "a row with the time until which it is locked, polled",
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK},
    .handle_size = sizeof(struct pg_lock),
    .open = pg_open,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = pg_close,
};
