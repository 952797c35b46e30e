/* Sessions of PostgreSQL, with libpq's nonblocking calls. The server's lock table shows which session waits for which. */
#include "loadtest/sqlspec/server/session.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct postgres_session {
    struct session session; /* the first member */
    PGconn *connection;
};

static struct postgres_session *of(const struct session *session)
{
    return (struct postgres_session *)session;
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

/* libpq's texts end with a line end, and may have more lines. */
static void copy_line(char *ret_text, size_t size, const char *text)
{
    (void)snprintf(ret_text, size, "%.*s", (int)strcspn(text, "\n"), text);
}

static void receive_notice(void *context, const PGresult *result)
{
    struct session *session = context;
    session->notices++;
    if (session->on_notice)
        session->on_notice(session->context, session, PQresultErrorMessage(result));
}

static void postgres_close(struct session *session)
{
    if (!session)
        return;
    PQfinish(of(session)->connection);
    json_decref(session->results);
    free(session);
}

static struct session *postgres_open(const char *url, const char *label, char ret_error[SESSION_ERROR_SIZE])
{
    static const char *const NAMES[] = {"dbname", "application_name", "connect_timeout", "client_encoding",
                                        NULL};
    const char *const values[] = {url, label, "10", "UTF8", NULL};
    struct postgres_session *session = calloc(1, sizeof *session);
    if (session) {
        session->session = (struct session){.driver = &postgres_driver, .results = json_array()};
        session->connection = PQconnectdbParams(NAMES, values, 1);
    }
    if (!session || !session->connection || !session->session.results) {
        (void)snprintf(ret_error, SESSION_ERROR_SIZE, "out of memory");
    } else if (PQstatus(session->connection) != CONNECTION_OK ||
               PQsetnonblocking(session->connection, 1) != 0) {
        copy_line(ret_error, SESSION_ERROR_SIZE, PQerrorMessage(session->connection));
    } else {
        (void)PQsetNoticeReceiver(session->connection, receive_notice, &session->session);
        session->session.id = PQbackendPID(session->connection);
        return &session->session;
    }
    if (session)
        postgres_close(&session->session);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static enum session_state lose(struct session *session, const char *why)
{
    copy_line(session->error, sizeof session->error, why);
    return session->state = SESSION_LOST;
}

static bool postgres_start(struct session *session, const char *sql)
{
    PGconn *connection = of(session)->connection;
    json_decref(session->results);
    session->results = json_array();
    if (session->state == SESSION_LOST)
        return false;
    if (!session->results || !PQsendQuery(connection, sql)) {
        (void)lose(session, session->results ? PQerrorMessage(connection) : "out of memory");
        return false;
    }
    session->state = SESSION_BUSY;
    return true;
}

static json_t *rows_of(const PGresult *result)
{
    json_t *columns = json_array(), *rows = json_array();
    int width = PQnfields(result), height = PQntuples(result);
    bool ok = columns && rows;
    for (int column = 0; ok && column < width; column++)
        ok = json_array_append_new(columns, json_string(PQfname(result, column))) == 0;
    for (int row = 0; ok && row < height; row++) {
        json_t *cells = json_array();
        ok = cells && json_array_append_new(rows, cells) == 0;
        for (int column = 0; ok && column < width; column++)
            ok = json_array_append_new(cells, PQgetisnull(result, row, column)
                                                  ? json_null()
                                                  : json_string(PQgetvalue(result, row, column))) == 0;
    }
    if (ok)
        return json_pack("{s:o, s:o}", "columns", columns, "rows", rows);
    json_decref(columns);
    json_decref(rows);
    return NULL;
}

static json_t *error_of(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY),
               *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY),
               *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    /* An error of libpq itself has no fields. */
    bool whole = severity && message;
    return json_pack("{s:s, s:s, s:s}", "error", whole ? message : PQresultErrorMessage(result), "severity",
                     whole ? severity : "", "code", code ? code : "");
}

static void add_result(struct session *session, const PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        if ((int64_t)PQntuples(result) * PQnfields(result) > SESSION_CELLS_MAX)
            (void)lose(session, "a step returned more than 100,000 values. Select fewer");
        else
            session_add(session, rows_of(result));
        break;
    case PGRES_COMMAND_OK:
        session_add(session, json_pack("{s:s}", "command", PQcmdStatus((PGresult *)result)));
        break;
    case PGRES_EMPTY_QUERY: break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        (void)lose(session, "COPY from or to the client is not supported. Use INSERT or SELECT");
        break;
    default: session_add(session, error_of(result));
    }
}

static void add_notifications(struct session *session)
{
    PGnotify *notification;
    (void)PQconsumeInput(of(session)->connection);
    while (session->state != SESSION_LOST && (notification = PQnotifies(of(session)->connection))) {
        session_add(session, json_pack("{s:s, s:s, s:i}", "notification", notification->relname, "payload",
                                       notification->extra, "from", notification->be_pid));
        PQfreemem(notification);
    }
}

/* The connection is gone: takes what the server said last, and what libpq says of it behind the SAID bytes that are known. */
static enum session_state take_last_words(struct session *session, size_t said)
{
    PGconn *connection = of(session)->connection;
    const char *message = PQerrorMessage(connection);
    char *why = strdup(strlen(message) > said ? message + said
                                              : message); /* libpq's next call would add to it */
    while (!PQisBusy(connection)) {
        PGresult *result = PQgetResult(connection);
        if (result && !results_error(session->results) && PQresultErrorField(result, PG_DIAG_SEVERITY))
            session_add(session, error_of(result));
        PQclear(result);
        if (!result)
            break;
    }
    session_add(session, json_pack("{s:s, s:s, s:s}", "error", why ? why : "out of memory", "severity", "",
                                   "code", ""));
    (void)lose(session, why ? why : "out of memory");
    free(why);
    return session->state;
}

static enum session_state postgres_pump(struct session *session)
{
    PGconn *connection = of(session)->connection;
    if (session->state != SESSION_BUSY)
        return session->state;
    size_t said = strlen(PQerrorMessage(connection));
    if (!PQconsumeInput(connection) || PQflush(connection) < 0)
        return take_last_words(session, said);
    while (session->state == SESSION_BUSY && !PQisBusy(connection)) {
        PGresult *result = PQgetResult(connection);
        if (!result) {
            session->state = SESSION_IDLE;
            if (PQstatus(connection) == CONNECTION_OK)
                add_notifications(session);
            break;
        }
        add_result(session, result);
        PQclear(result);
    }
    if (session->state == SESSION_IDLE && PQstatus(connection) != CONNECTION_OK)
        return lose(session, PQerrorMessage(connection));
    return session->state;
}

static int postgres_socket(const struct session *session, short *ret_events)
{
    PGconn *connection = of(session)->connection;
    int fd = PQsocket(connection);
    *ret_events = (short)(POLLIN | (fd >= 0 && PQflush(connection) == 1 ? POLLOUT : 0));
    return fd;
}

static enum transaction postgres_transaction(const struct session *session)
{
    switch (PQtransactionStatus(of(session)->connection)) {
    case PQTRANS_INTRANS: return TRANSACTION_OPEN;
    case PQTRANS_INERROR: return TRANSACTION_FAILED;
    default: return TRANSACTION_NONE;
    }
}

static void postgres_cancel(struct session *session)
{
    char error[256];
    PGcancel *cancel = PQgetCancel(of(session)->connection);
    if (cancel)
        (void)PQcancel(cancel, error, sizeof error);
    PQfreeCancel(cancel);
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static void write_ids(const int64_t *ids, size_t count, char *ret_list, size_t size)
{
    size_t used = 0;
    ret_list[0] = 0;
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(ret_list + used, size - used, "%s%" PRId64, i ? "," : "", ids[i]);
}

/* The function is the isolation tester's: it also knows parallel workers, and the waits of SERIALIZABLE READ ONLY DEFERRABLE. */
static void postgres_waits_sql(const int64_t *ids, size_t count, char *buffer, size_t size)
{
    char list[1024];
    write_ids(ids, count, list, sizeof list);
    (void)snprintf(
        buffer, size,
        "SELECT pid, holder FROM unnest('{%s}'::int[]) AS pid LEFT JOIN LATERAL unnest("
        "pg_catalog.pg_blocking_pids(pid) || pg_catalog.pg_safe_snapshot_blocking_pids(pid)) AS holder"
        " ON holder = ANY ('{%s}'::int[])"
        " WHERE pg_catalog.pg_isolation_test_session_is_blocked(pid, '{%s}'::int[])",
        list, list, list);
}

/* A session that waits for a row waits for the end of a transaction, and holds the lock of the row's place meanwhile. */
static void postgres_lock_sql(int64_t id, char *buffer, size_t size)
{
    (void)snprintf(
        buffer, size,
        "SELECT CASE l.locktype"
        " WHEN 'advisory' THEN CASE l.objsubid"
        " WHEN 1 THEN format('advisory lock %%s', l.classid::bigint << 32 | l.objid::bigint)"
        " ELSE format('advisory lock (%%s, %%s)', l.classid::bigint::bit(32)::int, l.objid::bigint::bit(32)::int) END"
        " WHEN 'relation' THEN format('the lock of table %%s', l.relation::regclass)"
        " WHEN 'tuple' THEN format('the lock of a row of %%s', l.relation::regclass)"
        " WHEN 'transactionid' THEN COALESCE((SELECT format('the lock of a row of %%s', t.relation::regclass)"
        " FROM pg_catalog.pg_locks t WHERE t.pid = l.pid AND t.locktype = 'tuple' LIMIT 1), 'the end of a transaction')"
        " ELSE format('a lock (%%s)', l.locktype) END,"
        " (pg_catalog.pg_blocking_pids(l.pid))[1]"
        " FROM pg_catalog.pg_locks l WHERE l.pid = %" PRId64 " AND NOT l.granted LIMIT 1",
        id);
}

static void postgres_terminate_sql(int64_t id, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "SELECT pg_catalog.pg_terminate_backend(%" PRId64 ", 5000)", id);
}

/* The locks that outlive a transaction are advisory ones; no other statement waits for them. */
static const char *const RELEASE[] = {NULL};

/* DISCARD ALL cannot be sent together with other statements. Where the role may set it, a session that
 * waits looks for a deadlock after 100 ms: soon, but late enough for the first one that waits to be the first one that looks. */
static const char *const RESET[] = {"DISCARD ALL", "SET deadlock_timeout = '100ms'", NULL};

/* OID is of something in schema n, which is a current one, or the setup has made it. */
#define IS_COMPARED(OID)                                                                                     \
    "(n.nspname = ANY (current_schemas(false)) OR n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'" \
    " AND " OID "::bigint > NULLIF(current_setting('oversell.newest', true), '')::bigint)"

static const char BEFORE_SETUP_SQL[] =
    "SELECT set_config('oversell.newest', max(oid::bigint)::text, false) FROM pg_class";

/* Columns whose default is another value in each run are left out: a time or a random value, and SEQUENCES, a condition for numbers of a
 * sequence. */
#define TABLES_SQL(SEQUENCES)                                                                                                 \
    "SELECT format('SELECT %L AS \"table\", t::text FROM (SELECT %s FROM %I.%I) t ORDER BY 2 LIMIT 1001',"                    \
    " n.called, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum), n.nspname, c.relname),"                           \
    " n.called, json_agg(a.attname ORDER BY a.attnum)::text"                                                                  \
    " FROM pg_class c JOIN LATERAL (SELECT nspname, CASE WHEN nspname = ANY (current_schemas(false)) THEN c.relname::text"    \
    " ELSE nspname || '.' || c.relname END AS called FROM pg_namespace WHERE oid = c.relnamespace) n ON true"                 \
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"                                      \
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"                                                     \
    " WHERE c.relkind = 'r' AND " IS_COMPARED(                                                                                \
        "c.oid") " AND has_table_privilege(c.oid, 'SELECT')"                                                                  \
                 " AND (" SEQUENCES " OR a.attidentity = '' AND (d.oid IS NULL OR a.attgenerated <> ''"                       \
                 " OR pg_get_expr(d.adbin, d.adrelid) !~*"                                                                    \
                 " '(nextval|now|random|gen_random_uuid|clock_timestamp|statement_timestamp|uuid_generate\\w*|timeofday)\\('" \
                 " AND pg_get_expr(d.adbin, d.adrelid) !~ 'CURRENT_(TIME|DATE)|LOCALTIME'))"                                  \
                 " GROUP BY n.nspname, n.called, c.relname ORDER BY n.nspname, c.relname LIMIT 65"

/* A default depends on the sequence that it uses, and the sequence of an identity column on the column. */
#define IS_NUMBERED                                                                                          \
    "EXISTS (SELECT FROM pg_depend p JOIN pg_sequence q ON q.seqrelid = CASE"                                \
    " WHEN p.classid = 'pg_attrdef'::regclass THEN p.refobjid ELSE p.objid END"                              \
    " WHERE (p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass" \
    " OR p.classid = 'pg_class'::regclass AND p.deptype = 'i' AND p.refclassid = 'pg_class'::regclass"       \
    " AND p.refobjid = c.oid AND p.refobjsubid = a.attnum)"                                                  \
    " AND pg_sequence_last_value(q.seqrelid) BETWEEN 1934610000 AND 1941100000)"

/* The last rows are defaults of which the sequence is not known. */
static const char SEQUENCES_SQL[] =
    "SELECT s.oid::regclass, s.oid, COALESCE(pg_sequence_last_value(s.oid) + q.seqincrement, q.seqstart), q.seqincrement,"
    " (q.seqincrement BETWEEN 1 AND 100 AND q.seqmin < 1934610000 AND q.seqmax > 1941100000 AND s.relname !~ '''')::int"
    " FROM pg_class s JOIN pg_sequence q ON q.seqrelid = s.oid JOIN pg_namespace n ON n.oid = s.relnamespace"
    " WHERE " IS_COMPARED(
        "s.oid") " UNION ALL SELECT d.adrelid::regclass, d.oid, 0, 1, 0 FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid"
                 " JOIN pg_namespace n ON n.oid = c.relnamespace AND " IS_COMPARED(
                     "c.oid") " WHERE pg_get_expr(d.adbin, d.adrelid) ~* 'nextval' AND NOT EXISTS (SELECT FROM pg_depend p JOIN pg_sequence q"
                              " ON q.seqrelid = p.refobjid WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid) ORDER BY 1";

static void postgres_sequence_sql(const char *name, int64_t first, int64_t step, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "SELECT setval('%.200s', %" PRId64 ")", name, first - step);
}

static void postgres_reverse_sql(const char *name, int64_t first, int64_t step, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "ALTER SEQUENCE %.200s INCREMENT BY %" PRId64 " RESTART WITH %" PRId64, name,
                   step, first);
}

const struct sql_driver postgres_driver = {
    .server = "PostgreSQL",
    .open = postgres_open,
    .close = postgres_close,
    .start = postgres_start,
    .pump = postgres_pump,
    .socket = postgres_socket,
    .transaction = postgres_transaction,
    .cancel = postgres_cancel,
    .reset = RESET,
    .waits_sql = postgres_waits_sql,
    .before_setup_sql = BEFORE_SETUP_SQL,
    .lock_sql = postgres_lock_sql,
    .release = RELEASE,
    .terminate_sql = postgres_terminate_sql,
    .tables_sql = TABLES_SQL("false"),
    .numbered_tables_sql = TABLES_SQL(IS_NUMBERED),
    .sequences_sql = SEQUENCES_SQL,
    .sequence_sql = postgres_sequence_sql,
    .reverse_sql = postgres_reverse_sql,
};
