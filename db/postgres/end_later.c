/* Sends the last statements of several orders on one connection, without waiting for the results in between. */
#include "base/clock.h"
#include "db/postgres/connection_impl.h"
#include "db/postgres/statements.h"

enum {
    /* How long a statement that is sent ahead waits for a lock: what was sent behind it waits as long. */
    LOCK_LIMIT_SENT_MS = 100,
    SLOW_US = LOCK_LIMIT_SENT_MS * 1000, /* after an answer that took longer, nothing is sent ahead */
    /* How long after its deadline an order may still wait for those before it: each of them may have waited for a lock. */
    BEHIND_US = SENT_MAX * LOCK_LIMIT_SENT_MS * 1000,
};

void db_end_oldest(struct db *db, enum db_status status, const PGresult *rows)
{
    struct sent *oldest = &db->sent[db->first_sent];
    db_end_fn *on_end = oldest->on_end;
    oldest->batch.count = 0;
    db->first_sent = (db->first_sent + 1) % SENT_MAX;
    db->sent_count--;
    if (on_end)
        on_end(oldest->context, status, rows);
}

int64_t db_last_wait(const struct db *db)
{
    return db->deadline_us == INT64_MAX ? INT64_MAX : db->deadline_us + BEHIND_US + GRACE_US;
}

int64_t db_put_off(int64_t until_us, int64_t since_us, int64_t last_us)
{
    if (until_us >= last_us)
        return until_us;
    until_us += monotonic_us() - since_us;
    return until_us < last_us ? until_us : last_us;
}

/* Reads the oldest result of what db_end_later has sent. The status is that of db_read_sent. */
static enum db_status read_oldest(struct db *db)
{
    int64_t since_us = monotonic_us();
    struct sent *oldest = &db->sent[db->first_sent];
    int last = oldest->batch.count - 1;
    bool commits = oldest->batch.commands[last].statement == &ST_COMMIT;
    bool was_behind_failure = db->transaction == TRANSACTION_BEHIND_FAILURE;
    struct reply reply;
    AUTO_RESULT result = NULL;
    enum db_status status = db_read_batch(db, &oldest->batch, oldest->until_us, &result, &reply);
    db->slow = monotonic_us() - since_us > SLOW_US;
    if (reply.lost) { /* See db_run_once. */
        db_end_oldest(db, reply.turned_down && !commits ? DB_AWAY : DB_UNKNOWN, NULL);
        db_disconnect(db, reply.session_ended ? DB_BEHIND_FAILURE : DB_UNKNOWN);
        return reply.session_ended ? DB_BEHIND_FAILURE : DB_AWAY;
    }
    if (status == DB_OK && commits)
        status = db_check_commit(db, result);
    if (commits && reply.failed_at >= 0 && reply.failed_at < last)
        db_set_transaction(db, TRANSACTION_BEHIND_FAILURE);
    for (int i = 1; i < db->sent_count; i++) {
        struct sent *next = &db->sent[(db->first_sent + i) % SENT_MAX];
        next->until_us = db_put_off(next->until_us, since_us, next->last_us);
    }
    bool again = was_behind_failure || (status == DB_LOCK_TIMEOUT && !commits);
    db_end_oldest(db, status != DB_OK && again ? DB_BEHIND_FAILURE : status, result);
    return DB_OK;
}

enum db_status db_read_sent(struct db *db, int left)
{
    enum db_status status = DB_OK;
    while (status == DB_OK && db->sent_count > left)
        status = read_oldest(db);
    return status;
}

/* Sends the batch. read_oldest reads its result later. */
static void send_later(struct db *db, db_end_fn *on_end, void *context)
{
    struct sent *sent = &db->sent[(db->first_sent + db->sent_count++) % SENT_MAX];
    *sent = (struct sent){.batch = db->batch,
                          .on_end = on_end,
                          .context = context,
                          .until_us = db_reply_deadline(db),
                          .last_us = db_last_wait(db)};
    db->batch.count = 0;
    db->round_trips += on_end != NULL;
    if (!PQpipelineSync(db->pg) || PQflush(db->pg) < 0)
        db_hang_up(db, PQerrorMessage(db->pg)); /* calls ON_END */
}

/* Sends the time limits in a separate batch: if the statement failed, PostgreSQL would undo limits in its batch, and what is sent
 * behind it relies on them. */
static enum db_status send_limits(struct db *db)
{
    if (!db->pg)
        return DB_AWAY;
    if (!db_enqueue_limits(db, LOCK_LIMIT_SENT_MS))
        return db_hang_up(db, PQerrorMessage(db->pg));
    if (db->batch.count > 0)
        send_later(db, NULL, NULL);
    return db->pg ? DB_OK : DB_AWAY;
}

enum db_status db_end_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_end_fn *on_end, void *context)
{
    if (!statement &&
        db->transaction != TRANSACTION_OPEN) { /* nothing was sent, or the connection was lost */
        db_set_transaction(db, TRANSACTION_NONE);
        return db->pg ? DB_ERROR : DB_AWAY;
    }
    /* What is sent must not rely on a preparation that may fail. */
    bool awaits = statement && !db_has_prepared(db, statement);
    db_read_sent(db, awaits || db->slow ? 0 : SENT_MAX - 2);
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
    send_later(db, on_end, context);
    return DB_OK;
}

void db_finish(struct db *db)
{
    if (db_read_sent(db, 0) == DB_OK && db->transaction == TRANSACTION_BEHIND_FAILURE)
        db_rollback(db);
}
