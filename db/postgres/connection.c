/* Makes connections to PostgreSQL, and makes them again where they were lost. */
#include "db/postgres/connection_impl.h"

#include "base/clock.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAUSE_FIRST_US = 50 * 1000, /* after a failure to connect; doubled up to PAUSE_MAX_US */
    PAUSE_MAX_US = 500 * 1000,
    /* The longest that connecting may take, without setting up the session and resolving a name. */
    CONNECT_US = 3000 * 1000,
    HASTE_US = 500 * 1000, /* with less time than this, a server that answers may seem to be away */
};

/* All connections that this process has made. A connection that rests after a failure tries again at once when it sees that another
 * one succeeded: a caller that has just been served by one worker must not be refused by the next, which still rests. */
static atomic_uint connections_made;

/* A reset empties the tables, and a session keeps the plans that it made meanwhile, those of foreign keys too: ten thousand
 * orders later each one would read all the others. So indexes are used, however small a table seems; and nothing is compiled,
 * as it would be where there is no index, since that counts as very costly then. */
const struct statement ST_SESSION = {
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

void db_free(struct db *db)
{
    if (!db)
        return;
    db_disconnect(db, DB_UNKNOWN);
    free(db->url);
    free(db->application_name);
    free(db);
}

void db_set_deadline(struct db *db, int64_t deadline_us, int64_t lock_deadline_us)
{
    db->deadline_us = deadline_us;
    db->lock_deadline_us = lock_deadline_us < deadline_us ? lock_deadline_us : deadline_us;
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
        return db_hang_up(db, "out of memory");
    PQsetNoticeReceiver(db->pg, ignore_notice, NULL);
    PostgresPollingStatusType state = PQstatus(db->pg) == CONNECTION_BAD ? PGRES_POLLING_FAILED
                                                                         : PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED)
            return db_hang_up(db, PQerrorMessage(db->pg));
        if (!db_wait_socket(db, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
            return db_hang_up(db, "no answer while connecting");
        state = PQconnectPoll(db->pg);
    }
    if (PQsetnonblocking(db->pg, 1) != 0 || !PQenterPipelineMode(db->pg))
        return db_hang_up(db, PQerrorMessage(db->pg));

    AUTO_RESULT result = NULL;
    enum db_status status = db_run(db, &ST_SESSION, NULL, &result);
    if (status != DB_OK)
        return status;
    if (PQntuples(result) != 1)
        return db_hang_up(db, "the session is not in pg_stat_activity");
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
    if (db_awaits_results(db) ||
        (db->pg && still_connected(db))) /* an answer that is awaited is no farewell */
        return DB_OK;
    if (db->pg)
        db_hang_up(db, "the server closed the connection");
    if (monotonic_us() >= db->deadline_us) {
        db_note_error(db, "the deadline has passed", NULL);
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
        db_disconnect(db, DB_UNKNOWN);
    if (in_haste && monotonic_us() >= db->deadline_us) /* which says nothing about the server: no pause */
        return DB_AWAY;
    db->pause_us = db->pause_us ? db->pause_us * 2 : PAUSE_FIRST_US;
    if (db->pause_us > PAUSE_MAX_US)
        db->pause_us = PAUSE_MAX_US;
    db->next_try_us = monotonic_us() + db->pause_us / 2 + random() % (db->pause_us / 2); /* no stampede */
    return status == DB_REFUSED ? DB_REFUSED : DB_AWAY;
}

uint64_t db_round_trips(const struct db *db)
{
    return db->round_trips;
}

const struct db_session *db_session(const struct db *db)
{
    return &db->session;
}
