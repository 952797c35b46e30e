/* One connection to PostgreSQL: prepared statements, transactions, and one absolute deadline for every wait.
 *
 * A struct db belongs to one thread at a time. It connects when it is first needed. After the connection
 * was lost, it connects again, with growing pauses between failures. It always talks in libpq's pipeline
 * mode, so that BEGIN, a time limit and the preparation of a statement travel with the first statement and
 * cost no further round trip. */
#ifndef OVERSELL_DB_POSTGRES_CONNECTION_H
#define OVERSELL_DB_POSTGRES_CONNECTION_H

#include "base/clock.h"
#include "db/postgres/sqlstate.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct db;

/* A statement is prepared on each connection when it is first run there. NAME is unique in the program;
 * the struct lives for ever and is recognized by its address. */
struct statement {
    const char *name;
    const char *sql;
    int parameters;
};

enum db_isolation { DB_READ_COMMITTED, DB_REPEATABLE_READ, DB_SERIALIZABLE };

/* Can libpq read this connection string or URI? */
bool db_url_is_valid(const char *url);

/* Splits URL into the environment variables that libpq's programs read: "PGHOST=…" and so on. Writes at most MOST strings,
 * which the caller frees, and a NULL after the last one if there is room. False: URL is malformed, or memory is out. */
bool db_url_environment(const char *url, char **ret_variables, size_t most);

/* URL is a libpq connection string or URI; both are copied. No I/O. NULL when out of memory. */
struct db *db_new(const char *url, const char *application_name);
/* Closes the connection; PostgreSQL then rolls back what was open. DB may be NULL. */
void db_free(struct db *db);

/* Every wait from here on ends at DEADLINE, and every wait for a lock at LOCK_DEADLINE (monotonic_us). PostgreSQL gets both as
 * statement_timeout and lock_timeout. These end at most a sixteenth of their time too late, and never too early. */
void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us);

/* Connects where there is no connection. Any failure is DB_REFUSED or DB_AWAY. DB_AWAY at once while the pause after a failure
 * lasts; the pause ends early when another connection of this process succeeds. None follows where the deadline left no time. */
enum db_status db_ready(struct db *db);

/* A round trip that does nothing: does the server answer? */
enum db_status db_ping(struct db *db);

/* Opens a transaction: noted here, sent with the first statement. In an open transaction it changes nothing. */
void db_begin(struct db *db, enum db_isolation isolation);

/* Runs one statement (outside db_begin in its own transaction) with text parameters, NULL for null.
 * With DB_OK *ret_result is the caller's to PQclear; else it is NULL and db_error tells. In a transaction the
 * caller must roll back after an error. DB_AWAY means that the connection is gone; outside a transaction a
 * statement that writes may then have happened: see db_run_once. */
enum db_status db_run(struct db *db, const struct statement *statement, const char *const *values,
                      PGresult **ret_result);

/* As db_run in a transaction, but does not wait: the statement travels with the transaction's next one, usually COMMIT, and costs
 * no round trip. If it succeeds, ON_RESULT gets its result and CONTEXT within that next call; if it fails, so does that call.
 * VALUES may end with this call, CONTEXT must not before the transaction. For statements on whose result nothing depends. */
typedef void db_result_fn(void *context, const PGresult *result);
enum db_status db_run_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_result_fn *on_result, void *context);

/* As db_run, for a statement that commits by itself: a lost reply is DB_UNKNOWN, not DB_AWAY. */
enum db_status db_run_once(struct db *db, const struct statement *statement, const char *const *values,
                           PGresult **ret_result);

/* DB_UNKNOWN: the reply was lost, commit_recovery can find out. Any other error: nothing was committed. */
enum db_status db_commit(struct db *db);
/* Ends an order without waiting for the result, so that PostgreSQL can continue with the next one at once: as db_commit, or, outside a
 * transaction, as db_run_once with STATEMENT (NULL: COMMIT). VALUES may end with this call.
 *
 * DB_OK: it was sent, and ON_END will be called exactly once, by db_finish or db_free at the latest. Else ON_END is not called.
 *
 * Up to seven may be on their way. A later call that waits for PostgreSQL reads their results first, in the sequence in which they were
 * sent. For each it calls ON_END with CONTEXT, with the status that the other function would return, and with DB_OK the rows. ON_END must
 * not use the connection. DB_BEHIND_FAILURE: nothing was committed, and to begin again may help.
 *
 * What is sent in this way waits for a lock for 100 ms only, because those behind it wait as long. So the wait of the last of seven
 * may end 0.8 s after the lock deadline. PostgreSQL has no time limit for a commit, so the connection is given up 1.3 s after the
 * deadline. */
typedef void db_end_fn(void *context, enum db_status status, const PGresult *rows);
enum db_status db_end_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_end_fn *on_end, void *context);
/* Waits for what db_end_later has sent, if anything. */
void db_finish(struct db *db);

/* Ends an open transaction; a broken connection is dropped instead, to the same effect. */
void db_rollback(struct db *db);

/* Several statements without parameters in one go, for schemas; not to be used in a transaction of db_begin. */
enum db_status db_run_script(struct db *db, const char *sql);
/* The same for one COPY … FROM STDIN, with LENGTH bytes of DATA in the format that it names. */
enum db_status db_run_copy(struct db *db, const char *sql, const char *data, size_t length);

/* What went wrong last, for the log; valid until the next call. */
const char *db_error(const struct db *db);
/* In which line of the text of db_run_script, or of db_run_copy with its data, PostgreSQL found that error; 0: it does not say. */
int db_error_line(const struct db *db);
/* The constraint that was violated last, or "". */
const char *db_error_constraint(const struct db *db);

/* Round trips made so far. */
uint64_t db_round_trips(const struct db *db);

/* SQL: changes whenever PostgreSQL starts, and whenever it recovers from the crash of one of its processes, which discards its
 * statistics. Any role may read it. */
#define DB_SERVER_RUN                                                                                        \
    "concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),"                                         \
    "               extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))"

/* The server process behind the connection, also after it was lost: what commit_recovery ends. */
struct db_session {
    char pid[16];
    char started[64];
    char server_run[64]; /* DB_SERVER_RUN when it connected */
};
const struct db_session *db_session(const struct db *db);

/* N in decimal, written to TEXT. */
static inline const char *db_number(int64_t n, char text[static 24])
{
    snprintf(text, 24, "%" PRId64, n);
    return text;
}
/* N as a statement's parameter, valid to the end of the enclosing block. */
#define DB_NUMBER(n) db_number((n), (char[24]){0})

/* The integer in a cell of a result; 0 if it is NULL. */
static inline int64_t db_cell_number(const PGresult *rows, int row, int column)
{
    return strtoll(PQgetvalue(rows, row, column), NULL, 10);
}

static inline void clear_result(PGresult **result)
{
    PQclear(*result);
}
/* A PGresult that is cleared when its name goes out of scope. */
#define AUTO_RESULT __attribute__((cleanup(clear_result))) PGresult *

#endif
