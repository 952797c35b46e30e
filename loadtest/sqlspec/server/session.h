/* The interface of a connection to PostgreSQL or MariaDB that runs SQL without blocking the caller. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SERVER_SESSION_H
#define OVERSELL_LOADTEST_SQLSPEC_SERVER_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSIONS_MAX = 32, SESSION_ERROR_SIZE = 400, SESSION_CELLS_MAX = 100000, SEQUENCE_SQL_SIZE = 500 };

enum session_state {
    SESSION_IDLE, /* the results of the last SQL are complete */
    SESSION_BUSY,
    SESSION_LOST, /* the connection is gone; the error says why */
};

enum transaction {
    TRANSACTION_NONE,
    TRANSACTION_OPEN,
    TRANSACTION_FAILED, /* open, and only ROLLBACK can end it */
};

struct session;

/* What one kind of server does. Every function belongs to one thread; those that return false leave the reason in
 * session->error. */
struct sql_driver {
    const char *server; /* "PostgreSQL" */
    /* Connects, within 10 s. LABEL names the session to the server. NULL, with RET_ERROR. */
    struct session *(*open)(const char *url, const char *label, char ret_error[SESSION_ERROR_SIZE]);
    void (*close)(struct session *session); /* NULL is allowed */
    /* Begins to run SQL, one or more statements, on an idle session. */
    bool (*start)(struct session *session, const char *sql);
    /* Reads what has arrived, and never waits. Appends to session->results. */
    enum session_state (*pump)(struct session *session);
    /* The socket, and the events of poll() after which pump finds something. */
    int (*socket)(const struct session *session, short *ret_events);
    enum transaction (*transaction)(const struct session *session);
    /* Asks the server to end what the session runs. */
    void (*cancel)(struct session *session);
    /* SQL that brings a session back to its first state after a rollback; several calls, ended by NULL. One that ends with an
     * error because the role may not run it does no harm. */
    const char *const *reset;
    /* SQL for a control session: one row for each session that waits for a lock (its id, and the id of a session of COUNT that
     * holds it or stands before it in the queue, or NULL). Writes to BUFFER. */
    void (*waits_sql)(const int64_t *ids, size_t count, char *buffer, size_t size);
    /* SQL for a control session: one row for a session that waits, with what it waits for ("advisory lock 7") and the id of the
     * session that holds it, or NULL. No row: it does not wait. Writes to BUFFER. */
    void (*lock_sql)(int64_t id, char *buffer, size_t size);
    /* SQL that releases the locks which outlive a transaction and would keep others from the tables; ended by NULL. */
    const char *const *release;
    /* SQL for a control session that ends the connection of another one. Writes to BUFFER. */
    void (*terminate_sql)(int64_t id, char *buffer, size_t size);
    /* The server answers that question from a copy, which it makes again when nobody has asked for this long. */
    int waits_pause_ms;
    /* A deadlock ends the transaction without a trace, so that the session's next statement would run outside of it. */
    bool ends_silently;
    /* SQL for a control session before the setup, so that the tables which the setup makes in other schemas are found; NULL: only those of
     * the current schema are. */
    const char *before_setup_sql;
    /* SQL for a control session: one text for each such table, which returns the table's contents in the
     * sequence of its rows; then the name of the table, and its columns as an array in JSON. */
    const char *tables_sql;
    /* The same, with the columns whose numbers sequences generate that count from 1934617001 on. */
    const char *numbered_tables_sql;
    /* SQL for a control session: one row for each sequence there: its name as sequence_sql takes it, identity, the number that it
     * generates next, its step, and "1" if it can count from 1934617001 on. */
    const char *sequences_sql;
    /* SQL after which the sequence NAME with this STEP generates FIRST. Writes to BUFFER. */
    void (*sequence_sql)(const char *name, int64_t first, int64_t step, char *buffer, size_t size);
    /* The same for a STEP below zero, which it also sets. NULL: the server cannot count down. */
    void (*reverse_sql)(const char *name, int64_t first, int64_t step, char *buffer, size_t size);
};

struct session {
    const struct sql_driver *driver;
    int64_t id; /* the server's number of the session, which waits_sql uses */
    enum session_state state;
    json_t *results; /* of the last SQL: see below */
    size_t notices;  /* since it was opened */
    /* Called while pump runs, for each notice of the server. NULL: ignored. */
    void (*on_notice)(void *context, const struct session *session, const char *text);
    void *context;
    char error[SESSION_ERROR_SIZE];
};

/* Results are objects, one for each statement that returned something:
 *   {"columns": [name…], "rows": [[text or null…]…]}
 *   {"command": "UPDATE 1"}
 *   {"error": message, "severity": "ERROR", "code": SQLSTATE}
 *   {"notification": text, "from": id} */

extern const struct sql_driver postgres_driver;
extern const struct sql_driver
    mariadb_driver; /* MariaDB and MySQL; its open always fails in a build without libmariadb */

/* Waits until the session is idle or lost, but not beyond DEADLINE_US (monotonic_us) or an interrupt, then cancels. False if it is
 * not idle or if an error was returned, with session->error. */
bool session_wait(struct session *session, int64_t deadline_us);
/* Runs SQL to its end; as session_wait. */
bool session_run(struct session *session, const char *sql, int64_t deadline_us);
/* Waits for up to MS milliseconds until one of COUNT sessions (SESSIONS_MAX at most) may have something to pump. Idle ones are left out. */
void session_poll(struct session *const *sessions, size_t count, int ms);

/* For drivers: append one result. */
void session_add(struct session *session, json_t *result);
/* The first error among RESULTS; NULL if there is none; borrowed. */
const json_t *results_error(const json_t *results);
/* Its SQLSTATE; "" if there is no error. */
const char *results_error_code(const json_t *results);

#endif
