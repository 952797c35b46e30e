/* Sessions of MariaDB and MySQL, with libmariadb's nonblocking calls. InnoDB's lock tables show which session waits for which. */
#include "loadtest/sqlspec/server/session.h"

#include <stdio.h>

#ifdef HAVE_MARIADB

#include <curl/curl.h>
#include <errmsg.h>
#include <inttypes.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_S = 10 };

/* What the session waits for. */
enum phase { PHASE_QUERY, PHASE_STORE, PHASE_NEXT };

struct mariadb_session {
    struct session session; /* the first member */
    MYSQL connection;
    bool is_open;
    enum phase phase;
    int wait;          /* MYSQL_WAIT_…, or-ed; 0: the call of the phase has ended */
    int failed;        /* what that call returned */
    MYSQL_RES *rows;   /* the same for PHASE_STORE */
    char *sql;         /* while PHASE_QUERY runs */
    char address[512]; /* for a second connection, which cancels */
};

static struct mariadb_session *of(const struct session *session)
{
    return (struct mariadb_session *)session;
}

/* ---- connecting ---------------------------------------------------------------------------------------- */

struct address {
    char *host, *port, *user, *password, *path;
};

static void free_address(struct address *address)
{
    curl_free(address->host);
    curl_free(address->port);
    curl_free(address->user);
    curl_free(address->password);
    curl_free(address->path);
}

/* Parts that are missing stay NULL. */
static bool parse_address(const char *url, struct address *ret_address)
{
    CURLU *parser = curl_url();
    *ret_address = (struct address){0};
    bool ok = parser && curl_url_set(parser, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
              curl_url_get(parser, CURLUPART_HOST, &ret_address->host, 0) == CURLUE_OK;
    if (ok) {
        (void)curl_url_get(parser, CURLUPART_PORT, &ret_address->port, 0);
        (void)curl_url_get(parser, CURLUPART_USER, &ret_address->user, CURLU_URLDECODE);
        (void)curl_url_get(parser, CURLUPART_PASSWORD, &ret_address->password, CURLU_URLDECODE);
        (void)curl_url_get(parser, CURLUPART_PATH, &ret_address->path, CURLU_URLDECODE);
    }
    curl_url_cleanup(parser);
    return ok;
}

static bool connect_to(MYSQL *connection, const char *url, char ret_error[SESSION_ERROR_SIZE])
{
    unsigned seconds = CONNECT_S;
    struct address address;
    bool ok = parse_address(url, &address);
    if (!ok) {
        (void)snprintf(ret_error, SESSION_ERROR_SIZE,
                       "the address is not valid (valid: mariadb://user:password@host:port/database)");
    } else {
        unsigned port = address.port ? (unsigned)strtoul(address.port, NULL, 10) : 0;
        const char *database = address.path && address.path[0] == '/' ? address.path + 1 : "";
        (void)mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
        (void)mysql_options(connection, MYSQL_OPT_NONBLOCK, NULL);
        (void)mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
        ok = mysql_real_connect(connection, address.host, address.user, address.password,
                                *database ? database : NULL, port, NULL,
                                CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_RESULTS) != NULL;
        if (!ok)
            (void)snprintf(ret_error, SESSION_ERROR_SIZE, "%s", mysql_error(connection));
    }
    free_address(&address);
    return ok;
}

static void my_close(struct session *session)
{
    if (!session)
        return;
    if (of(session)->is_open)
        mysql_close(&of(session)->connection);
    free(of(session)->sql);
    json_decref(session->results);
    free(session);
}

static struct session *my_open(const char *url, const char *label, char ret_error[SESSION_ERROR_SIZE])
{
    struct mariadb_session *session = calloc(1, sizeof *session);
    if (!session || !mysql_init(&session->connection)) {
        free(session);
        (void)snprintf(ret_error, SESSION_ERROR_SIZE, "out of memory");
        return NULL;
    }
    session->is_open = true;
    session->session = (struct session){.driver = &mariadb_driver, .results = json_array()};
    (void)snprintf(session->address, sizeof session->address, "%s", url);
    (void)mysql_options4(&session->connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", label);
    if (session->session.results && connect_to(&session->connection, url, ret_error)) {
        session->session.id = (int64_t)mysql_thread_id(&session->connection);
        return &session->session;
    }
    my_close(&session->session);
    return NULL;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static enum session_state lose(struct session *session, const char *why)
{
    (void)snprintf(session->error, sizeof session->error, "%s", why);
    return session->state = SESSION_LOST;
}

/* PostgreSQL's SQLSTATEs for the errors of concurrency, which this server gives others. */
static const char *code_of(MYSQL *connection)
{
    enum {
        ER_AUTOINC_READ_NUMBER = 1467,
        ER_CHECKREAD_NUMBER = 1020,
        ER_NOWAIT = 3572,
        ER_STATEMENT_TIMED_OUT = 1969
    };
    switch (mysql_errno(connection)) {
    case ER_AUTOINC_READ_NUMBER: /* the read of the counter met a deadlock */
    case ER_LOCK_DEADLOCK: return "40P01";
    case ER_CHECKREAD_NUMBER: return "40001";
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_NOWAIT: return "55P03";
    case ER_QUERY_INTERRUPTED:
    case ER_STATEMENT_TIMED_OUT: return "57014";
    default: return mysql_sqlstate(connection);
    }
}

/* The last call failed. */
static enum session_state take_error(struct session *session)
{
    MYSQL *connection = &of(session)->connection;
    unsigned number = mysql_errno(connection);
    if (number == CR_SERVER_GONE_ERROR || number == CR_SERVER_LOST || number == CR_MALFORMED_PACKET)
        return lose(session, mysql_error(connection));
    session_add(session, json_pack("{s:s, s:s, s:s, s:I}", "error", mysql_error(connection), "severity",
                                   "ERROR", "code", code_of(connection), "number", (json_int_t)number));
    if (session->state == SESSION_BUSY)
        session->state = SESSION_IDLE;
    return session->state;
}

static json_t *rows_of(MYSQL_RES *result)
{
    json_t *columns = json_array(), *rows = json_array();
    unsigned width = mysql_num_fields(result);
    const MYSQL_FIELD *fields = mysql_fetch_fields(result);
    bool ok = columns && rows;
    for (unsigned column = 0; ok && column < width; column++)
        ok = json_array_append_new(columns, json_string(fields[column].name)) == 0;
    for (MYSQL_ROW row; ok && (row = mysql_fetch_row(result));) {
        const unsigned long *lengths = mysql_fetch_lengths(result);
        json_t *cells = json_array();
        ok = cells && json_array_append_new(rows, cells) == 0;
        for (unsigned column = 0; ok && column < width; column++) {
            json_t *cell = row[column] ? json_stringn(row[column], lengths[column]) : json_null();
            ok = json_array_append_new(cells, cell ? cell : json_string("(not UTF-8)")) == 0;
        }
    }
    if (ok)
        return json_pack("{s:o, s:o}", "columns", columns, "rows", rows);
    json_decref(columns);
    json_decref(rows);
    return NULL;
}

/* What a statement that returns no rows has done. */
static json_t *command_of(MYSQL *connection)
{
    uint64_t changed = mysql_affected_rows(connection);
    return json_pack("{s:o}", "command",
                     json_sprintf("%" PRIu64 " row%s changed", changed, changed == 1 ? "" : "s"));
}

/* The rows of a statement, or that it has none. False: the session is idle or lost. */
static bool take_rows(struct session *session)
{
    struct mariadb_session *mariadb = of(session);
    MYSQL *connection = &mariadb->connection;
    MYSQL_RES *result = mariadb->rows;
    mariadb->rows = NULL;
    if (!result && mysql_errno(connection)) {
        (void)take_error(session);
        return false;
    }
    if (result && mysql_num_rows(result) * mysql_num_fields(result) > SESSION_CELLS_MAX)
        (void)lose(session, "a step returned more than 100,000 values. Select fewer");
    else
        session_add(session, result ? rows_of(result) : command_of(connection));
    mysql_free_result(result);
    if (session->state == SESSION_BUSY && !mysql_more_results(connection))
        session->state = SESSION_IDLE;
    return session->state == SESSION_BUSY;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static void begin_phase(struct mariadb_session *mariadb, enum phase phase)
{
    mariadb->phase = phase;
    switch (phase) {
    case PHASE_QUERY:
        mariadb->wait = mysql_real_query_start(&mariadb->failed, &mariadb->connection, mariadb->sql,
                                               strlen(mariadb->sql));
        break;
    case PHASE_STORE: mariadb->wait = mysql_store_result_start(&mariadb->rows, &mariadb->connection); break;
    case PHASE_NEXT: mariadb->wait = mysql_next_result_start(&mariadb->failed, &mariadb->connection); break;
    }
}

static void continue_phase(struct mariadb_session *mariadb, int happened)
{
    switch (mariadb->phase) {
    case PHASE_QUERY:
        mariadb->wait = mysql_real_query_cont(&mariadb->failed, &mariadb->connection, happened);
        break;
    case PHASE_STORE:
        mariadb->wait = mysql_store_result_cont(&mariadb->rows, &mariadb->connection, happened);
        break;
    case PHASE_NEXT:
        mariadb->wait = mysql_next_result_cont(&mariadb->failed, &mariadb->connection, happened);
        break;
    }
}

static bool my_start(struct session *session, const char *sql)
{
    struct mariadb_session *mariadb = of(session);
    json_decref(session->results);
    session->results = json_array();
    if (session->state == SESSION_LOST)
        return false;
    free(mariadb->sql);
    mariadb->sql = strdup(sql);
    if (!session->results || !mariadb->sql) {
        (void)lose(session, "out of memory");
        return false;
    }
    session->state = SESSION_BUSY;
    begin_phase(mariadb, PHASE_QUERY);
    return true;
}

static int my_fd(const struct session *session, short *ret_events)
{
    int wait = of(session)->wait;
    *ret_events = (short)((wait & MYSQL_WAIT_READ ? POLLIN : 0) | (wait & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                          (wait & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
    return (int)mysql_get_socket(&of(session)->connection);
}

/* MYSQL_WAIT_… bits of what has happened on the socket; 0: nothing. */
static int look_at_socket(const struct session *session)
{
    short events = 0;
    struct pollfd fd = {.fd = my_fd(session, &events), .events = 0};
    fd.events = events;
    if (poll(&fd, 1, 0) <= 0)
        return 0;
    int happened = (fd.revents & (POLLIN | POLLHUP | POLLERR) ? MYSQL_WAIT_READ : 0) |
                   (fd.revents & POLLOUT ? MYSQL_WAIT_WRITE : 0) |
                   (fd.revents & POLLPRI ? MYSQL_WAIT_EXCEPT : 0);
    return happened & of(session)->wait;
}

/* The call of the phase has ended. */
static void end_phase(struct session *session)
{
    struct mariadb_session *mariadb = of(session);
    switch (mariadb->phase) {
    case PHASE_QUERY:
    case PHASE_NEXT:
        if (mariadb->failed > 0)
            (void)take_error(session);
        else if (mariadb->failed < 0)
            session->state = SESSION_IDLE;
        else
            begin_phase(mariadb, PHASE_STORE);
        break;
    case PHASE_STORE:
        if (take_rows(session))
            begin_phase(mariadb, PHASE_NEXT);
        break;
    }
}

static enum session_state my_pump(struct session *session)
{
    struct mariadb_session *mariadb = of(session);
    while (session->state == SESSION_BUSY) {
        if (mariadb->wait) {
            int happened = look_at_socket(session);
            if (!happened)
                break;
            continue_phase(mariadb, happened);
        }
        if (!mariadb->wait)
            end_phase(session);
    }
    return session->state;
}

static enum transaction my_transaction(const struct session *session)
{
    unsigned status = 0;
    (void)mariadb_get_info(&of(session)->connection, MARIADB_CONNECTION_SERVER_STATUS, &status);
    return status & SERVER_STATUS_IN_TRANS ? TRANSACTION_OPEN : TRANSACTION_NONE;
}

static void my_cancel(struct session *session)
{
    char error[SESSION_ERROR_SIZE], sql[64];
    MYSQL *connection = mysql_init(NULL);
    (void)snprintf(sql, sizeof sql, "KILL QUERY %" PRId64, session->id);
    if (connection && connect_to(connection, of(session)->address, error))
        (void)mysql_real_query(connection, sql, strlen(sql));
    if (connection)
        mysql_close(connection);
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

/* Locks of rows are InnoDB's. Of the others, such as those of GET_LOCK and of whole tables, only the waiter is known. */
static void my_waits_sql(const int64_t *ids, size_t count, char *buffer, size_t size)
{
    char list[1024];
    size_t used = 0;
    list[0] = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRId64, i ? "," : "", ids[i]);
    (void)snprintf(
        buffer, size,
        "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id FROM information_schema.INNODB_LOCK_WAITS w"
        " JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id"
        " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id"
        " WHERE r.trx_mysql_thread_id IN (%s)"
        " UNION ALL SELECT id, NULL FROM information_schema.PROCESSLIST WHERE id IN (%s)"
        " AND (state LIKE 'Waiting for %%lock' OR state = 'User lock')",
        list, list);
}

/* The name of a lock of GET_LOCK is known only from the statement; of a table's lock also its holder is not. */
static void my_lock_sql(int64_t id, char *buffer, size_t size)
{
    (void)snprintf(
        buffer, size,
        "SELECT CONCAT('the lock of a row of ', l.lock_table), b.trx_mysql_thread_id"
        " FROM information_schema.INNODB_LOCK_WAITS w"
        " JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id"
        " JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id"
        " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id"
        " WHERE r.trx_mysql_thread_id = %" PRId64 " UNION ALL SELECT IF(state = 'User lock',"
        " COALESCE(CONCAT(NULLIF(REGEXP_SUBSTR(info, '(?i)GET_LOCK *[(] *\\'[^\\']*\\''), ''), ')'), 'a lock of GET_LOCK'),"
        " CONCAT('the lock of a table (', LEFT(info, 80), ')')),"
        " IS_USED_LOCK(REGEXP_REPLACE(REGEXP_SUBSTR(info, '(?i)GET_LOCK *[(] *\\'[^\\']*'), '^[^\\']*\\'', ''))"
        " FROM information_schema.PROCESSLIST WHERE id = %" PRId64
        " AND (state LIKE 'Waiting for %%lock' OR state = 'User lock') LIMIT 1",
        id, id);
}

static void my_terminate_sql(int64_t id, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "KILL %" PRId64, id);
}

static const char *const RELEASE[] = {"UNLOCK TABLES", "DO RELEASE_ALL_LOCKS()", NULL};

/* Each is sent alone; those that a server does not know do no harm. */
static const char *const RESET[] = {
    "DO RELEASE_ALL_LOCKS()",          "UNLOCK TABLES",
    "SET autocommit = DEFAULT",        "SET tx_isolation = DEFAULT",
    "SET sql_mode = DEFAULT",          "SET innodb_lock_wait_timeout = DEFAULT",
    "SET lock_wait_timeout = DEFAULT", NULL,
};

/* Columns whose value is another one in each run are left out; IS_COUNTER is a condition for those that count. */
#define TABLES_SQL(IS_COUNTER)                                                                                   \
    "SELECT CONCAT('SELECT ', QUOTE(c.table_name), ' AS tbl, JSON_ARRAY(', GROUP_CONCAT('`', c.column_name, '`'" \
    " ORDER BY c.ordinal_position), ') AS contents FROM `', c.table_name, '` ORDER BY 2 LIMIT 1001'),"           \
    " c.table_name, CONCAT('[', GROUP_CONCAT(JSON_QUOTE(c.column_name) ORDER BY c.ordinal_position), ']')"       \
    " FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"                                        \
    " ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE'"        \
    " WHERE c.table_schema = DATABASE() AND (c.extra NOT LIKE '%auto_increment%' OR " IS_COUNTER ")"             \
    " AND COALESCE(c.column_default, '') NOT REGEXP 'current_timestamp|uuid|rand|nextval|now'"                   \
    " GROUP BY c.table_name ORDER BY c.table_name LIMIT 65"

/* The counter of a table that was dropped and made again has another identity. SEQUENCE objects are not moved. */
static const char SEQUENCES_SQL[] =
    "SELECT t.table_name, CONCAT(t.table_name, '/', COALESCE(i.table_id, 0)), COALESCE(t.auto_increment, 1), 1,"
    " c.data_type IN ('int', 'bigint') AND @@auto_increment_increment = 1"
    " FROM information_schema.TABLES t JOIN information_schema.COLUMNS c ON c.table_schema = t.table_schema"
    " AND c.table_name = t.table_name AND c.extra LIKE '%auto_increment%'"
    " LEFT JOIN information_schema.INNODB_SYS_TABLES i ON i.name = CONCAT(t.table_schema, '/', t.table_name)"
    " WHERE t.table_schema = DATABASE()"
    " UNION ALL SELECT table_name, table_name, 0, 1, 0 FROM information_schema.TABLES"
    " WHERE table_schema = DATABASE() AND table_type = 'SEQUENCE' ORDER BY 1";

static void my_sequence_sql(const char *name, int64_t first, int64_t step, char *buffer, size_t size)
{
    (void)step;
    (void)snprintf(buffer, size, "ALTER TABLE `%.200s` AUTO_INCREMENT = %" PRId64, name, first);
}

const struct sql_driver mariadb_driver = {
    .server = "MariaDB",
    .open = my_open,
    .close = my_close,
    .start = my_start,
    .pump = my_pump,
    .socket = my_fd,
    .transaction = my_transaction,
    .cancel = my_cancel,
    .reset = RESET,
    .waits_sql = my_waits_sql,
    .lock_sql = my_lock_sql,
    .release = RELEASE,
    .terminate_sql = my_terminate_sql,
    .waits_pause_ms = 110, /* InnoDB: 100 ms after the last read */
    .ends_silently = true,
    .tables_sql = TABLES_SQL("FALSE"),
    .numbered_tables_sql = TABLES_SQL("t.auto_increment BETWEEN 1934610000 AND 1941100000"),
    .sequences_sql = SEQUENCES_SQL,
    .sequence_sql = my_sequence_sql,
};

#else

static struct session *no_mariadb(const char *url, const char *label, char ret_error[SESSION_ERROR_SIZE])
{
    (void)url;
    (void)label;
    (void)snprintf(ret_error, SESSION_ERROR_SIZE,
                   "this program was built without it. Install libmariadb-dev and build again");
    return NULL;
}

const struct sql_driver mariadb_driver = {.server = "MariaDB", .open = no_mariadb};

#endif
