/* What the locks in PostgreSQL share: the handle's connection, the lock tables, and statements about one row of them. One
 * thread at a time for each handle. */
#ifndef OVERSELL_LOCK_POSTGRES_SESSION_H
#define OVERSELL_LOCK_POSTGRES_SESSION_H

#include "db/postgres/connection.h"
#include "lock/lock_driver.h"

/* The database of LOCK_DATABASE_URL. */
extern const struct lock_server lock_database;

/* The head of each of these locks' own struct. */
struct pg_lock {
    struct lock base;
    struct db *db;
    struct db_session prepared; /* the session that was last seen to have the lock tables */
    bool reply_lost;            /* the reply to the last pg_touch was lost: it may have been done, or not */
};

/* As in struct lock_driver. */
bool pg_open(struct lock *lock);
/* Closes the connection: PostgreSQL rolls back what it had open. */
void pg_close(struct lock *lock);

/* Connects if there is no connection, until DEADLINE (a handle's first connection may take a second, whatever the deadline),
 * and makes the lock tables if they are missing. Sets the time limits of the next statement: lock_command_ms(DEADLINE), and
 * 100 ms for a row that another session is changing. */
enum lock_status pg_ready(struct pg_lock *pg, int64_t deadline_us);

/* What STATUS means to a lock. Copies the database's error to lock->error, and counts the round trips. */
enum lock_status pg_outcome(struct pg_lock *pg, enum db_status status);

/* Runs a statement that commits by itself and touches one row at most. LOCK_OK: it touched one. LOCK_TIMED_OUT: no row fits
 * its conditions, or another session was changing it. LOCK_AWAY: the reply was lost, so it may have touched one. */
enum lock_status pg_touch(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                          const char *const *values);
/* If the reply to the last pg_touch was lost: runs STATEMENT, which undoes what that may have done, once on a new connection.
 * True if there was something to undo. Keeps lock->error. */
bool pg_undo(struct pg_lock *pg, const struct statement *statement, const char *const *values);
/* As pg_touch, for the row of a lock that is held. LOCK_LOST: no row fits. Waits for another session that is changing the row
 * as long as lock_command_ms allows; then LOCK_AWAY. */
enum lock_status pg_touch_ours(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                               const char *const *values);
/* As pg_touch_ours, to release a lock; runs the statement a second time if the reply was lost. */
enum lock_status pg_release(struct pg_lock *pg, const struct statement *statement, const char *const *values);

enum { PG_TIME_SIZE = 40 };
/* This machine's clock, in UTC, as a timestamp for PostgreSQL: both leased table locks write it, as Spring's and ShedLock's
 * own clients do. */
const char *pg_utc_now(char ret_time[static PG_TIME_SIZE]);
/* The same, valid to the end of the enclosing block. */
#define PG_UTC_NOW pg_utc_now((char[PG_TIME_SIZE]){0})

#endif
