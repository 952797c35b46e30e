/* Connecting, and exchanging a batch of statements for its results before a deadline. */
#include "db/postgres/connection.h"
#include "base/clock.h"

#include "db/postgres/statements.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATEMENTS_MAX = 96,        /* distinct statements that one connection ever prepares */
    PIPELINE_MAX = 8,           /* commands sent in one round trip */
    PAUSE_FIRST_US = 50 * 1000, /* after a failure to connect; doubled up to PAUSE_MAX_US */
    PAUSE_MAX_US = 500 * 1000,
    CONNECT_US = 3000 * 1000,  /* the longest that connecting may take */
    LIMIT_MAX_MS = 3600000,    /* an hour: a time limit that is never met */
    GRACE_US = 500 * 1000,     /* PostgreSQL ends a late statement itself; later than this we hang up */
    ROLLBACK_US = 1000 * 1000, /* rolling back is quick, and due even after the order's deadline */
};

struct command {
    const struct statement *statement;
    bool prepares; /* this command prepares the statement; otherwise it runs it */
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
    struct command batch[PIPELINE_MAX]; /* sent or queued, results not yet read */
    int batch_count;
    bool turned_down; /* the server answered the last batch with an error, before it broke the connection */

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

static void disconnect(struct db *db)
{
    PQfinish(db->pg);
    db->pg = NULL;
    db->prepared_count = db->batch_count = 0;
    db->begin_due = db->in_transaction = false;
    db->lock_timeout_ms = db->statement_timeout_ms = 0;
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
    if (db->pg && still_connected(db))
        return DB_OK;
    if (db->pg)
        hang_up(db, "the server closed the connection");
    if (monotonic_us() < db->next_try_us && atomic_load(&connections_made) == db->made_before)
        return DB_AWAY; /* db_error still tells why the last try failed */

    db->made_before = atomic_load(&connections_made);
    enum db_status status = try_connect(db);
    if (status == DB_OK) {
        atomic_fetch_add(&connections_made, 1);
        db->pause_us = 0;
        return DB_OK;
    }
    if (db->pg)
        disconnect(db);
    db->pause_us = db->pause_us ? db->pause_us * 2 : PAUSE_FIRST_US;
    if (db->pause_us > PAUSE_MAX_US)
        db->pause_us = PAUSE_MAX_US;
    db->next_try_us = monotonic_us() + db->pause_us / 2 + random() % (db->pause_us / 2); /* no stampede */
    return status == DB_REFUSED ? DB_REFUSED : DB_AWAY;
}

static bool is_prepared(const struct db *db, const struct statement *statement)
{
    for (int i = 0; i < db->prepared_count; i++)
        if (db->prepared[i] == statement)
            return true;
    for (int i = 0; i < db->batch_count; i++)
        if (db->batch[i].statement == statement && db->batch[i].prepares)
            return true;
    return false;
}

static bool enqueue(struct db *db, const struct statement *statement, const char *const *values)
{
    if (db->batch_count + 2 > PIPELINE_MAX || db->prepared_count + PIPELINE_MAX > STATEMENTS_MAX)
        return false;
    if (!is_prepared(db, statement)) {
        if (!PQsendPrepare(db->pg, statement->name, statement->sql, 0, NULL))
            return false;
        db->batch[db->batch_count++] = (struct command){statement, true};
    }
    if (!PQsendQueryPrepared(db->pg, statement->name, statement->parameters, values, NULL, NULL, 0))
        return false;
    db->batch[db->batch_count++] = (struct command){statement, false};
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

/* Queues what must go before a statement: BEGIN where due, and the session's time limits where they changed. */
static bool enqueue_preamble(struct db *db)
{
    if (db->begin_due && !enqueue(db, &ST_BEGIN[db->isolation], NULL))
        return false;
    int64_t now_us = monotonic_us();
    if (db->deadline_us == INT64_MAX)
        return true;
    long lock_ms = rounded_limit_ms(db->lock_deadline_us - now_us);
    long statement_ms = rounded_limit_ms(db->deadline_us - now_us);
    if (lock_ms == db->lock_timeout_ms && statement_ms == db->statement_timeout_ms)
        return true;
    char lock_text[24], statement_text[24];
    snprintf(lock_text, sizeof lock_text, "%ld", lock_ms);
    snprintf(statement_text, sizeof statement_text, "%ld", statement_ms);
    db->lock_timeout_ms = lock_ms;
    db->statement_timeout_ms = statement_ms;
    return enqueue(db, &ST_TIME_LIMITS, (const char *const[]){lock_text, statement_text});
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
        *ret_lost |= PQstatus(db->pg) != CONNECTION_OK || results == PIPELINE_MAX;
    }
    return status;
}

/* Sends the batch and reads all its results. The last command's is kept if every command succeeded. */
static enum db_status exchange(struct db *db, int64_t until_us, PGresult **ret_result)
{
    enum db_status status = DB_OK;
    bool lost = !PQpipelineSync(db->pg);
    db->round_trips++;
    db->turned_down = false;

    for (int i = 0; i < db->batch_count && !lost; i++) {
        PGresult *result = next_result(db, until_us, &lost);
        if (lost)
            break;
        ExecStatusType got = PQresultStatus(result);
        if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) {
            if (db->batch[i].prepares)
                db->prepared[db->prepared_count++] = db->batch[i].statement;
        } else if (status == DB_OK) {
            status = note_failure(db, result);
            db->turned_down = PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL;
        }
        if (i == db->batch_count - 1 && status == DB_OK)
            *ret_result = result;
        else
            PQclear(result);
        PQclear(next_result(db, until_us, &lost)); /* the NULL that ends a command's results */
    }
    status = finish_batch(db, until_us, status, &lost);
    db->batch_count = 0;

    if (lost || PQstatus(db->pg) != CONNECTION_OK || status == DB_AWAY) {
        PQclear(*ret_result);
        *ret_result = NULL;
        disconnect(db);
        return DB_AWAY;
    }
    if (status != DB_OK) {
        PQclear(*ret_result);
        *ret_result = NULL;
        db->lock_timeout_ms = db->statement_timeout_ms = 0; /* the limits went back with the transaction */
    }
    return status;
}

enum db_status db_run(struct db *db, const struct statement *statement, const char *const *values,
                      PGresult **ret_result)
{
    *ret_result = NULL;
    if (!db->pg)
        return DB_AWAY;
    if (monotonic_us() >= db->deadline_us) {
        note_error(db, "the deadline has passed", NULL);
        return DB_TIMEOUT; /* and nothing was sent */
    }
    if (!enqueue_preamble(db) || !enqueue(db, statement, values)) {
        hang_up(db, PQerrorMessage(db->pg));
        return DB_AWAY;
    }
    if (db->begin_due) {
        db->begin_due = false;
        db->in_transaction = true;
    }
    /* PostgreSQL ends the statement itself, at its own, rounded limit: we wait for that word. */
    int64_t until_us = INT64_MAX;
    if (db->deadline_us != INT64_MAX)
        until_us = monotonic_us() + (int64_t)db->statement_timeout_ms * 1000 + GRACE_US;
    return exchange(db, until_us, ret_result);
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
    if (status == DB_TIMEOUT) /* it was not sent: the transaction is still open */
        db_rollback(db);
    db->in_transaction = false;
    /* COMMIT of a failed transaction succeeds as ROLLBACK. */
    if (status == DB_OK && strcmp(PQcmdStatus(result), "COMMIT") != 0) {
        note_error(db, "the transaction had failed before its COMMIT", NULL);
        return DB_ERROR;
    }
    return status;
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
    if (!enqueue(db, &ST_ROLLBACK, NULL) || exchange(db, monotonic_us() + ROLLBACK_US, &result) != DB_OK)
        disconnect(db);
    memcpy(db->error, error, sizeof error);
    memcpy(db->constraint, constraint, sizeof constraint);
}

enum db_status db_run_script(struct db *db, const char *sql)
{
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
