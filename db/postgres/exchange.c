/* Queues statements, sends a batch of them, and reads its results before a deadline. A batch may be sent behind others whose
 * results are still awaited: those are a ring, and come first. */
#include "db/postgres/connection_impl.h"

#include "base/clock.h"
#include "base/recorder.h"
#include "db/postgres/answer_text.h"
#include "db/postgres/statements.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    SLOW_US = LOCK_LIMIT_SENT_MS * 1000, /* after an answer that took longer, nothing is sent ahead */
    /* How long after its deadline an order may still wait for those before it: each of them may have waited for a lock. */
    BEHIND_US = SENT_MAX * LOCK_LIMIT_SENT_MS * 1000,
};

static const struct statement ST_TIME_LIMITS = {
    "time_limits", "SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false)",
    2};

static bool prepares(const struct batch *batch, const struct statement *statement)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->commands[i].statement == statement && batch->commands[i].prepares)
            return true;
    return false;
}

bool db_has_prepared(const struct db *db, const struct statement *statement)
{
    for (int i = 0; i < db->prepared_count; i++)
        if (db->prepared[i] == statement)
            return true;
    return false;
}

/* Is the statement prepared, or does something that was sent or is queued prepare it? */
static bool is_prepared(const struct db *db, const struct statement *statement)
{
    if (db_has_prepared(db, statement))
        return true;
    for (int i = 0; i < db->sent_count; i++)
        if (prepares(&db->sent[(db->first_sent + i) % SENT_MAX].batch, statement))
            return true;
    return prepares(&db->batch, statement);
}

/* A statement that only sets up the session is not part of an order, so it is not recorded. */
static unsigned record(const struct db *db, const struct statement *statement, const char *const *values)
{
    return statement == &ST_SESSION || statement == &ST_TIME_LIMITS
               ? 0
               : record_request("postgresql", db, statement->sql, values, statement->parameters);
}

static void record_result(const struct command *command, const PGresult *result)
{
    char answer[RECORDED_ANSWER_MAX + 1];
    if (!command->recorded || !thread_recorder)
        return;
    pg_answer_text(result, answer, sizeof answer);
    record_answer(command->recorded, answer);
}

/* No command from number FIRST on will be answered. */
static void record_loss(const struct batch *batch, int first)
{
    for (int i = first; i < batch->count; i++)
        record_answer(batch->commands[i].recorded, "no answer: the connection is lost");
}

bool db_enqueue(struct db *db, const struct statement *statement, const char *const *values,
                db_result_fn *on_result, void *context)
{
    if (db->batch.count + 2 > PIPELINE_MAX || db->prepared_count + PIPELINE_MAX > STATEMENTS_MAX)
        return false;
    if (!is_prepared(db, statement)) {
        if (!PQsendPrepare(db->pg, statement->name, statement->sql, 0, NULL))
            return false;
        db->batch.commands[db->batch.count++] = (struct command){.statement = statement, .prepares = true};
    }
    if (!PQsendQueryPrepared(db->pg, statement->name, statement->parameters, values, NULL, NULL, 0))
        return false;
    db->batch.commands[db->batch.count++] = (struct command){.statement = statement,
                                                             .recorded = record(db, statement, values),
                                                             .on_result = on_result,
                                                             .context = context};
    return true;
}

/* A time limit in ms that is not below US and is one of few values, so that it seldom changes: rounded up to
 * five significant bits, thus at most a sixteenth late. */
static long rounded_limit_ms(int64_t us)
{
    int64_t ms = us <= 0 ? 1 : us / 1000 + 1, grain = 1;
    if (ms > LIMIT_MAX_MS)
        ms = LIMIT_MAX_MS;
    while (ms / grain >= 32)
        grain *= 2;
    return (long)((ms + grain - 1) / grain * grain);
}

bool db_enqueue_limits(struct db *db, long at_most_lock_ms)
{
    int64_t now_us = monotonic_us();
    if (db->deadline_us == INT64_MAX && db->statement_timeout_ms == 0)
        return true;
    long lock_ms = rounded_limit_ms(db->lock_deadline_us - now_us);
    long statement_ms = rounded_limit_ms(db->deadline_us - now_us);
    if (lock_ms > at_most_lock_ms)
        lock_ms = at_most_lock_ms;
    if (lock_ms == db->lock_timeout_ms && statement_ms == db->statement_timeout_ms)
        return true;
    char lock_text[24], statement_text[24];
    snprintf(lock_text, sizeof lock_text, "%ld", lock_ms);
    snprintf(statement_text, sizeof statement_text, "%ld", statement_ms);
    db->lock_timeout_ms = lock_ms;
    db->statement_timeout_ms = statement_ms;
    return db_enqueue(db, &ST_TIME_LIMITS, (const char *const[]){lock_text, statement_text}, NULL, NULL);
}

bool db_awaits_results(const struct db *db)
{
    return db->sent_count > 0;
}

/* Removes the oldest entry of the ring, and calls its on_end. */
static void end_oldest(struct db *db, enum db_status status, const PGresult *rows)
{
    struct sent *oldest = &db->sent[db->first_sent];
    db_end_fn *on_end = oldest->on_end;
    oldest->batch.count = 0;
    db->first_sent = (db->first_sent + 1) % SENT_MAX;
    db->sent_count--;
    if (on_end)
        on_end(oldest->context, status, rows);
}

void db_disconnect(struct db *db, enum db_status status)
{
    PQfinish(db->pg);
    db->pg = NULL;
    db->prepared_count = db->batch.count = 0;
    db_set_transaction(db, TRANSACTION_NONE);
    db->lock_timeout_ms = db->statement_timeout_ms = 0;
    while (db->sent_count > 0)
        end_oldest(db, status, NULL);
}

enum db_status db_hang_up(struct db *db, const char *why)
{
    db_note_error(db, why, NULL);
    db_disconnect(db, DB_UNKNOWN);
    return DB_AWAY;
}

bool db_wait_socket(struct db *db, short events, int64_t until_us)
{
    struct pollfd fd = {.fd = PQsocket(db->pg), .events = events};
    for (;;) {
        int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0)
            return false;
        int64_t left_ms = left_us / 1000 + 1;
        if (poll(&fd, 1, left_ms > 60000 ? 60000 : (int)left_ms) > 0)
            return true;
    }
}

/* If libpq 15 has no memory for the end of a batch, it continues to wait for it, and only its error message shows
 * that (pqParseInput3). A server that reports the same error is left as well. */
static bool has_no_memory(const struct db *db)
{
    return strstr(PQerrorMessage(db->pg), "out of memory") != NULL;
}

PGresult *db_next_result(struct db *db, int64_t until_us, bool *ret_lost)
{
    for (;;) {
        int unsent = PQflush(db->pg);
        if (unsent < 0)
            break;
        if (unsent == 0 && !PQisBusy(db->pg))
            return PQgetResult(db->pg);
        if (has_no_memory(db))
            break;
        if (!db_wait_socket(db, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until_us)) {
            db_note_error(db, "no reply from PostgreSQL before the deadline", NULL);
            *ret_lost = true;
            return NULL;
        }
        if (!PQconsumeInput(db->pg))
            break;
    }
    db_note_error(db, PQerrorMessage(db->pg), NULL);
    *ret_lost = true;
    return NULL;
}

static enum db_status note_failure(struct db *db, const PGresult *result)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    db_note_error(db, text ? text : PQresultErrorMessage(result),
                  PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME));
    return db_status_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));
}

/* PostgreSQL itself has ended the session: only its own codes count, as something between could give another reason. */
static bool ended_session(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return severity && code && strcmp(severity, "FATAL") == 0 &&
           (strcmp(code, "57P01") == 0 || strcmp(code, "25P03") == 0 || strcmp(code, "57P05") == 0);
}

/* Has PostgreSQL itself answered with this error? A pooler that has lost its connection to PostgreSQL sends a code of class 08 (connection
 * exception), and libpq's own errors have no code. */
static bool is_from_postgresql(const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return code && strncmp(code, "08", 2) != 0;
}

/* Reads up to the sync that ends a batch. A statement outside BEGIN and COMMIT is committed only there, after its own
 * result has come, and may still fail. */
static enum db_status finish_batch(struct db *db, int64_t until_us, enum db_status status,
                                   struct reply *reply)
{
    for (int results = 0; !reply->lost; results++) {
        AUTO_RESULT result = db_next_result(db, until_us, &reply->lost);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            break;
        if (result && status == DB_OK)
            status = note_failure(db, result);
        reply->session_ended |= result && ended_session(result);
        reply->lost |= PQstatus(db->pg) != CONNECTION_OK || results == PIPELINE_MAX;
    }
    return status;
}

/* Reads all results of a batch. The last command's is kept in *ret_result, NULL before, if every command succeeded. */
static enum db_status read_batch(struct db *db, struct batch *batch, int64_t until_us, PGresult **ret_result,
                                 struct reply *ret_reply)
{
    enum db_status status = DB_OK;
    *ret_reply = (struct reply){.failed_at = -1};
    for (int i = 0; i < batch->count && !ret_reply->lost; i++) {
        const struct command *command = &batch->commands[i];
        PGresult *result = db_next_result(db, until_us, &ret_reply->lost);
        if (ret_reply->lost) {
            record_loss(batch, i);
            break;
        }
        record_result(command, result);
        ExecStatusType got = PQresultStatus(result);
        if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) {
            if (command->prepares)
                db->prepared[db->prepared_count++] = command->statement;
            else if (command->on_result)
                command->on_result(command->context, result);
        } else if (status == DB_OK) {
            status = note_failure(db, result);
            ret_reply->failed_at = i;
            ret_reply->turned_down = is_from_postgresql(result);
            ret_reply->session_ended = ended_session(result);
        }
        if (i == batch->count - 1 && status == DB_OK)
            *ret_result = result;
        else
            PQclear(result);
        PQclear(db_next_result(db, until_us, &ret_reply->lost)); /* the NULL that ends a command's results */
        if (ret_reply->lost)
            record_loss(batch, i + 1);
    }
    status = finish_batch(db, until_us, status, ret_reply);
    ret_reply->lost |= PQstatus(db->pg) != CONNECTION_OK || status == DB_AWAY;
    batch->count = 0;
    if (status != DB_OK || ret_reply->lost) {
        PQclear(*ret_result);
        *ret_result = NULL;
        db->lock_timeout_ms = db->statement_timeout_ms = 0; /* the limits went back with the transaction */
    }
    return ret_reply->lost ? DB_AWAY : status;
}

enum db_status db_check_commit(struct db *db, const PGresult *result)
{
    if (strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0)
        return DB_OK;
    db_note_error(db, "the transaction had failed before its COMMIT", NULL);
    return DB_ERROR;
}

int64_t db_reply_deadline(const struct db *db)
{
    return db->deadline_us == INT64_MAX
               ? INT64_MAX
               : monotonic_us() + (int64_t)db->statement_timeout_ms * 1000 + GRACE_US;
}

/* The latest time at which an order that was sent behind others stops waiting. */
static int64_t last_wait(const struct db *db)
{
    return db->deadline_us == INT64_MAX ? INT64_MAX : db->deadline_us + BEHIND_US + GRACE_US;
}

/* PostgreSQL begins a statement when the one before it has ended. Returns UNTIL_US, put off by the time that we have waited for
 * the latter since SINCE_US, but not beyond LAST_US. */
static int64_t put_off(int64_t until_us, int64_t since_us, int64_t last_us)
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
    enum db_status status = read_batch(db, &oldest->batch, oldest->until_us, &result, &reply);
    db->slow = monotonic_us() - since_us > SLOW_US;
    if (reply.lost) { /* See db_run_once. */
        end_oldest(db, reply.turned_down && !commits ? DB_AWAY : DB_UNKNOWN, NULL);
        db_disconnect(db, reply.session_ended ? DB_BEHIND_FAILURE : DB_UNKNOWN);
        return reply.session_ended ? DB_BEHIND_FAILURE : DB_AWAY;
    }
    if (status == DB_OK && commits)
        status = db_check_commit(db, result);
    if (commits && reply.failed_at >= 0 && reply.failed_at < last)
        db_set_transaction(db, TRANSACTION_BEHIND_FAILURE);
    for (int i = 1; i < db->sent_count; i++) {
        struct sent *next = &db->sent[(db->first_sent + i) % SENT_MAX];
        next->until_us = put_off(next->until_us, since_us, next->last_us);
    }
    bool again = was_behind_failure || (status == DB_LOCK_TIMEOUT && !commits);
    end_oldest(db, status != DB_OK && again ? DB_BEHIND_FAILURE : status, result);
    return DB_OK;
}

enum db_status db_read_sent(struct db *db, int left)
{
    enum db_status status = DB_OK;
    while (status == DB_OK && db->sent_count > left)
        status = read_oldest(db);
    return status;
}

void db_send_later(struct db *db, db_end_fn *on_end, void *context)
{
    struct sent *sent = &db->sent[(db->first_sent + db->sent_count++) % SENT_MAX];
    *sent = (struct sent){.batch = db->batch,
                          .on_end = on_end,
                          .context = context,
                          .until_us = db_reply_deadline(db),
                          .last_us = last_wait(db)};
    db->batch.count = 0;
    db->round_trips += on_end != NULL;
    if (!PQpipelineSync(db->pg) || PQflush(db->pg) < 0)
        db_hang_up(db, PQerrorMessage(db->pg)); /* calls ON_END */
}

enum db_status db_exchange(struct db *db, int64_t until_us, PGresult **ret_result, struct reply *ret_reply)
{
    const struct command *last = &db->batch.commands[db->batch.count - 1];
    bool uncommitted = db->transaction == TRANSACTION_OPEN && last->statement != &ST_COMMIT;
    *ret_reply = (struct reply){.lost = !PQpipelineSync(db->pg), .failed_at = -1};
    int64_t since_us = monotonic_us();
    db->round_trips++;
    if (!ret_reply->lost) {
        enum db_status before = db_read_sent(db, 0);
        if (before != DB_OK) /* what was sent of a transaction is rolled back */
            return uncommitted ? DB_BEHIND_FAILURE : before;
        until_us = put_off(until_us, since_us, last_wait(db));
        enum db_status status = read_batch(db, &db->batch, until_us, ret_result, ret_reply);
        if (!ret_reply->lost)
            return status;
    }
    db_disconnect(db, DB_UNKNOWN);
    return DB_AWAY;
}
