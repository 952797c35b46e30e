/* Begins and ends transactions. */
#include "base/clock.h"
#include "db/postgres/connection_impl.h"
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

enum db_status db_check_commit(struct db *db, const PGresult *result)
{
    if (strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0)
        return DB_OK;
    db_note_error(db, "the transaction had failed before its COMMIT", NULL);
    return DB_ERROR;
}

void db_begin(struct db *db, enum db_isolation isolation)
{
    if (db->transaction == TRANSACTION_OPEN)
        return;
    db_set_transaction(db, TRANSACTION_DUE);
    db->isolation = isolation;
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
