/* Sends a batch of statements, and reads its results before a deadline. */
#include "base/clock.h"
#include "base/recorder.h"
#include "db/postgres/answer_text.h"
#include "db/postgres/connection_impl.h"
#include "db/postgres/statements.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { COPY_PART = 65536 };

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

/* Queues what must go before a statement: BEGIN where due, and the session's time limits where they changed. */
static bool enqueue_preamble(struct db *db, long at_most_lock_ms)
{
    if (db->transaction == TRANSACTION_DUE && !db_enqueue(db, &ST_BEGIN[db->isolation], NULL, NULL, NULL))
        return false;
    return db_enqueue_limits(db, at_most_lock_ms);
}

/* If libpq 15 has no memory for the end of a batch, it continues to wait for it, and only its error message shows
 * that (pqParseInput3). A server that reports the same error is left as well. */
static bool has_no_memory(const struct db *db)
{
    return strstr(PQerrorMessage(db->pg), "out of memory") != NULL;
}

/* The next result of the batch; NULL with *ret_lost when it did not come in time or the connection broke. */
static PGresult *next_result(struct db *db, int64_t until_us, bool *ret_lost)
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
        AUTO_RESULT result = next_result(db, until_us, &reply->lost);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            break;
        if (result && status == DB_OK)
            status = note_failure(db, result);
        reply->session_ended |= result && ended_session(result);
        reply->lost |= PQstatus(db->pg) != CONNECTION_OK || results == PIPELINE_MAX;
    }
    return status;
}

enum db_status db_read_batch(struct db *db, struct batch *batch, int64_t until_us, PGresult **ret_result,
                             struct reply *ret_reply)
{
    enum db_status status = DB_OK;
    *ret_reply = (struct reply){.failed_at = -1};
    for (int i = 0; i < batch->count && !ret_reply->lost; i++) {
        const struct command *command = &batch->commands[i];
        PGresult *result = next_result(db, until_us, &ret_reply->lost);
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
        PQclear(next_result(db, until_us, &ret_reply->lost)); /* the NULL that ends a command's results */
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
        until_us = db_put_off(until_us, since_us, db_last_wait(db));
        enum db_status status = db_read_batch(db, &db->batch, until_us, ret_result, ret_reply);
        if (!ret_reply->lost)
            return status;
    }
    db_disconnect(db, DB_UNKNOWN);
    return DB_AWAY;
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

int64_t db_reply_deadline(const struct db *db)
{
    return db->deadline_us == INT64_MAX
               ? INT64_MAX
               : monotonic_us() + (int64_t)db->statement_timeout_ms * 1000 + GRACE_US;
}

enum db_status db_run_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_result_fn *on_result, void *context)
{
    return db_prepare_to_send(db, statement, values, on_result, context, LIMIT_MAX_MS);
}

/* As db_run. *ret_reply is about what was sent, if anything. */
static enum db_status run(struct db *db, const struct statement *statement, const char *const *values,
                          PGresult **ret_result, struct reply *ret_reply)
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
    return run(db, statement, values, ret_result, &reply);
}

enum db_status db_run_once(struct db *db, const struct statement *statement, const char *const *values,
                           PGresult **ret_result)
{
    bool connected = db->pg != NULL;
    struct reply reply;
    enum db_status status = run(db, statement, values, ret_result, &reply);
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

/* Answers COPY … FROM STDIN: with DATA, or, if that is NULL, with an error. False: the connection is lost. */
static bool send_copy(struct db *db, const char *data, size_t length)
{
    size_t sent = 0;
    for (;;) {
        bool is_end = !data || sent == length;
        size_t part = length - sent < COPY_PART ? length - sent : COPY_PART;
        int done = is_end ? PQputCopyEnd(db->pg, data ? NULL : "no rows follow COPY")
                          : PQputCopyData(db->pg, data + sent, (int)part);
        if (done < 0 || (done == 0 && !db_wait_socket(db, POLLOUT, db->deadline_us)))
            return false;
        if (done > 0 && is_end)
            return true;
        sent += done > 0 ? part : 0;
    }
}

/* PostgreSQL counts characters of SQL, and the rows of COPY, which begin in the line after it. */
static int line_of_error(const PGresult *result, const char *sql, bool has_data)
{
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION),
               *context = PQresultErrorField(result, PG_DIAG_CONTEXT),
               *row = has_data && context ? strstr(context, ", line ") : NULL;
    long left = position ? strtol(position, NULL, 10) - 1 : 0;
    int line = 1;
    for (; left > 0 && *sql; sql++) {
        line += *sql == '\n';
        left -= (sql[1] & 0xc0) != 0x80; /* the last byte of a character in UTF-8 */
    }
    return row ? 1 + (int)strtol(row + strlen(", line "), NULL, 10) : position ? line : 0;
}

enum db_status db_run_copy(struct db *db, const char *sql, const char *data, size_t length)
{
    db_finish(db);
    if (!db->pg)
        return DB_AWAY;
    if (!PQexitPipelineMode(db->pg) || !PQsendQuery(db->pg, sql))
        return db_hang_up(db, PQerrorMessage(db->pg));
    enum db_status status = DB_OK;
    bool lost = false;
    PGresult *result;
    while (!lost && (result = next_result(db, db->deadline_us, &lost)) != NULL) {
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COPY_IN) {
            lost = !send_copy(db, data, length);
        } else if (kind == PGRES_COPY_OUT) {
            db_note_error(db, "COPY TO STDOUT has nowhere to go", NULL);
            lost = true;
        } else if (status == DB_OK && kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
            status = db_status_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));
            db_note_error(db, PQresultErrorMessage(result), NULL);
            db->error_line = line_of_error(result, sql, data != NULL);
        }
        PQclear(result);
    }
    db->round_trips++;
    if (lost || !PQenterPipelineMode(db->pg)) {
        db_disconnect(db, DB_UNKNOWN);
        return DB_AWAY;
    }
    return status;
}

enum db_status db_run_script(struct db *db, const char *sql)
{
    return db_run_copy(db, sql, NULL, 0);
}
