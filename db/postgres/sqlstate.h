/* Translates PostgreSQL's SQLSTATE codes to enum db_status, which says what the caller can do about an error. */
#ifndef OVERSELL_DB_POSTGRES_SQLSTATE_H
#define OVERSELL_DB_POSTGRES_SQLSTATE_H

enum db_status {
    DB_OK,
    DB_SERIALIZATION,  /* a concurrent transaction won: run this one again */
    DB_DEADLOCK,       /* chosen as the victim: run it again */
    DB_LOCK_TIMEOUT,   /* the row or table stayed locked until the deadline */
    DB_TIMEOUT,        /* the statement ran into the deadline */
    DB_UNIQUE,         /* unique_violation */
    DB_CHECK,          /* check_violation */
    DB_FOREIGN_KEY,    /* foreign_key_violation */
    DB_OUT_OF_RANGE,   /* a number does not fit */
    DB_BEHIND_FAILURE, /* of db_end_later, or behind it: nothing was committed, begin again */
    DB_AWAY,           /* no connection, or it broke, or the server shuts down; nothing was committed */
    DB_REFUSED,        /* the server is there and will not serve: password, database, disk full, read-only */
    DB_UNKNOWN,        /* COMMIT was sent and no reply came: it may or may not have happened */
    DB_ERROR,          /* anything else: a bug */
};

/* SQLSTATE is a five-character code, or NULL for an error that libpq made itself (no connection). */
enum db_status db_status_of(const char *sqlstate);

#endif
