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
    bool reply_lost;            /* the last pg_touch may have been done, or not */
};

/* As in struct lock_driver. */
bool pg_open(struct lock *lock);
/* Closes the connection: PostgreSQL rolls back what it had open. */
void pg_close(struct lock *lock);

/* Connects where there is no connection, until DEADLINE (a handle's first time it may take a second, whatever the
 * deadline), and makes the lock tables where they are missing. Sets the time limits of the next statement: what
 * lock_command_ms says of DEADLINE, and a tenth of a second for a row that somebody else is just changing. */
enum lock_status pg_ready(struct pg_lock *pg, int64_t deadline_us);

/* What STATUS means to a lock; notes the database's words in lock->error, and counts the round trips. */
enum lock_status pg_outcome(struct pg_lock *pg, enum db_status status);

/* Runs a statement that commits by itself and touches one row at most. LOCK_OK: it did; LOCK_TIMED_OUT: it found none that
 * fits its conditions, or somebody was just changing it; LOCK_AWAY: perhaps it did, the reply was lost. */
enum lock_status pg_touch(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                          const char *const *values);
/* Where the reply to the last pg_touch was lost: tries on a new connection, once and shortly, to undo what it may have
 * done; true if there was something to undo. lock->error stays. */
bool pg_undo(struct pg_lock *pg, const struct statement *statement, const char *const *values);
/* As pg_touch, of the row of a lock that is held: LOCK_LOST where it finds none that fits. Somebody who just changes
 * the row is waited for as long as lock_command_ms allows, and then it is LOCK_AWAY. */
enum lock_status pg_touch_ours(struct pg_lock *pg, int64_t deadline_us, const struct statement *statement,
                               const char *const *values);
/* As pg_touch_ours, to release a lock; asks a second time where the reply was lost. */
enum lock_status pg_release(struct pg_lock *pg, const struct statement *statement, const char *const *values);

enum { PG_TIME_SIZE = 40 };
/* This machine's clock, in UTC, as a timestamp for PostgreSQL: what both leased table locks go by, so that a client of
 * Spring or of ShedLock reads the times as it would its own. */
const char *pg_utc_now(char ret_time[static PG_TIME_SIZE]);
/* The same, valid to the end of the enclosing block. */
#define PG_UTC_NOW pg_utc_now((char[PG_TIME_SIZE]){0})

#endif
