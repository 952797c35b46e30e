/* The state of a connection to PostgreSQL, and the functions that its source files call in each other. */
#ifndef OVERSELL_DB_POSTGRES_CONNECTION_IMPL_H
#define OVERSELL_DB_POSTGRES_CONNECTION_IMPL_H

#include "db/postgres/connection.h"

enum {
    STATEMENTS_MAX = 96,    /* distinct statements that one connection ever prepares */
    PIPELINE_MAX = 12,      /* commands sent in one round trip */
    SENT_MAX = 8,           /* round trips whose results are not awaited before the next one is sent */
    LIMIT_MAX_MS = 3600000, /* an hour: a time limit that is never met */
    GRACE_US = 500 * 1000,  /* PostgreSQL ends a late statement itself; later than this we hang up */
};

struct command {
    const struct statement *statement;
    bool prepares;           /* this command prepares the statement; otherwise it runs it */
    unsigned recorded;       /* its number in the recorder of the thread; 0: it is not recorded */
    db_result_fn *on_result; /* what db_run_later was given, or NULL */
    void *context;           /* for on_result */
};

/* What was sent in one go: everything before a sync. */
struct batch {
    struct command commands[PIPELINE_MAX];
    int count;
};

/* What db_end_later has sent. */
struct sent {
    struct batch batch;
    db_end_fn *on_end; /* called when its result is read; NULL: it only sets the session's time limits */
    void *context;
    int64_t until_us; /* when to stop waiting for its result; delays of earlier results move it … */
    int64_t last_us;  /* … but not beyond this */
};

/* What PostgreSQL has answered to one batch. */
struct reply {
    bool lost;          /* the connection must be dropped */
    bool turned_down;   /* PostgreSQL answered with an error, before the connection broke, if it did */
    bool session_ended; /* that error ended the session, so that nothing sent after it was begun */
    int failed_at;      /* the first command that failed; -1: none */
};

/* A transaction, as db_set_transaction changes it. */
enum transaction {
    TRANSACTION_NONE, /* a statement commits by itself */
    TRANSACTION_DUE,  /* db_begin was called, BEGIN is not queued */
    TRANSACTION_OPEN, /* BEGIN is queued or sent */
    TRANSACTION_BEHIND_FAILURE, /* one that db_end_later has sent has failed and is open, so that what follows it fails too */
};

struct db {
    char *url;
    char *application_name;
    PGconn *pg; /* NULL: not connected */
    int64_t deadline_us, lock_deadline_us;
    /* No attempt to connect before this, unless another connection was made since the last one. */
    int64_t next_try_us;
    int64_t pause_us;
    unsigned made_before; /* connections_made at the last failure to connect */

    const struct statement *prepared[STATEMENTS_MAX];
    int prepared_count;
    struct sent sent[SENT_MAX]; /* what db_end_later has sent: a ring, the oldest first */
    int first_sent, sent_count;
    /* What is queued, or was sent and is awaited; its results come after those of sent[]. */
    struct batch batch;
    /* The last answer to what db_end_later has sent took long: PostgreSQL has no time limit for a commit. This is true of the server,
     * and stays true from one transaction to the next. */
    bool slow;

    enum transaction transaction;
    enum db_isolation isolation;                /* of the transaction */
    long lock_timeout_ms, statement_timeout_ms; /* what the session has now; 0: not known */

    struct db_session session;
    uint64_t round_trips;
    char error[320];
    int error_line; /* as db_error_line */
    char constraint[64];
};

extern const struct statement ST_SESSION; /* sets up a session, and identifies it */

/* ---- connection.c -------------------------------------------------------------------------------------- */

/* Drops the connection. What was sent and is awaited ends with STATUS. */
void db_disconnect(struct db *db, enum db_status status);
/* Drops a broken connection and keeps WHY for db_error. PostgreSQL rolls back an open transaction. Returns DB_AWAY. */
enum db_status db_hang_up(struct db *db, const char *why);
/* Keeps the first line of TEXT for db_error, and CONSTRAINT, which may be NULL. */
void db_note_error(struct db *db, const char *text, const char *constraint);
/* Waits for EVENTS of poll on the socket until UNTIL; false when time is up. */
bool db_wait_socket(struct db *db, short events, int64_t until_us);

/* Every change of the transaction's state. Allowed are:
 *   NONE → DUE                   db_begin; in an open transaction it changes nothing
 *   DUE → OPEN                   BEGIN was queued, with the first statement
 *   DUE → NONE                   it ended before that
 *   OPEN → NONE                  COMMIT was sent by db_end_later, or answered; or it was rolled back
 *   any → BEHIND_FAILURE         an answer to what db_end_later has sent
 *   BEHIND_FAILURE → NONE        the failed transaction was rolled back, and what was queued behind it with it
 *   BEHIND_FAILURE → as before   what was sent behind it succeeded, so the failed one had never begun
 *   any → NONE                   the connection was dropped
 * To set the state that it has is allowed. */
void db_set_transaction(struct db *db, enum transaction transaction);

/* ---- exchange.c ---------------------------------------------------------------------------------------- */

/* Has this connection prepared the statement, and read the answer? */
bool db_has_prepared(const struct db *db, const struct statement *statement);
/* Queues one statement, and before it its preparation where it is due. False: libpq has no memory, or there is no room. */
bool db_enqueue(struct db *db, const struct statement *statement, const char *const *values,
                db_result_fn *on_result, void *context);
/* Queues the session's time limits where they changed: the deadlines, and AT_MOST for a lock. False: as db_enqueue. */
bool db_enqueue_limits(struct db *db, long at_most_lock_ms);
/* Queues the statement, and before it BEGIN and the session's time limits where they are due. DB_TIMEOUT: the deadline has passed, and
 * nothing was queued. */
enum db_status db_prepare_to_send(struct db *db, const struct statement *statement, const char *const *values,
                                  db_result_fn *on_result, void *context, long at_most_lock_ms);
/* How long to wait for a reply. PostgreSQL ends a late statement itself, at its rounded limit, so we wait longer than that. */
int64_t db_reply_deadline(const struct db *db);
/* Reads all results of a batch. The last command's is kept in *ret_result, NULL before, if every command succeeded. */
enum db_status db_read_batch(struct db *db, struct batch *batch, int64_t until_us, PGresult **ret_result,
                             struct reply *ret_reply);
/* Sends the batch and reads all its results, and before them those of db_end_later; *ret_reply is about the batch alone.
 * DB_BEHIND_FAILURE: the session ended before this batch, and nothing of it was committed. Where the transaction is BEHIND_FAILURE
 * afterwards, the caller rolls it back. */
enum db_status db_exchange(struct db *db, int64_t until_us, PGresult **ret_result, struct reply *ret_reply);

/* ---- transaction.c ------------------------------------------------------------------------------------- */

/* PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, without an error. RESULT is that of COMMIT. */
enum db_status db_check_commit(struct db *db, const PGresult *result);

/* ---- end_later.c --------------------------------------------------------------------------------------- */

/* Removes the oldest entry that db_end_later has sent, and calls its on_end. */
void db_end_oldest(struct db *db, enum db_status status, const PGresult *rows);
/* Reads results of what db_end_later has sent, the oldest first, until at most LEFT are awaited. Not DB_OK: the connection was lost;
 * DB_BEHIND_FAILURE: nothing sent after these was begun. */
enum db_status db_read_sent(struct db *db, int left);
/* The latest time at which an order that was sent behind others stops waiting. */
int64_t db_last_wait(const struct db *db);
/* PostgreSQL begins a statement when the one before it has ended. Returns UNTIL_US, put off by the time that we have waited for
 * the latter since SINCE_US, but not beyond LAST_US. */
int64_t db_put_off(int64_t until_us, int64_t since_us, int64_t last_us);

#endif
