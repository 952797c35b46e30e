/* Runs statements, and begins and ends transactions. */
#include "db/postgres/connection_impl.h"

#include "base/clock.h"
#include "db/postgres/statements.h"

#include <string.h>

enum {
    ROLLBACK_US = 1000 * 1000, /* rolling back is quick, and due even after the order's deadline */
};

const struct statement ST_BEGIN[] = {
    [DB_READ_COMMITTED] = {"begin_read_committed", "BEGIN ISOLATION LEVEL READ COMMITTED", 0},
    [DB_REPEATABLE_READ] = {"begin_repeatable_read", "BEGIN ISOLATION LEVEL REPEATABLE READ", 0},
    [DB_SERIALIZABLE] = {"begin_serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", 0},
};
const struct statement ST_COMMIT = {"commit", "COMMIT", 0};
static const struct statement ST_ROLLBACK = {"rollback", "ROLLBACK", 0};

void db_begin(struct db *db, enum db_isolation isolation)
{
    if (db->transaction == TRANSACTION_OPEN)
        return;
    db_set_transaction(db, TRANSACTION_DUE);
    db->isolation = isolation;
}

/* Queues what must go before a statement: BEGIN where due, and the session's time limits where they changed. */
static bool enqueue_preamble(struct db *db, long at_most_lock_ms)
{
    if (db->transaction == TRANSACTION_DUE && !db_enqueue(db, &ST_BEGIN[db->isolation], NULL, NULL, NULL))
        return false;
    return db_enqueue_limits(db, at_most_lock_ms);
}

enum db_status db_prepare_to_send(struct db *db, const struct statement *statement, const char *const *values,
                                  db_result_fn *on_result, void *context, long at_most_lock_ms)
{
    if (!db->pg)
        return DB_AWAY;
    if (monotonic_us() >= db->deadline_us) {
        db_note_error(db, "the deadline has passed", NULL);
        return DB_TIMEOUT; /* and nothing was sent */
    }
    if (!enqueue_preamble(db, at_most_lock_ms) || !db_enqueue(db, statement, values, on_result, context))
        return db_hang_up(db, PQerrorMessage(db->pg));
    if (db->transaction == TRANSACTION_DUE)
        db_set_transaction(db, TRANSACTION_OPEN);
    return DB_OK;
}

enum db_status db_run_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_result_fn *on_result, void *context)
{
    return db_prepare_to_send(db, statement, values, on_result, context, LIMIT_MAX_MS);
}

/* Sends ROLLBACK. What is queued before it is rolled back with the rest. */
static void roll_back(struct db *db)
{
    char error[sizeof db->error], constraint[sizeof db->constraint];
    memcpy(error, db->error, sizeof error); /* that error says more than one of the rollback */
    memcpy(constraint, db->constraint, sizeof constraint);
    AUTO_RESULT result = NULL;
    struct reply reply;
    for (int i = 0; i < db->batch.count; i++)
        db->batch.commands[i].on_result = NULL;
    if (!db_enqueue(db, &ST_ROLLBACK, NULL, NULL, NULL) ||
        db_exchange(db, monotonic_us() + ROLLBACK_US, &result, &reply) != DB_OK)
        db_disconnect(db, DB_UNKNOWN);
    memcpy(db->error, error, sizeof error);
    memcpy(db->constraint, constraint, sizeof constraint);
}

void db_rollback(struct db *db)
{
    bool open = db->transaction == TRANSACTION_OPEN || db->transaction == TRANSACTION_BEHIND_FAILURE;
    db->lock_timeout_ms = db->statement_timeout_ms = 0;
    if (open && db->pg)
        roll_back(db);
    db_set_transaction(db, TRANSACTION_NONE);
}

/* As db_exchange, and rolls back a transaction before this one that has failed. DB_BEHIND_FAILURE: nothing of this batch was
 * committed. */
static enum db_status exchange_behind(struct db *db, int64_t until_us, PGresult **ret_result,
                                      struct reply *ret_reply)
{
    enum transaction transaction = db->transaction;
    enum db_status status = db_exchange(db, until_us, ret_result, ret_reply);
    if (db->transaction != TRANSACTION_BEHIND_FAILURE)
        return status;
    if (status == DB_OK) {
        db_set_transaction(db, transaction);
        return DB_OK;
    }
    db_rollback(db);
    return DB_BEHIND_FAILURE;
}

/* As db_run. *ret_reply is about what was sent, if anything. */
static enum db_status run_statement(struct db *db, const struct statement *statement,
                                    const char *const *values, PGresult **ret_result, struct reply *ret_reply)
{
    *ret_result = NULL;
    *ret_reply = (struct reply){.failed_at = -1};
    enum db_status status = db_prepare_to_send(db, statement, values, NULL, NULL, LIMIT_MAX_MS);
    if (status != DB_OK)
        return status;
    return exchange_behind(db, db_reply_deadline(db), ret_result, ret_reply);
}

enum db_status db_run(struct db *db, const struct statement *statement, const char *const *values,
                      PGresult **ret_result)
{
    struct reply reply;
    return run_statement(db, statement, values, ret_result, &reply);
}

enum db_status db_run_once(struct db *db, const struct statement *statement, const char *const *values,
                           PGresult **ret_result)
{
    bool connected = db->pg != NULL;
    struct reply reply;
    enum db_status status = run_statement(db, statement, values, ret_result, &reply);
    if (status != DB_AWAY || !connected)
        return status;
    /* A statement that the server answered with an error was not committed. COMMIT itself may fail with an error after
     * it has taken effect, for example while it waits for a standby. */
    return reply.turned_down && statement != &ST_COMMIT ? DB_AWAY : DB_UNKNOWN;
}

enum db_status db_ping(struct db *db)
{
    static const struct statement ST_PING = {"ping", "SELECT 1", 0};
    AUTO_RESULT result = NULL;
    return db_run(db, &ST_PING, NULL, &result);
}

enum db_status db_commit(struct db *db)
{
    if (db->transaction != TRANSACTION_OPEN) { /* nothing was sent, or the connection was lost before */
        db_set_transaction(db, TRANSACTION_NONE);
        return db->pg ? DB_OK : DB_AWAY;
    }
    AUTO_RESULT result = NULL;
    enum db_status status = db_run_once(db, &ST_COMMIT, NULL, &result);
    /* COMMIT was not sent, or a statement in its batch failed: the transaction is still open. */
    if (status != DB_OK && db->pg && PQtransactionStatus(db->pg) != PQTRANS_IDLE)
        db_rollback(db);
    db_set_transaction(db, TRANSACTION_NONE);
    return status == DB_OK ? db_check_commit(db, result) : status;
}
