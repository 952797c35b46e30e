/* `lock-table`: a row in int_lock while the lock is held, as Spring Integration's JdbcLockRegistry keeps it.
 *
 *     acquire   first the process gate, which separates the process's threads; then one statement makes the row, or
 *               takes it over where it is this process's own or has expired; else try again later
 *     release   delete the row, then release the gate
 *
 * The unique key lets one process in, and expired_after frees the lock of a process that died. All threads of a process
 * have one client id, so only the gate (lock/process_gate.h) tells them apart; it also makes the lock reentrant.
 * (JdbcLock.tryLock and DefaultLockRepository.acquire, github.com/spring-projects/spring-integration: there an UPDATE
 * and, if it finds nothing, an INSERT; here the two are one statement, which finds and leaves the same rows.)
 * A contender that finds the lock taken asks again every 100 ms. No waiter is woken: the first to ask after a release is next.
 *
 * What can go wrong: a holder that is paused or slow past its time to live continues as if it held the lock, while another has
 * it. Each client uses its own clock: one whose clock is ahead takes over a lock that is still held. */
#include "base/clock.h"
#include "lock/postgres/session.h"
#include "lock/process_gate.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

enum { POLL_MS = 100 };

/* The key as Spring writes it: one that is a UUID as it is; of any other the version-3 UUID of its MD5, without a
 * namespace. (Version and variant overwrite six bits: the 13th digit becomes 3, the 17th one of 8, 9, a and b.) */
#define UUID_PATTERN "'^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$'"
#define MD5_DIGITS "md5(convert_to($1::text, 'UTF8'))"
#define VARIANT "translate(substr(" MD5_DIGITS ", 17, 1), '0123456789abcdef', '89ab89ab89ab89ab')"
#define VERSION_3                                                                                            \
    "overlay(overlay(" MD5_DIGITS " PLACING '3' FROM 13) PLACING " VARIANT " FROM 17)::uuid::text"
#define LOCK_KEY                                                                                             \
    "(CASE WHEN $1::text ~ " UUID_PATTERN " THEN lower($1::text) ELSE " VERSION_3 " END)::char(36)"

/* $1 key, $2 client id, $3 now, $4 lease in ms */
#define EXPIRY "$3::timestamp + $4::bigint * interval '1 millisecond'"
#define ROW "region = 'DEFAULT' AND lock_key = " LOCK_KEY
#define MINE ROW " AND client_id = $2"

static const struct statement ST_ACQUIRE = {
    "lock_table_acquire",
    "INSERT INTO int_lock (region, lock_key, client_id, created_date, expired_after) "
    "VALUES ('DEFAULT', " LOCK_KEY ", $2, $3::timestamp, " EXPIRY ") "
    "ON CONFLICT (lock_key, region) DO UPDATE SET client_id = excluded.client_id, "
    "created_date = excluded.created_date, expired_after = excluded.expired_after "
    "WHERE int_lock.client_id = excluded.client_id OR int_lock.expired_after < excluded.created_date",
    4};
/* A row of ours goes in any case; it counts as held if it had not expired. */
static const struct statement ST_RELEASE = {"lock_table_release",
                                            "WITH gone AS (DELETE FROM int_lock WHERE " MINE
                                            " RETURNING expired_after) "
                                            "SELECT FROM gone WHERE expired_after >= $3::timestamp",
                                            3};
static const struct statement ST_RENEW = {
    "lock_table_renew",
    "UPDATE int_lock SET expired_after = " EXPIRY " WHERE " MINE " AND expired_after >= $3::timestamp", 4};
static const struct statement ST_STILL_HELD = {
    "lock_table_still_held", "SELECT FROM int_lock WHERE " MINE " AND expired_after >= $3::timestamp", 3};

struct table_lock {
    struct pg_lock pg;
    int64_t lease_end_us; /* of the last grant */
};

/* With the process gate held. */
static enum lock_status take_row(struct lock *lock, const char *key, int64_t deadline_us,
                                 struct lock_grant *grant)
{
    struct pg_lock *pg = (struct pg_lock *)lock;
    enum lock_status status;
    int64_t asked_us;
    do {
        asked_us = monotonic_us();
        status = pg_touch(pg, deadline_us, &ST_ACQUIRE,
                          (const char *const[]){key, grant->token, PG_UTC_NOW, DB_NUMBER(lock->lease_ms)});
    } while (status == LOCK_TIMED_OUT && lock_poll_pause(lock, POLL_MS, deadline_us));
    grant->lease_end_us = asked_us + lock->lease_ms * 1000;
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct lock_grant grant = {0};
    unsigned holds = 0;
    if (!process_gate_client_id(lock, grant.token))
        return lock_fail(lock, LOCK_FAILED, "no random numbers");
    snprintf(grant.key, sizeof grant.key, "%s", key);

    enum lock_status status = process_gate_acquire(lock, key, deadline_us, &holds);
    if (status != LOCK_OK)
        return status;
    status = take_row(lock, key, deadline_us, &grant);
    if (status == LOCK_AWAY && holds == 1) /* an outer hold needs the row */
        (void)pg_undo((struct pg_lock *)lock, &ST_RELEASE,
                      (const char *const[]){key, grant.token, PG_UTC_NOW});
    if (status != LOCK_OK) {
        process_gate_release(lock, key);
        return status;
    }
    ((struct table_lock *)lock)->lease_end_us = grant.lease_end_us;
    *ret_grant = grant;
    return LOCK_OK;
}

/* The client id does not tell the holder's handle from the others in its process, but the gate does. */
static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    enum lock_status status = LOCK_OK;
    unsigned holds = process_gate_holds(lock, grant->key);
    if (holds == 0)
        return lock_fail(lock, LOCK_NOT_OWNER, "this handle has released it, or never held it");
    if (holds == 1)
        status = pg_release((struct pg_lock *)lock, &ST_RELEASE,
                            (const char *const[]){grant->key, grant->token, PG_UTC_NOW});
    process_gate_release(lock, grant->key);
    return status;
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    return pg_touch_ours((struct pg_lock *)lock, 0, &ST_STILL_HELD,
                         (const char *const[]){grant->key, grant->token, PG_UTC_NOW});
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    const char *values[] = {grant->key, grant->token, PG_UTC_NOW, DB_NUMBER(lock->lease_ms)};
    return pg_touch_ours((struct pg_lock *)lock, INT64_MAX, &ST_RENEW, values);
}

static void close_table(struct lock *lock)
{
    process_gate_abandon(lock, ((struct table_lock *)lock)->lease_end_us);
    pg_close(lock);
}

const struct lock_driver lock_table = {
    .name = "lock-table",
    .server = &lock_database,
    .properties = {.mechanism = "a row with a unique key and an expiry, polled; a local lock before it",
                   .reentrant = true,
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK},
    .handle_size = sizeof(struct table_lock),
    .open = pg_open,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = close_table,
};
