/* Connects to the database of the locks, creates their tables, and translates its answers to enum lock_status. */
#include "lock/postgres/session.h"
#include "base/clock.h"
#include "base/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECT_MS = 3000,       /* the longest that connecting takes, as in db/postgres/connection.c */
    FIRST_CONNECT_MS = 1000, /* a handle's first connection may take so long, whatever the deadline */
    ROW_WAIT_MS = 100,       /* a row that somebody else is just changing is waited for so long */
    HANG_UP_MS = 500,        /* as GRACE_US of a connection to PostgreSQL */
};

extern const char lock_schema_sql[]; /* lock_schema.S */

/* IF NOT EXISTS alone is not enough: two sessions may both find that a table is missing, and one of them then fails.
 * The script is sent as one message, and so is one transaction. */
static const char one_at_a_time[] =
    "SELECT pg_advisory_xact_lock(hashtextextended('oversell lock tables', 0));";

static const struct statement ST_TABLES = {
    "lock_tables",
    "SELECT 1 WHERE to_regclass('distribute_lock') IS NOT NULL AND to_regclass('int_lock') IS NOT NULL "
    "AND to_regclass('shedlock') IS NOT NULL",
    0};

bool pg_open(struct lock *lock)
{
    struct pg_lock *pg = (struct pg_lock *)lock;
    pg->db = db_new(lock_config.database_url, "oversell lock");
    return pg->db;
}

void pg_close(struct lock *lock)
{
    db_free(((struct pg_lock *)lock)->db);
}

/* DB_SERIALIZATION to DB_UNIQUE: another contender was faster. DB_TIMEOUT: a server that is too slow counts as away. DB_ERROR
 * is most often a table with the name of ours, but other columns. */
static const enum lock_status meanings[] = {
    [DB_OK] = LOCK_OK,
    [DB_SERIALIZATION] = LOCK_TIMED_OUT,
    [DB_DEADLOCK] = LOCK_TIMED_OUT,
    [DB_LOCK_TIMEOUT] = LOCK_TIMED_OUT,
    [DB_UNIQUE] = LOCK_TIMED_OUT,
    [DB_TIMEOUT] = LOCK_AWAY,
    [DB_AWAY] = LOCK_AWAY,
    [DB_UNKNOWN] = LOCK_AWAY,
    [DB_REFUSED] = LOCK_REFUSED,
    [DB_CHECK] = LOCK_REFUSED,
    [DB_FOREIGN_KEY] = LOCK_REFUSED,
    [DB_OUT_OF_RANGE] = LOCK_REFUSED,
    [DB_ERROR] = LOCK_REFUSED,
};

enum lock_status pg_outcome(struct pg_lock *pg, enum db_status status)
{
    pg->base.round_trips = db_round_trips(pg->db);
    return status == DB_OK ? LOCK_OK : lock_fail(&pg->base, meanings[status], "%s", db_error(pg->db));
}

static void limit_time(struct pg_lock *pg, int64_t limit_ms, int64_t row_wait_ms)
{
    int64_t now_us = monotonic_us();
    db_set_deadline(pg->db, now_us + limit_ms * 1000, now_us + row_wait_ms * 1000);
}

/* Looks before it makes them: a user that may use the tables need not be allowed to make any. Has its own time limit, once for
 * each connection. */
static enum db_status make_tables(struct pg_lock *pg)
{
    AUTO_RESULT all_there = NULL;
    limit_time(pg, LOCK_COMMAND_MS, LOCK_COMMAND_MS);
    struct recorder *recorder = record_nothing(); /* this is no part of an order */
    enum db_status status = db_run(pg->db, &ST_TABLES, NULL, &all_there);
    thread_recorder = recorder;
    if (status != DB_OK || PQntuples(all_there) == 1)
        return status;
    char *script;
    if (asprintf(&script, "%s%s", one_at_a_time, lock_schema_sql) < 0)
        return DB_ERROR;
    status = db_run_script(pg->db, script);
    free(script);
    return status;
}

/* Connecting takes longer than asking, on a busy machine much longer. */
static int64_t connect_ms(const struct pg_lock *pg, int64_t deadline_us)
{
    int64_t left_ms = (deadline_us - monotonic_us()) / 1000;
    int64_t least_ms = *pg->prepared.pid ? LOCK_TRY_MS : FIRST_CONNECT_MS;
    if (left_ms < least_ms)
        return least_ms;
    return left_ms < CONNECT_MS ? left_ms : CONNECT_MS;
}

static int64_t statement_ms(int64_t deadline_us)
{
    int64_t limit_ms = lock_command_ms(deadline_us) - HANG_UP_MS;
    return limit_ms < LOCK_TRY_MS ? LOCK_TRY_MS : limit_ms;
}

enum lock_status pg_ready(struct pg_lock *pg, int64_t deadline_us)
{
    limit_time(pg, connect_ms(pg, deadline_us), ROW_WAIT_MS);
    enum db_status status = db_ready(pg->db);
    const struct db_session *session = db_session(pg->db);
    if (status == DB_OK && memcmp(session, &pg->prepared, sizeof *session) != 0) {
        status = make_tables(pg);
        if (status == DB_OK)
            pg->prepared = *session;
    }
    limit_time(pg, statement_ms(deadline_us), ROW_WAIT_MS);
    return pg_outcome(pg, status);
}

/* LOCK_OK: *ret_found says whether it touched a row. LOCK_TIMED_OUT: another session kept the row locked for ROW_WAIT_MS. */
static enum lock_status touch(struct pg_lock *pg, int64_t deadline_us, int64_t row_wait_ms,
                              const struct statement *statement, const char *const *values, bool *ret_found)
{
    pg->reply_lost = false;
    enum lock_status status = pg_ready(pg, deadline_us);
    if (status != LOCK_OK)
        return status;
    limit_time(pg, statement_ms(deadline_us), row_wait_ms);
    AUTO_RESULT result = NULL;
    enum db_status answer = db_run_once(pg->db, statement, values, &result);
    pg->reply_lost = answer == DB_UNKNOWN;
    *ret_found = answer == DB_OK && strcmp(PQcmdTuples(result), "1") == 0;
    return pg_outcome(pg, answer);
}

enum lock_status pg_touch(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                          const char *const *values)
{
    bool found = false;
    enum lock_status status = touch(pg, deadline_us, ROW_WAIT_MS, statement, values, &found);
    return status == LOCK_OK && !found ? LOCK_TIMED_OUT : status;
}

bool pg_undo(struct pg_lock *pg, const struct statement *statement, const char *const *values)
{
    if (!pg->reply_lost)
        return false;
    char error[sizeof pg->base.error];
    memcpy(error, pg->base.error, sizeof error); /* the first error is the one to report */
    bool done = pg_touch(pg, 0, statement, values) == LOCK_OK;
    memcpy(pg->base.error, error, sizeof error);
    return done;
}

enum lock_status pg_touch_ours(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                               const char *const *values)
{
    bool found = false;
    enum lock_status status = touch(pg, deadline_us, LOCK_COMMAND_MS, statement, values, &found);
    if (status == LOCK_TIMED_OUT) /* a row that somebody else is changing may well be ours */
        return LOCK_AWAY;
    return status == LOCK_OK && !found ? lock_fail(&pg->base, LOCK_LOST, "the lease had ended") : status;
}

enum lock_status pg_release(struct pg_lock *pg, const struct statement *statement, const char *const *values)
{
    enum lock_status status = pg_touch_ours(pg, INT64_MAX, statement, values);
    /* If the second try finds nothing, the first may have released it, or the lease had ended: that cannot be known. */
    if (status == LOCK_AWAY && pg_undo(pg, statement, values))
        return LOCK_OK;
    return status;
}

const char *pg_utc_now(char ret_time[static PG_TIME_SIZE])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(ret_time, PG_TIME_SIZE, "%Y-%m-%d %H:%M:%S", &utc);
    snprintf(ret_time + length, PG_TIME_SIZE - length, ".%06ld", now.tv_nsec / 1000);
    return ret_time;
}

static enum lock_status ping(int64_t deadline_us, char *ret_error, size_t size)
{
    struct pg_lock pg = {0};
    if (!pg_open(&pg.base)) {
        snprintf(ret_error, size, "out of memory");
        return LOCK_FAILED;
    }
    db_set_deadline(pg.db, deadline_us, deadline_us);
    enum db_status answer = db_ready(pg.db);
    if (answer == DB_OK)
        answer = db_ping(pg.db);
    enum lock_status status = pg_outcome(&pg, answer);
    snprintf(ret_error, size, "%s", pg.base.error);
    pg_close(&pg.base);
    return status;
}

const struct lock_server lock_database = {.name = "lock-database",
                                          .setting = "LOCK_DATABASE_URL",
                                          .address = &lock_config.database_url,
                                          .ping = ping};
