/* The state of a connection to PostgreSQL, and the functions that its source files call in each other. They are layers. Each calls
 * only those before it, here and in connection.h:
 *   state.c         the state of the transaction, and the last error
 *   exchange.c      queues statements, sends them, reads results; the ring of those that are read later; drops the connection
 *   transaction.c   runs statements; BEGIN, COMMIT, ROLLBACK
 *   end_later.c     COMMIT without waiting for its result
 *   copy.c          scripts and COPY
 *   connection.c    connects */
#ifndef OVERSELL_DB_POSTGRES_CONNECTION_IMPL_H
#define OVERSELL_DB_POSTGRES_CONNECTION_IMPL_H

#include "db/postgres/connection.h"

enum {
    STATEMENTS_MAX = 96,    /* distinct statements that one connection ever prepares */
    PIPELINE_MAX = 12,      /* commands sent in one round trip */
    SENT_MAX = 8,           /* round trips whose results are not awaited before the next one is sent */
    LIMIT_MAX_MS = 3600000, /* an hour: a time limit that is never met */
    /* How long a statement that is sent ahead waits for a lock: what was sent behind it waits as long. */
    LOCK_LIMIT_SENT_MS = 100,
    GRACE_US = 500 * 1000, /* PostgreSQL ends a late statement itself; later than this we hang up */
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

/* What db_send_later has sent. */
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
    /* What db_send_later has sent: a ring, the oldest first. Only exchange.c uses it. */
    struct sent sent[SENT_MAX];
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

/* ---- state.c ------------------------------------------------------------------------------------------- */

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

/* Keeps the first line of TEXT for db_error, and CONSTRAINT, which may be NULL. */
void db_note_error(struct db *db, const char *text, const char *constraint);

/* ---- exchange.c ---------------------------------------------------------------------------------------- */

/* Drops the connection. What was sent and is awaited ends with STATUS. PostgreSQL rolls back an open transaction. */
void db_disconnect(struct db *db, enum db_status status);
/* Drops a broken connection and keeps WHY for db_error. Returns DB_AWAY. */
enum db_status db_hang_up(struct db *db, const char *why);
/* Waits for EVENTS of poll on the socket until UNTIL; false when time is up. */
bool db_wait_socket(struct db *db, short events, int64_t until_us);
/* The next result of what was sent; NULL with *ret_lost when it did not come in time or the connection broke. */
PGresult *db_next_result(struct db *db, int64_t until_us, bool *ret_lost);

/* Has this connection prepared the statement, and read the answer? */
bool db_has_prepared(const struct db *db, const struct statement *statement);
/* Queues one statement, and before it its preparation where it is due. False: libpq has no memory, or there is no room. */
bool db_enqueue(struct db *db, const struct statement *statement, const char *const *values,
                db_result_fn *on_result, void *context);
/* Queues the session's time limits where they changed: the deadlines, and AT_MOST for a lock. False: as db_enqueue. */
bool db_enqueue_limits(struct db *db, long at_most_lock_ms);
/* How long to wait for a reply. PostgreSQL ends a late statement itself, at its rounded limit, so we wait longer than that. */
int64_t db_reply_deadline(const struct db *db);

/* Sends what is queued, for db_read_sent to read its result later. ON_END is called then, or when the connection is dropped. */
void db_send_later(struct db *db, db_end_fn *on_end, void *context);
/* Does a result of db_send_later have to be read? */
bool db_awaits_results(const struct db *db);
/* Reads results of db_send_later, the oldest first, until at most LEFT are awaited. Not DB_OK: the connection was lost;
 * DB_BEHIND_FAILURE: nothing sent after these was begun. The transaction is BEHIND_FAILURE afterwards where one of these has failed and
 * is open. */
enum db_status db_read_sent(struct db *db, int left);
/* Sends what is queued and reads its results, and before them those of db_send_later. *ret_result is the last command's, NULL before.
 * *ret_reply is about what is queued alone. DB_BEHIND_FAILURE: the session ended before this batch, and nothing of it was committed.
 * Where the transaction is BEHIND_FAILURE afterwards, the caller rolls it back. */
enum db_status db_exchange(struct db *db, int64_t until_us, PGresult **ret_result, struct reply *ret_reply);
/* PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, without an error. RESULT is that of COMMIT. */
enum db_status db_check_commit(struct db *db, const PGresult *result);

/* ---- transaction.c ------------------------------------------------------------------------------------- */

/* Queues the statement, and before it BEGIN and the session's time limits where they are due. DB_TIMEOUT: the deadline has passed, and
 * nothing was queued. */
enum db_status db_prepare_to_send(struct db *db, const struct statement *statement, const char *const *values,
                                  db_result_fn *on_result, void *context, long at_most_lock_ms);

#endif
