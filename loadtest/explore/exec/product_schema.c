/* Runs the SQL of the explorer's private schema: creates, resets, audits and drops it, and finds and ends blocked sessions. */
#include "loadtest/explore/exec/product_schema.h"
#include "base/clock.h"
#include "base/text.h"

#include "db/schema/migrate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { PATIENCE_US = 30 * 1000 * 1000, CONNECT_TRIES = 3, CONNECT_AGAIN_US = 500 * 1000, VACUUM_EVERY = 400 };

/* The data need not survive a crash of the database, so a COMMIT does not wait for the disk. */
#define OPTIONS "-c search_path=%s -c synchronous_commit=off"
/* Set where the role may, as a superuser or by GRANT SET ON PARAMETER: a session that waits looks for a deadlock after 1 ms,
 * once, so that the victim is the order that closes the cycle (see loadtest/explore/exec/execute_transition.c); and messages are in English. */
#define PRIVILEGED_OPTIONS " -c deadlock_timeout=1ms -c lc_messages=C"
/* Tries it, since no function of every supported version of PostgreSQL tells whether the role may. */
#define TRY_PRIVILEGED                                                                                       \
    "DO $$ BEGIN PERFORM set_config('explore.privileged', 'off', false), "                                   \
    "set_config('deadlock_timeout', '1ms', true), set_config('lc_messages', 'C', true), "                    \
    "set_config('explore.privileged', 'on', false); "                                                        \
    "EXCEPTION WHEN insufficient_privilege THEN NULL; END $$"

static const struct statement ST_AUDIT = {
    "explore_audit",
    "SELECT (SELECT units_left FROM product_stock WHERE product_id = $1), coalesce(sum(purchase_num), 0), count(*) "
    "FROM order_item",
    1};
/* Element I of the result: whom the session in element I of the question waits for. */
static const struct statement ST_WAITS = {
    "explore_waits",
    "SELECT s.at, w.at FROM unnest($1::int[]) WITH ORDINALITY AS s (pid, at), unnest(pg_blocking_pids(s.pid)) AS b (pid)"
    " JOIN unnest($1::int[]) WITH ORDINALITY AS w (pid, at) ON w.pid = b.pid WHERE s.pid <> 0",
    1};
/* Asked again and again, since pg_terminate_backend's own wait looks ten times a second only. */
static const struct statement ST_END_SESSION = {
    "explore_end_session", "SELECT pg_terminate_backend(pid) FROM pg_stat_get_activity($1::int)", 1};

static const struct statement ST_CANCEL = {"explore_cancel", "SELECT pg_cancel_backend($1::int)", 1};

/* The schemas of explorers that were killed: the connection that made one bears its name. */
#define DROP_LEFT_BEHIND                                                                                     \
    "DO $$ DECLARE left_behind text; BEGIN PERFORM set_config('lock_timeout', '1s', true); "                 \
    "FOR left_behind IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^explore_[0-9]+$' "                \
    "AND nspname NOT IN (SELECT application_name FROM pg_stat_activity WHERE application_name IS NOT NULL) " \
    "LOOP BEGIN EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', left_behind); "                           \
    "EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$"
static const struct statement ST_SESSION_FACTS = {
    "explore_session_facts",
    "SELECT current_setting('explore.privileged', true), current_schema(), "
    "(SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout')",
    0};

static void set_deadline(struct product_schema *schema)
{
    int64_t deadline_us = monotonic_us() + PATIENCE_US;
    db_set_deadline(schema->db, deadline_us, deadline_us);
}

static bool check(struct product_schema *schema, enum db_status status)
{
    if (status != DB_OK)
        snprintf(schema->error, sizeof schema->error, "%s", db_error(schema->db));
    return status == DB_OK;
}

enum db_status product_schema_connect(struct db *db)
{
    enum db_status status = db_ready(db);
    for (int tries = 1; status != DB_OK && tries < CONNECT_TRIES; tries++) {
        (void)usleep(CONNECT_AGAIN_US);
        status = db_ready(db);
    }
    return status;
}

static bool run_script(struct product_schema *schema, const char *sql)
{
    set_deadline(schema);
    enum db_status status = product_schema_connect(schema->db);
    return check(schema, status == DB_OK ? db_run_script(schema->db, sql) : status);
}

/* A number that no other explorer has, on this machine or on another that uses the same servers; 48 bits of chance. */
static int64_t make_id(void)
{
    int64_t id = 0;
    if (getrandom(&id, 6, 0) != 6)
        id = getpid();
    return id | 1;
}

/* Sets PGOPTIONS for all further connections of this process: the user's options, then ours. */
static bool set_options(const char *schema, bool privileged)
{
    static char *users; /* as they were before the first call */
    char *options = NULL;
    const char *now = getenv("PGOPTIONS");
    if (!users)
        users = strdup(now ? now : "");
    bool set = users &&
               asprintf(&options, "%s " OPTIONS "%s", users, schema, privileged ? PRIVILEGED_OPTIONS : "") >
                   0 &&
               setenv("PGOPTIONS", options, 1) == 0;
    free(options);
    return set;
}

/* Do our sessions see the new schema, and nothing else? Options in the connection string replace PGOPTIONS, and then the tables
 * would be those of the user. Sets what the connections of the orders are to have, which are opened later. */
static bool learn_session_facts(struct product_schema *schema)
{
    AUTO_RESULT row = NULL;
    if (!run_script(schema, TRY_PRIVILEGED))
        return false;
    set_deadline(schema);
    if (!check(schema, db_run(schema->db, &ST_SESSION_FACTS, NULL, &row)))
        return false;
    if (strcmp(PQgetvalue(row, 0, 1), schema->name) != 0)
        return text_fail(
            schema->error, sizeof schema->error,
            "the connection string sets a search_path, so explore would use your own tables; remove 'options' "
            "from it, or use PGOPTIONS instead");
    bool privileged = strcmp(PQgetvalue(row, 0, 0), "on") == 0;
    schema->deadlock_timeout_us = privileged ? 1000 : db_cell_number(row, 0, 2) * 1000;
    if (set_options(schema->name, privileged))
        return true;
    return text_fail(schema->error, sizeof schema->error, "out of memory");
}

bool product_schema_open(const char *url, struct product_schema *ret_schema)
{
    struct product_schema *schema = ret_schema;
    char sql[sizeof DROP_LEFT_BEHIND + 100];
    *schema = (struct product_schema){.product_id = make_id()};
    snprintf(schema->name, sizeof schema->name, "explore_%" PRId64, schema->product_id);
    snprintf(sql, sizeof sql, "%s; CREATE SCHEMA %s", DROP_LEFT_BEHIND, schema->name);
    schema->db = set_options(schema->name, false) ? db_new(url, schema->name) : NULL;
    if (!schema->db)
        return text_fail(schema->error, sizeof schema->error, "out of memory");
    if (run_script(schema, sql) && learn_session_facts(schema)) {
        set_deadline(schema);
        if (check(schema, db_migrate(schema->db)))
            return true;
    }
    product_schema_close(schema);
    return false;
}

void product_schema_close(struct product_schema *schema)
{
    char sql[80];
    if (!schema->db)
        return;
    snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", schema->name);
    if (!schema->lost)
        (void)run_script(schema, sql); /* an error was already reported */
    db_free(schema->db);
    schema->db = NULL;
}

/* Stock that is not in the product's own row. */
static bool fill(struct product_schema *schema, enum stock_kind kind, int64_t stock)
{
    set_deadline(schema);
    db_begin(schema->db, DB_READ_COMMITTED);
    if (check(schema, stock_fill(schema->db, schema->product_id, kind, stock)))
        return check(schema, db_commit(schema->db));
    db_rollback(schema->db);
    return false;
}

bool product_schema_reset(struct product_schema *schema, enum stock_kind kind, int64_t stock)
{
    char sql[700];
    /* Every schedule leaves dead rows behind, which would make the next ones slower and slower. */
    if (schema->resets++ % VACUUM_EVERY == 0 && !run_script(schema, "VACUUM product, orders, order_item"))
        return false;
    snprintf(
        sql, sizeof sql,
        "DELETE FROM order_item; DELETE FROM orders; "
        "INSERT INTO product (id, name, price, stock_kind, count, initial_count, created_by, updated_by) "
        "VALUES (%" PRId64 ", 'Explored', 1, '%s', %" PRId64 ", %" PRId64 ", 'explore', 'explore') "
        "ON CONFLICT (id) DO UPDATE SET count = excluded.count, initial_count = excluded.initial_count, version = 0,"
        " stock_kind = excluded.stock_kind, refuse_negative = false, fence_redis = 0, fence_zookeeper = 0, fence_etcd = 0",
        schema->product_id, stock_kinds[kind].name, kind == STOCK_COUNTER ? stock : 0, stock);
    return run_script(schema, sql) && (kind == STOCK_COUNTER || fill(schema, kind, stock));
}

bool product_schema_audit(struct product_schema *schema, struct product_audit *ret_audit)
{
    AUTO_RESULT row = NULL;
    set_deadline(schema);
    if (!check(schema,
               db_run(schema->db, &ST_AUDIT, (const char *const[]){DB_NUMBER(schema->product_id)}, &row)))
        return false;
    *ret_audit = (struct product_audit){
        .left = db_cell_number(row, 0, 0),
        .sold = db_cell_number(row, 0, 1),
        .orders = db_cell_number(row, 0, 2),
    };
    return true;
}

const char *product_schema_list_sessions(const char *const *pids, size_t count,
                                         char list[static SESSION_LIST])
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < SESSION_LIST; i++)
        used += (size_t)snprintf(list + used, SESSION_LIST - used, "%c%.12s", i ? ',' : '{',
                                 *pids[i] ? pids[i] : "0");
    snprintf(list + used, SESSION_LIST - used, used ? "}" : "{}");
    return list;
}

bool product_schema_blocked_sessions(struct product_schema *schema, const char *const *pids, size_t count,
                                     unsigned *ret_for)
{
    AUTO_RESULT rows = NULL;
    char list[SESSION_LIST];
    memset(ret_for, 0, count * sizeof *ret_for);
    set_deadline(schema);
    if (!check(schema, db_run(schema->db, &ST_WAITS,
                              (const char *const[]){product_schema_list_sessions(pids, count, list)}, &rows)))
        return false;
    for (int i = 0; i < PQntuples(rows); i++) {
        size_t who = strtoul(PQgetvalue(rows, i, 0), NULL, 10) - 1,
               whom = strtoul(PQgetvalue(rows, i, 1), NULL, 10) - 1;
        if (who < count && whom < count)
            ret_for[who] |= 1u << whom;
    }
    return true;
}

bool product_schema_cancel(struct product_schema *schema, const char *pid)
{
    AUTO_RESULT ignored = NULL;
    set_deadline(schema);
    return check(schema, db_run(schema->db, &ST_CANCEL, (const char *const[]){pid}, &ignored));
}

bool product_schema_end_session(struct product_schema *schema, const char *pid)
{
    int64_t until_us = monotonic_us() + PATIENCE_US;
    bool is_there = *pid;
    while (is_there) {
        AUTO_RESULT ended = NULL;
        set_deadline(schema);
        if (!check(schema, db_run(schema->db, &ST_END_SESSION, (const char *const[]){pid}, &ended)))
            return false;
        is_there = PQntuples(ended) > 0;
        if (is_there && monotonic_us() > until_us)
            return text_fail(schema->error, sizeof schema->error, "session %s does not end", pid);
        if (is_there)
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return true;
}
