/* Connecting, and exchanging a batch of statements for its results before a deadline. */
#include "db/postgres/connection.h"
#include "base/clock.h"
#include "base/recorder.h"

#include "db/postgres/answer_text.h"
#include "db/postgres/statements.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATEMENTS_MAX = 96, /* distinct statements that one connection ever prepares */
    PIPELINE_MAX = 12,   /* commands sent in one round trip */
    SENT_MAX = 8,        /* round trips whose results are not awaited before the next one is sent */
    LOCK_LIMIT_SENT_MS =
        100, /* how long one of them waits for a lock: what was sent behind it waits as long */
    SLOW_US = LOCK_LIMIT_SENT_MS * 1000, /* after an answer that took longer, nothing is sent ahead */
    /* How long after its deadline an order may still wait for those before it: each of them may have waited for a lock. */
    BEHIND_US = SENT_MAX * LOCK_LIMIT_SENT_MS * 1000,
    PAUSE_FIRST_US = 50 * 1000, /* after a failure to connect; doubled up to PAUSE_MAX_US */
    PAUSE_MAX_US = 500 * 1000,
    CONNECT_US = 3000 * 1000,  /* the longest that connecting may take */
    HASTE_US = 500 * 1000,     /* with less time than this, a server that answers may seem to be away */
    LIMIT_MAX_MS = 3600000,    /* an hour: a time limit that is never met */
    GRACE_US = 500 * 1000,     /* PostgreSQL ends a late statement itself; later than this we hang up */
    ROLLBACK_US = 1000 * 1000, /* rolling back is quick, and due even after the order's deadline */
};

struct command {
    const struct statement *statement;
    bool prepares;           /* this command prepares the statement; otherwise it runs it */
    unsigned recorded;       /* its number in the recorder of the thread; 0: it is not recorded */
    db_result_fn *on_result; /* of db_run_later, with its … */
    void *context;
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
    int64_t until_us; /* the end of its wait; the waits for others put it off, until … */
    int64_t last_us;
};

struct db {
    char *url;
    char *application_name;
    PGconn *pg; /* NULL: not connected */
    int64_t deadline_us, lock_deadline_us;
    int64_t
        next_try_us; /* no attempt to connect before this, unless another connection was made since the last one */
    int64_t pause_us;
    unsigned made_before; /* connections_made at the last failure to connect */

    const struct statement *prepared[STATEMENTS_MAX];
    int prepared_count;
    struct sent sent[SENT_MAX]; /* a ring, the oldest first: their results come before those of … */
    int first_sent, sent_count;
    struct batch batch; /* … what is queued, or was sent and is awaited */
    bool
        behind_failure; /* a transaction among those sent has failed and is still open, so that what follows it fails too */
    bool slow; /* the last answer to what was sent took long: PostgreSQL has no time limit for a commit */
    bool turned_down; /* the server answered the last batch with an error, before it broke the connection … */
    bool session_ended; /* … an error that ended the session, so that nothing sent after it was begun */
    int failed_at;      /* the first command of the last batch that failed; -1: none */

    bool begin_due; /* db_begin was called, BEGIN has not been sent */
    bool in_transaction;
    enum db_isolation isolation;
    long lock_timeout_ms, statement_timeout_ms; /* what the session has now; 0: not known */

    struct db_session session;
    uint64_t round_trips;
    char error[320];
    char constraint[64];
};

/* All connections that this process has made. A connection that rests after a failure tries again at once when it sees that another
 * one succeeded: a caller that has just been served by one worker must not be refused by the next, which still rests. */
static atomic_uint connections_made;

const struct statement ST_BEGIN[] = {
    [DB_READ_COMMITTED] = {"begin_read_committed", "BEGIN ISOLATION LEVEL READ COMMITTED", 0},
    [DB_REPEATABLE_READ] = {"begin_repeatable_read", "BEGIN ISOLATION LEVEL REPEATABLE READ", 0},
    [DB_SERIALIZABLE] = {"begin_serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", 0},
};
const struct statement ST_COMMIT = {"commit", "COMMIT", 0};
static const struct statement ST_ROLLBACK = {"rollback", "ROLLBACK", 0};
static const struct statement ST_TIME_LIMITS = {
    "time_limits", "SELECT set_config('lock_timeout', $1, false), set_config('statement_timeout', $2, false)",
    2};
/* A reset empties the tables, and a session keeps the plans that it made meanwhile, those of foreign keys too: ten thousand
 * orders later each one would read all the others. So indexes are used, however small a table seems; and nothing is compiled,
 * as it would be where there is no index, since that counts as very costly then. */
static const struct statement ST_SESSION = {
    "session",
    "SELECT pid, backend_start, set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO', false), "
    "       set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false), " DB_SERVER_RUN " "
    "FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    0};

struct db *db_new(const char *url, const char *application_name)
{
    struct db *db = calloc(1, sizeof *db);
    if (!db)
        return NULL;
    db->url = strdup(url);
    db->application_name = strdup(application_name);
    db->deadline_us = db->lock_deadline_us = INT64_MAX;
    if (!db->url || !db->application_name) {
        db_free(db);
        return NULL;
    }
    return db;
}

/* The oldest of what db_end_later has sent is over. */
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

/* What is awaited ends with STATUS. */
static void disconnect_with(struct db *db, enum db_status status)
{
    PQfinish(db->pg);
    db->pg = NULL;
    db->prepared_count = db->batch.count = 0;
    db->begin_due = db->in_transaction = db->behind_failure = false;
    db->lock_timeout_ms = db->statement_timeout_ms = 0;
    while (db->sent_count > 0)
        end_oldest(db, status, NULL);
}

static void disconnect(struct db *db)
{
    disconnect_with(db, DB_UNKNOWN);
}

void db_free(struct db *db)
{
    if (!db)
        return;
    disconnect(db);
    free(db->url);
    free(db->application_name);
    free(db);
}

void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us)
{
    db->deadline_us = deadline_us;
    db->lock_deadline_us = lock_deadline_us < deadline_us ? lock_deadline_us : deadline_us;
}

static void note_error(struct db *db, const char *text, const char *constraint)
{
    snprintf(db->error, sizeof db->error, "%s", text);
    db->error[strcspn(db->error, "\n")] = '\0';
    snprintf(db->constraint, sizeof db->constraint, "%s", constraint ? constraint : "");
}

/* The connection is no good any more: what it had open is rolled back by PostgreSQL. */
static enum db_status hang_up(struct db *db, const char *why)
{
    note_error(db, why, NULL);
    disconnect(db);
    return DB_AWAY;
}

/* Waits for EVENTS on the socket until UNTIL; false when time is up. */
static bool wait_socket(struct db *db, short events, int64_t until_us)
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

static void ignore_notice(void *unused, const PGresult *result)
{
    (void)unused;
    (void)result;
}

static PGconn *start_connecting(const struct db *db)
{
    /* What stands before dbname is a default that the URL may change; what stands after it is ours to say. */
    const char *keys[] = {"application_name", "tcp_user_timeout", "gssencmode",
                          "dbname",           "client_encoding",  NULL};
    /* Kerberos is asked for credentials only where the URL wants it: libgssapi ends the process where it has no memory. */
    const char *values[] = {db->application_name, "5000", "disable", db->url, "UTF8", NULL};
    return PQconnectStartParams(keys, values, 1);
}

static enum db_status try_connect(struct db *db)
{
    int64_t until_us = monotonic_us() + CONNECT_US;
    if (db->deadline_us < until_us)
        until_us = db->deadline_us;

    db->pg = start_connecting(db);
    if (!db->pg)
        return hang_up(db, "out of memory");
    PQsetNoticeReceiver(db->pg, ignore_notice, NULL);
    PostgresPollingStatusType state = PQstatus(db->pg) == CONNECTION_BAD ? PGRES_POLLING_FAILED
                                                                         : PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED)
            return hang_up(db, PQerrorMessage(db->pg));
        if (!wait_socket(db, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
            return hang_up(db, "no answer while connecting");
        state = PQconnectPoll(db->pg);
    }
    if (PQsetnonblocking(db->pg, 1) != 0 || !PQenterPipelineMode(db->pg))
        return hang_up(db, PQerrorMessage(db->pg));

    AUTO_RESULT result = NULL;
    enum db_status status = db_run(db, &ST_SESSION, NULL, &result);
    if (status != DB_OK)
        return status;
    if (PQntuples(result) != 1)
        return hang_up(db, "the session is not in pg_stat_activity");
    snprintf(db->session.pid, sizeof db->session.pid, "%s", PQgetvalue(result, 0, 0));
    snprintf(db->session.started, sizeof db->session.started, "%s", PQgetvalue(result, 0, 1));
    snprintf(db->session.server_run, sizeof db->session.server_run, "%s", PQgetvalue(result, 0, 6));
    return DB_OK;
}

/* The server may have gone since the last call: its farewell then waits on the socket. */
static bool still_connected(struct db *db)
{
    struct pollfd fd = {.fd = PQsocket(db->pg), .events = POLLIN};
    if (poll(&fd, 1, 0) == 0)
        return true;
    return PQconsumeInput(db->pg) && PQstatus(db->pg) == CONNECTION_OK && poll(&fd, 1, 0) == 0;
}

enum db_status db_ready(struct db *db)
{
    if (db->sent_count > 0 || (db->pg && still_connected(db))) /* an answer that is awaited is no farewell */
        return DB_OK;
    if (db->pg)
        hang_up(db, "the server closed the connection");
    if (monotonic_us() >= db->deadline_us) {
        note_error(db, "the deadline has passed", NULL);
        return DB_AWAY;
    }
    if (monotonic_us() < db->next_try_us && atomic_load(&connections_made) == db->made_before)
        return DB_AWAY; /* db_error still tells why the last try failed */

    bool in_haste = db->deadline_us != INT64_MAX && db->deadline_us - monotonic_us() < HASTE_US;
    db->made_before = atomic_load(&connections_made);
    enum db_status status = try_connect(db);
    if (status == DB_OK) {
        atomic_fetch_add(&connections_made, 1);
        db->pause_us = 0;
        return DB_OK;
    }
    if (db->pg)
        disconnect(db);
    if (in_haste && monotonic_us() >= db->deadline_us) /* which says nothing about the server: no pause */
        return DB_AWAY;
    db->pause_us = db->pause_us ? db->pause_us * 2 : PAUSE_FIRST_US;
    if (db->pause_us > PAUSE_MAX_US)
        db->pause_us = PAUSE_MAX_US;
    db->next_try_us = monotonic_us() + db->pause_us / 2 + random() % (db->pause_us / 2); /* no stampede */
    return status == DB_REFUSED ? DB_REFUSED : DB_AWAY;
}

static bool prepares(const struct batch *batch, const struct statement *statement)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->commands[i].statement == statement && batch->commands[i].prepares)
            return true;
    return false;
}

static bool has_prepared(const struct db *db, const struct statement *statement)
{
    for (int i = 0; i < db->prepared_count; i++)
        if (db->prepared[i] == statement)
            return true;
    return false;
}

/* Was it prepared, or will it be by what was sent or is queued? */
static bool is_prepared(const struct db *db, const struct statement *statement)
{
    if (has_prepared(db, statement))
        return true;
    for (int i = 0; i < db->sent_count; i++)
        if (prepares(&db->sent[(db->first_sent + i) % SENT_MAX].batch, statement))
            return true;
    return prepares(&db->batch, statement);
}

/* What only sets up the session is no part of an order, and is not recorded. */
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

static bool enqueue(struct db *db, const struct statement *statement, const char *const *values,
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

/* Queues the session's time limits where they changed: the deadlines, and AT_MOST for a lock. */
static bool enqueue_limits(struct db *db, long at_most_lock_ms)
{
    int64_t now_us = monotonic_us();
    if (db->deadline_us == INT64_MAX)
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
    return enqueue(db, &ST_TIME_LIMITS, (const char *const[]){lock_text, statement_text}, NULL, NULL);
}

/* Queues what must go before a statement: BEGIN where due, and the session's time limits where they changed. */
static bool enqueue_preamble(struct db *db, long at_most_lock_ms)
{
    if (db->begin_due && !enqueue(db, &ST_BEGIN[db->isolation], NULL, NULL, NULL))
        return false;
    return enqueue_limits(db, at_most_lock_ms);
}

/* Where libpq has no memory for the end of a batch it goes on waiting for one, and only its error tells (15,
 * pqParseInput3). A server that says so itself is left as well: it hardly knows more of us. */
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
        if (!wait_socket(db, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until_us)) {
            note_error(db, "no reply from PostgreSQL before the deadline", NULL);
            *ret_lost = true;
            return NULL;
        }
        if (!PQconsumeInput(db->pg))
            break;
    }
    note_error(db, PQerrorMessage(db->pg), NULL);
    *ret_lost = true;
    return NULL;
}

static enum db_status note_failure(struct db *db, const PGresult *result)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    note_error(db, text ? text : PQresultErrorMessage(result),
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

/* Reads up to the sync that ends a batch. A statement outside BEGIN and COMMIT is committed only there, after its own
 * result has come, and may still fail. */
static enum db_status finish_batch(struct db *db, int64_t until_us, enum db_status status, bool *ret_lost)
{
    for (int results = 0; !*ret_lost; results++) {
        AUTO_RESULT result = next_result(db, until_us, ret_lost);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            break;
        if (result && status == DB_OK)
            status = note_failure(db, result);
        db->session_ended |= result && ended_session(result);
        *ret_lost |= PQstatus(db->pg) != CONNECTION_OK || results == PIPELINE_MAX;
    }
    return status;
}

/* Reads all results of a batch. The last command's is kept if every command succeeded. */
static enum db_status read_batch(struct db *db, struct batch *batch, int64_t until_us, PGresult **ret_result,
                                 bool *ret_lost)
{
    enum db_status status = DB_OK;
    db->turned_down = db->session_ended = false;
    db->failed_at = -1;
    for (int i = 0; i < batch->count && !*ret_lost; i++) {
        const struct command *command = &batch->commands[i];
        PGresult *result = next_result(db, until_us, ret_lost);
        if (*ret_lost) {
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
            db->failed_at = i;
            db->turned_down = PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL;
            db->session_ended = ended_session(result);
        }
        if (i == batch->count - 1 && status == DB_OK)
            *ret_result = result;
        else
            PQclear(result);
        PQclear(next_result(db, until_us, ret_lost)); /* the NULL that ends a command's results */
    }
    status = finish_batch(db, until_us, status, ret_lost);
    *ret_lost |= PQstatus(db->pg) != CONNECTION_OK || status == DB_AWAY;
    batch->count = 0;
    if (status != DB_OK || *ret_lost) {
        PQclear(*ret_result);
        *ret_result = NULL;
        db->lock_timeout_ms = db->statement_timeout_ms = 0; /* the limits went back with the transaction */
    }
    return *ret_lost ? DB_AWAY : status;
}

/* COMMIT of a failed transaction succeeds as ROLLBACK. */
static enum db_status check_commit(struct db *db, const PGresult *result)
{
    if (strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0)
        return DB_OK;
    note_error(db, "the transaction had failed before its COMMIT", NULL);
    return DB_ERROR;
}

/* The end of all waits of an order that was sent behind others. */
static int64_t last_wait(const struct db *db)
{
    return db->deadline_us == INT64_MAX ? INT64_MAX : db->deadline_us + BEHIND_US + GRACE_US;
}

/* PostgreSQL begins a statement when the one before it has ended: the wait for the latter, since SINCE_US, is not its own. It may
 * last until LAST_US. */
static int64_t put_off(int64_t until_us, int64_t since_us, int64_t last_us)
{
    if (until_us >= last_us)
        return until_us;
    until_us += monotonic_us() - since_us;
    return until_us < last_us ? until_us : last_us;
}

/* Reads the oldest result of what db_end_later has sent. False: the connection is lost. */
static bool read_oldest(struct db *db)
{
    int64_t since_us = monotonic_us();
    struct sent *oldest = &db->sent[db->first_sent];
    int last = oldest->batch.count - 1;
    bool commits = oldest->batch.commands[last].statement == &ST_COMMIT, lost = false;
    bool was_behind_failure = db->behind_failure;
    AUTO_RESULT result = NULL;
    enum db_status status = read_batch(db, &oldest->batch, oldest->until_us, &result, &lost);
    db->slow = monotonic_us() - since_us > SLOW_US;
    if (lost) { /* See db_run_once. */
        end_oldest(db, db->turned_down && !commits ? DB_AWAY : DB_UNKNOWN, NULL);
        disconnect_with(db, db->session_ended ? DB_BEHIND_FAILURE : DB_UNKNOWN);
        return false;
    }
    if (status == DB_OK && commits)
        status = check_commit(db, result);
    if (commits && db->failed_at >= 0 && db->failed_at < last)
        db->behind_failure = true;
    for (int i = 1; i < db->sent_count; i++) {
        struct sent *next = &db->sent[(db->first_sent + i) % SENT_MAX];
        next->until_us = put_off(next->until_us, since_us, next->last_us);
    }
    bool again = was_behind_failure || (status == DB_LOCK_TIMEOUT && !commits);
    end_oldest(db, status != DB_OK && again ? DB_BEHIND_FAILURE : status, result);
    return true;
}

/* False: the connection is lost. */
static bool read_sent(struct db *db)
{
    while (db->sent_count > 0)
        if (!read_oldest(db))
            return false;
    return true;
}

/* Sends the batch and reads all its results, and before them those of db_end_later. */
static enum db_status exchange(struct db *db, int64_t until_us, PGresult **ret_result)
{
    const struct command *last = &db->batch.commands[db->batch.count - 1];
    bool uncommitted = db->in_transaction && last->statement != &ST_COMMIT;
    bool lost = !PQpipelineSync(db->pg);
    int64_t since_us = monotonic_us();
    db->round_trips++;
    if (!lost && !read_sent(db)) { /* what was sent of a transaction is rolled back */
        db->turned_down = false;   /* the error was the answer to what was sent before */
        return uncommitted || db->session_ended ? DB_BEHIND_FAILURE : DB_AWAY;
    }
    until_us = put_off(until_us, since_us, last_wait(db));
    enum db_status status = lost ? DB_AWAY : read_batch(db, &db->batch, until_us, ret_result, &lost);
    if (lost) {
        disconnect(db);
        return DB_AWAY;
    }
    if (!db->behind_failure)
        return status;
    db->behind_failure = false;
    if (status == DB_OK)
        return DB_OK;
    db->in_transaction = true; /* the failed one, which is still open */
    db_rollback(db);
    return DB_BEHIND_FAILURE;
}

/* Queues the statement, with what must go before it. */
static enum db_status prepare_to_send(struct db *db, const struct statement *statement,
                                      const char *const *values, db_result_fn *on_result, void *context,
                                      long at_most_lock_ms)
{
    if (!db->pg)
        return DB_AWAY;
    if (monotonic_us() >= db->deadline_us) {
        note_error(db, "the deadline has passed", NULL);
        return DB_TIMEOUT; /* and nothing was sent */
    }
    if (!enqueue_preamble(db, at_most_lock_ms) || !enqueue(db, statement, values, on_result, context))
        return hang_up(db, PQerrorMessage(db->pg));
    if (db->begin_due) {
        db->begin_due = false;
        db->in_transaction = true;
    }
    return DB_OK;
}

/* PostgreSQL ends a statement itself, at its own, rounded limit: we wait for that word. */
static int64_t reply_deadline(const struct db *db)
{
    return db->deadline_us == INT64_MAX
               ? INT64_MAX
               : monotonic_us() + (int64_t)db->statement_timeout_ms * 1000 + GRACE_US;
}

enum db_status db_run_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_result_fn *on_result, void *context)
{
    return prepare_to_send(db, statement, values, on_result, context, LIMIT_MAX_MS);
}

enum db_status db_run(struct db *db, const struct statement *statement, const char *const *values,
                      PGresult **ret_result)
{
    *ret_result = NULL;
    enum db_status status = prepare_to_send(db, statement, values, NULL, NULL, LIMIT_MAX_MS);
    if (status != DB_OK)
        return status;
    return exchange(db, reply_deadline(db), ret_result);
}

enum db_status db_run_once(struct db *db, const struct statement *statement, const char *const *values,
                           PGresult **ret_result)
{
    bool connected = db->pg != NULL;
    enum db_status status = db_run(db, statement, values, ret_result);
    if (status != DB_AWAY || !connected)
        return status;
    /* A statement that failed with a word from the server was not committed. COMMIT itself may fail with one after
     * it has taken effect, as when it then waits for a standby. */
    return db->turned_down && statement != &ST_COMMIT ? DB_AWAY : DB_UNKNOWN;
}

enum db_status db_ping(struct db *db)
{
    static const struct statement ST_PING = {"ping", "SELECT 1", 0};
    AUTO_RESULT result = NULL;
    return db_run(db, &ST_PING, NULL, &result);
}

void db_begin(struct db *db, enum db_isolation isolation)
{
    db->begin_due = true;
    db->isolation = isolation;
}

enum db_status db_commit(struct db *db)
{
    if (db->begin_due || !db->in_transaction) { /* nothing was sent, or the connection was lost before */
        db->begin_due = false;
        return db->pg ? DB_OK : DB_AWAY;
    }
    AUTO_RESULT result = NULL;
    enum db_status status = db_run_once(db, &ST_COMMIT, NULL, &result);
    /* COMMIT was not sent, or a statement that travelled with it failed: the transaction is still open. */
    if (status != DB_OK && db->pg && PQtransactionStatus(db->pg) != PQTRANS_IDLE)
        db_rollback(db);
    db->in_transaction = false;
    return status == DB_OK ? check_commit(db, result) : status;
}

/* Sends the batch, whose result is read later. */
static void send_later(struct db *db, db_end_fn *on_end, void *context)
{
    struct sent *sent = &db->sent[(db->first_sent + db->sent_count++) % SENT_MAX];
    *sent = (struct sent){.batch = db->batch,
                          .on_end = on_end,
                          .context = context,
                          .until_us = reply_deadline(db),
                          .last_us = last_wait(db)};
    db->batch.count = 0;
    db->round_trips += on_end != NULL;
    if (!PQpipelineSync(db->pg) || PQflush(db->pg) < 0)
        hang_up(db, PQerrorMessage(db->pg)); /* calls ON_END */
}

/* Sets the time limits apart from the statement that they are for: they would go back with it if it failed, and what is sent
 * behind it relies on them. */
static enum db_status send_limits(struct db *db)
{
    if (!db->pg)
        return DB_AWAY;
    if (!enqueue_limits(db, LOCK_LIMIT_SENT_MS))
        return hang_up(db, PQerrorMessage(db->pg));
    if (db->batch.count > 0)
        send_later(db, NULL, NULL);
    return db->pg ? DB_OK : DB_AWAY;
}

enum db_status db_end_later(struct db *db, const struct statement *statement, const char *const *values,
                            db_end_fn *on_end, void *context)
{
    if (!statement &&
        (db->begin_due || !db->in_transaction)) { /* nothing was sent, or the connection was lost before */
        db->begin_due = false;
        return db->pg ? DB_ERROR : DB_AWAY;
    }
    /* What is sent must not rely on a preparation that may fail. */
    bool awaits = statement && !has_prepared(db, statement);
    while (db->sent_count > (awaits || db->slow ? 0 : SENT_MAX - 2) && read_oldest(db))
        continue;
    if (db->behind_failure)
        db_finish(db);
    if (!db->pg)
        return DB_BEHIND_FAILURE;
    enum db_status status = statement ? send_limits(db) : DB_OK;
    if (status == DB_OK)
        status = prepare_to_send(db, statement ? statement : &ST_COMMIT, values, NULL, NULL,
                                 statement ? LOCK_LIMIT_SENT_MS : LIMIT_MAX_MS);
    if (status != DB_OK) {
        if (db->in_transaction)
            db_rollback(db);
        return status;
    }
    db->in_transaction = false;
    send_later(db, on_end, context);
    return DB_OK;
}

void db_finish(struct db *db)
{
    if (!read_sent(db) || !db->behind_failure)
        return;
    db->behind_failure = false;
    db->in_transaction = true;
    db_rollback(db);
}

void db_rollback(struct db *db)
{
    bool open = db->in_transaction;
    db->begin_due = db->in_transaction = false;
    db->lock_timeout_ms = db->statement_timeout_ms = 0;
    if (!open || !db->pg)
        return;
    char error[sizeof db->error], constraint[sizeof db->constraint];
    memcpy(error, db->error, sizeof error); /* what led here is worth more than what rolling back says */
    memcpy(constraint, db->constraint, sizeof constraint);
    AUTO_RESULT result = NULL;
    for (int i = 0; i < db->batch.count; i++)
        db->batch.commands[i].on_result = NULL; /* what was to travel with COMMIT is rolled back */
    if (!enqueue(db, &ST_ROLLBACK, NULL, NULL, NULL) ||
        exchange(db, monotonic_us() + ROLLBACK_US, &result) != DB_OK)
        disconnect(db);
    memcpy(db->error, error, sizeof error);
    memcpy(db->constraint, constraint, sizeof constraint);
}

enum db_status db_run_script(struct db *db, const char *sql)
{
    db_finish(db);
    if (!db->pg)
        return DB_AWAY;
    if (!PQexitPipelineMode(db->pg) || !PQsendQuery(db->pg, sql))
        return hang_up(db, PQerrorMessage(db->pg));
    enum db_status status = DB_OK;
    bool lost = false;
    PGresult *result;
    while ((result = next_result(db, db->deadline_us, &lost)) != NULL) {
        if (status == DB_OK && PQresultStatus(result) != PGRES_COMMAND_OK &&
            PQresultStatus(result) != PGRES_TUPLES_OK) {
            status = db_status_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));
            note_error(db, PQresultErrorMessage(result), NULL);
        }
        PQclear(result);
    }
    db->round_trips++;
    if (lost || !PQenterPipelineMode(db->pg)) {
        disconnect(db);
        return DB_AWAY;
    }
    return status;
}

const char *db_error(const struct db *db)
{
    return db->error;
}

const char *db_error_constraint(const struct db *db)
{
    return db->constraint;
}

uint64_t db_round_trips(const struct db *db)
{
    return db->round_trips;
}

const struct db_session *db_session(const struct db *db)
{
    return &db->session;
}
