/* Sends the last statements of several orders on one connection, without waiting for the results in between. */
#include "db/postgres/connection_impl.h"

#include "db/postgres/statements.h"

/* Sends the time limits in a separate batch: if the statement failed, PostgreSQL would undo limits in its batch, and what is sent
 * behind it relies on them. */
static enum db_status send_limits(struct db *db)
{
    if (!db->pg)
        return DB_AWAY;
    if (!db_enqueue_limits(db, LOCK_LIMIT_SENT_MS))
        return db_hang_up(db, PQerrorMessage(db->pg));
    if (db->batch.count > 0)
        db_send_later(db, NULL, NULL);
    return db->pg ? DB_OK : DB_AWAY;
}

enum db_status db_end_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_end_fn *on_end, void *context)
{
    if (!statement && db->transaction != TRANSACTION_OPEN) { /* nothing was sent, or all of it was lost */
        db_set_transaction(db, TRANSACTION_NONE);
        return db->pg ? DB_ERROR : DB_AWAY;
    }
    /* What is sent must not rely on a preparation that may fail. */
    bool awaits = statement && !db_has_prepared(db, statement);
    /* Where that loses the connection, there is none below. */
    (void)db_read_sent(db, awaits || db->slow ? 0 : SENT_MAX - 2);
    if (db->transaction == TRANSACTION_BEHIND_FAILURE)
        db_finish(db);
    if (!db->pg || (!statement && db->transaction != TRANSACTION_OPEN))
        return DB_BEHIND_FAILURE;
    enum db_status status = statement ? send_limits(db) : DB_OK;
    if (status == DB_OK)
        status = db_prepare_to_send(db, statement ? statement : &ST_COMMIT, values, NULL, NULL,
                                    statement ? LOCK_LIMIT_SENT_MS : LIMIT_MAX_MS);
    if (status != DB_OK) {
        if (db->transaction == TRANSACTION_OPEN)
            db_rollback(db);
        return status;
    }
    db_set_transaction(db, TRANSACTION_NONE);
    db_send_later(db, on_end, context);
    return DB_OK;
}

void db_finish(struct db *db)
{
    if (db_read_sent(db, 0) == DB_OK && db->transaction == TRANSACTION_BEHIND_FAILURE)
        db_rollback(db);
}
