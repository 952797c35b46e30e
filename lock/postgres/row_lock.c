/* `lock-row`: PostgreSQL's own row lock, taken by SELECT … FOR UPDATE in a transaction that stays open until the release.
 *
 * A row of distribute_lock stands for what is to be protected, and is found by its business code. The lock has its own
 * connection, which may lead to another database than the shop's; the lock lives as long as that connection.
 *
 *     acquire   BEGIN; SELECT … FOR UPDATE SKIP LOCKED: free, taken, or not there yet?
 *               not there: INSERT it, committed by itself, and look again
 *               taken: SELECT … FOR UPDATE, which waits until the holder's transaction ends
 *     release   COMMIT
 *
 * What can go wrong: the lock's connection breaks, or its server process is terminated, while the shop's connection works.
 * PostgreSQL ends the transaction, and the next waiter gets the row. The holder does not notice, and writes what it
 * had read before. No clock is involved: a holder may sleep for any time, if idle_in_transaction_session_timeout is off.
 *
 * Waiters queue, and each release wakes one of them. The queue is not quite fair: PostgreSQL frees the row before the
 * waiter that it wakes has taken it, so a newcomer may be first. */
#include "base/clock.h"
#include "lock/lab.h"
#include "lock/postgres/session.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

enum {
    ASK_AGAIN_US = 30 * 1000 * 1000, /* no statement waits for longer: a silent connection is noticed */
    OWN_ROW_POLL_MS = 100
};

struct row_lock {
    struct pg_lock pg;
    char token[100]; /* of the grant that the open transaction belongs to; "" when there is none */
};

/* The lock protects nothing that must survive a crash, so its COMMIT need not wait for the disk. */
#define NO_WAIT_FOR_DISK "set_config('synchronous_commit', 'off', true)"

static const struct statement ST_LOOK = {
    "lock_row_look",
    "WITH mine AS (SELECT pg_current_xact_id() AS id FROM distribute_lock WHERE business_code = $1 "
    "FOR UPDATE SKIP LOCKED) "
    "SELECT (SELECT id FROM mine), EXISTS (SELECT FROM distribute_lock WHERE business_code = $1), " NO_WAIT_FOR_DISK,
    1};
static const struct statement ST_MAKE = {
    "lock_row_make", "INSERT INTO distribute_lock (business_code) VALUES ($1) ON CONFLICT DO NOTHING", 1};
static const struct statement ST_WAIT = {
    "lock_row_wait", "SELECT pg_current_xact_id() FROM distribute_lock WHERE business_code = $1 FOR UPDATE",
    1};

/* The token names the holder as PostgreSQL does: server process and transaction, which is also the row's xmax. */
static void note_holder(struct row_lock *row, const char *transaction)
{
    snprintf(row->token, sizeof row->token, "%s/%s", db_session(row->pg.db)->pid, transaction);
}

enum row_state { ROW_MISSING, ROW_TAKEN, ROW_OURS };

/* Opens the transaction and looks at the row. LOCK_OK: the transaction is open, and *ret_state says what was found. */
static enum lock_status look(struct row_lock *row, const char *key, enum row_state *ret_state)
{
    AUTO_RESULT seen = NULL;
    db_begin(row->pg.db, DB_READ_COMMITTED);
    enum lock_status status = pg_outcome(&row->pg, db_run(row->pg.db, &ST_LOOK, &key, &seen));
    if (status != LOCK_OK)
        return status;
    *ret_state = *PQgetvalue(seen, 0, 1) == 't' ? ROW_TAKEN : ROW_MISSING;
    if (!PQgetisnull(seen, 0, 0)) {
        *ret_state = ROW_OURS;
        note_holder(row, PQgetvalue(seen, 0, 0));
    }
    return LOCK_OK;
}

/* Others must see the row at once, so it cannot be made in the transaction that will lock it. */
static enum lock_status make(struct row_lock *row, const char *key)
{
    AUTO_RESULT made = NULL;
    db_rollback(row->pg.db);
    return pg_outcome(&row->pg, db_run(row->pg.db, &ST_MAKE, &key, &made));
}

/* As look, but makes the row if it is missing. */
static enum lock_status look_or_make(struct row_lock *row, const char *key, enum row_state *ret_state)
{
    enum lock_status status = look(row, key, ret_state);
    if (status != LOCK_OK || *ret_state != ROW_MISSING)
        return status;
    status = make(row, key);
    if (status == LOCK_OK)
        status = look(row, key, ret_state);
    if (status == LOCK_OK && *ret_state == ROW_MISSING)
        return lock_fail(&row->pg.base, LOCK_REFUSED, "a row that was just made is not there");
    return status;
}

/* Waits for the row in the transaction that look has opened. */
static enum lock_status wait_for_row(struct row_lock *row, const char *key, int64_t deadline_us)
{
    /* The wait may be for several holders, one after the other, and lock_timeout starts again for each:
     * statement_timeout is what ends it, so that here it means "busy". */
    AUTO_RESULT got = NULL;
    report_step(row->pg.base.observer, STEP_WAIT, STEP_NO_VALUE);
    db_set_deadline(row->pg.db, deadline_us, deadline_us);
    enum db_status answer = db_run(row->pg.db, &ST_WAIT, &key, &got);
    enum lock_status status = pg_outcome(&row->pg, answer);
    if (answer == DB_TIMEOUT || (answer == DB_OK && PQntuples(got) == 0)) /* or the row was deleted */
        return LOCK_TIMED_OUT;
    if (status == LOCK_OK) {
        row->pg.base.wake_ups++;
        note_holder(row, PQgetvalue(got, 0, 0));
    }
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct row_lock *row = (struct row_lock *)lock;
    enum row_state state = ROW_MISSING;
    enum lock_status status;
    if (*row->token) { /* our own row, which nobody will release meanwhile */
        while (lock_poll_pause(lock, OWN_ROW_POLL_MS, deadline_us))
            ;
        return lock_fail(lock, LOCK_TIMED_OUT, "this handle holds a row already");
    }
    do {
        int64_t until_us = monotonic_us() + ASK_AGAIN_US;
        if (deadline_us < until_us)
            until_us = deadline_us;
        status = pg_ready(&row->pg, until_us);
        if (status == LOCK_OK)
            status = look_or_make(row, key, &state);
        if (status == LOCK_OK && state == ROW_TAKEN)
            status = wait_for_row(row, key, until_us);
        if (status != LOCK_OK)
            db_rollback(row->pg.db); /* it may be open, or may have failed */
    } while (status == LOCK_TIMED_OUT && monotonic_us() < deadline_us);
    if (status != LOCK_OK)
        return status;

    lock_fill_grant(ret_grant, key, row->token, INT64_MAX);
    ret_grant->impl = row;
    return LOCK_OK;
}

static bool is_ours(const struct row_lock *row, const struct lock_grant *grant)
{
    return grant->impl == row && strcmp(grant->token, row->token) == 0;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct row_lock *row = (struct row_lock *)lock;
    if (!is_ours(row, grant))
        return lock_fail(lock, LOCK_NOT_OWNER, "this handle has released it, or never held it");
    grant->impl = NULL;
    *row->token = '\0';
    int64_t until_us = monotonic_us() + (int64_t)LOCK_COMMAND_MS * 1000;
    db_set_deadline(row->pg.db, until_us, until_us);
    enum db_status status = db_commit(row->pg.db);
    if (pg_outcome(&row->pg, status) == LOCK_OK)
        return LOCK_OK;
    db_rollback(row->pg.db);
    return LOCK_LOST; /* the transaction, and the row with it, had ended before, by whatever error */
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct row_lock *row = (struct row_lock *)lock;
    if (!is_ours(row, grant))
        return LOCK_LOST;
    int64_t until_us = monotonic_us() + (int64_t)LOCK_COMMAND_MS * 1000;
    db_set_deadline(row->pg.db, until_us, until_us);
    /* Any statement that fails, or stays without an answer, ends the transaction. */
    return pg_outcome(&row->pg, db_ping(row->pg.db)) == LOCK_OK ? LOCK_OK : LOCK_LOST;
}

const struct lock_driver lock_row = {
    .name = "lock-row",
    .server = &lock_database,
    .properties = {.mechanism = "a row locked by SELECT … FOR UPDATE on a separate connection",
                   .blocking = true,
                   .carrier = CARRIER_CONNECTION,
                   .survives_crash = true,
                   .perils = PERIL_DISCONNECT | PERIL_RESTART},
    .handle_size = sizeof(struct row_lock),
    .open = pg_open,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .close = pg_close,
    .lab = &(const struct lock_lab){.end = LOCK_ENDS_WITH_SESSION},
};
