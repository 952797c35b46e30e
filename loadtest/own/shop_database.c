/* Runs the SQL of a description: it resets the stock, and reads the units in stock and the units sold. */
#include "loadtest/own/shop_database.h"

#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/own/shop_schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 10000, SETTLE_POLL_MS = 50, ROW_LOCK_MS = 300 };

/* Of the questions. */
enum { STOCK, SOLD, SETTLED, EXPIRES, FIRST_INVARIANT };

/* SQL that a file has, as what the connection takes: it recognizes a statement by its address. */
struct question {
    struct statement statement;
    char name[32], *sql, member[32];
};

struct shop_database {
    const struct shop_description *description;
    struct db *db;
    struct shop_values values; /* {stock} */
    struct question questions[FIRST_INVARIANT + SHOP_SQL_MAX];
};

static void wait_from_now(struct db *db)
{
    int64_t until_us = monotonic_us() + (int64_t)WAIT_MS * 1000;
    db_set_deadline(db, until_us, until_us);
}

/* ---- opening and closing ---------------------------------------------------------------------------------- */

static bool make_question(struct shop_database *database, size_t i, const char *sql)
{
    static const char *const MEMBERS[FIRST_INVARIANT] = {"stock", "sold", "settled", "expires"};
    struct question *question = &database->questions[i];
    snprintf(question->name, sizeof question->name, "own_%zu", i);
    if (i < FIRST_INVARIANT)
        snprintf(question->member, sizeof question->member, "%s", MEMBERS[i]);
    else
        snprintf(question->member, sizeof question->member, "invariant[%zu]", i - FIRST_INVARIANT);
    question->sql = shop_expand(sql, &database->values);
    question->statement = (struct statement){.name = question->name, .sql = question->sql};
    return question->sql != NULL;
}

static bool make_expires(struct shop_database *database, const char *sql)
{
    char *counts = NULL;
    bool ok = asprintf(&counts, "WITH ended AS (%s RETURNING 1) SELECT count(*) FROM ended", sql) >= 0 &&
              make_question(database, EXPIRES, counts);
    free(counts);
    return ok;
}

static bool make_questions(struct shop_database *database)
{
    const struct shop_description *description = database->description;
    bool ok = make_question(database, STOCK, description->stock) &&
              make_question(database, SOLD, description->sold) &&
              (!description->settled || make_question(database, SETTLED, description->settled)) &&
              (!description->expires || make_expires(database, description->expires));
    for (size_t i = 0; ok && i < description->invariant_count; i++)
        ok = make_question(database, FIRST_INVARIANT + i, description->invariants[i]);
    return ok;
}

static bool connect_to(struct shop_database *database)
{
    wait_from_now(database->db);
    if (db_ready(database->db) == DB_OK)
        return true;
    if (database->description->database)
        shop_complain(database->description, "database",
                      "cannot be used: %s. Start PostgreSQL, or correct the address", db_error(database->db));
    else
        complain("the private PostgreSQL does not answer: %s", db_error(database->db));
    return false;
}

struct shop_database *shop_database_open(const char *address, const struct shop_description *description,
                                         int64_t stock)
{
    struct shop_database *database = calloc(1, sizeof *database);
    if (database) {
        database->description = description;
        database->values = (struct shop_values)SHOP_NO_VALUES;
        database->values.stock = stock;
        database->db = db_new(address, "loadtest");
    }
    if (!database || !database->db || !make_questions(database))
        complain("out of memory");
    else if (connect_to(database))
        return database;
    shop_database_close(database);
    return NULL;
}

void shop_database_close(struct shop_database *database)
{
    if (!database)
        return;
    db_free(database->db);
    for (size_t i = 0; i < sizeof database->questions / sizeof database->questions[0]; i++)
        free(database->questions[i].sql);
    free(database);
}

bool shop_database_left(struct shop_database *database, struct shop_left *ret_left)
{
    /* A transaction that writes or locks rows has a number, and a lock of that number. */
    static const struct statement ST_LEFT = {
        "own_left",
        "SELECT count(*) FILTER (WHERE advisory), coalesce(bool_or(NOT advisory), false)::int,"
        " coalesce((array_agg(pid ORDER BY advisory, query_start DESC))[1], 0),"
        " coalesce((array_agg(query ORDER BY advisory, query_start DESC))[1], '')"
        " FROM (SELECT *, locktype = 'advisory' AS advisory FROM pg_stat_activity JOIN pg_locks USING (pid)"
        " WHERE datname = current_database() AND granted"
        " AND (locktype = 'advisory' AND state = 'idle' OR locktype = 'transactionid' AND state LIKE 'idle in transaction%')) AS held",
        0};
    AUTO_RESULT rows = NULL;
    *ret_left = (struct shop_left){0};
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK || db_run(database->db, &ST_LEFT, NULL, &rows) != DB_OK ||
        PQntuples(rows) != 1)
        return false;
    ret_left->advisory = db_cell_number(rows, 0, 0);
    ret_left->transaction = db_cell_number(rows, 0, 1) != 0;
    ret_left->pid = (int32_t)db_cell_number(rows, 0, 2);
    snprintf(ret_left->statement, sizeof ret_left->statement, "%s", PQgetvalue(rows, 0, 3));
    return true;
}

void shop_say_open(const char *statement)
{
    complain(
        "a request sends nothing more, but its transaction is open and keeps its locks; '%.150s' ran last in it. End each transaction on every path, before "
        "the answer. A request that keeps its connection and takes a second one from a pool can wait forever",
        statement);
}

void shop_database_say_open(struct shop_database *database)
{
    struct shop_left left;
    if (shop_database_left(database, &left) && left.transaction)
        shop_say_open(left.statement);
}

/* The SQL of MEMBER failed: a fault of it, or of a session that holds a lock. */
static void say_failed(struct shop_database *database, const char *member)
{
    char error[300];
    struct shop_left left;
    snprintf(error, sizeof error, "%s", db_error(database->db));
    const bool waits = shop_database_left(database, &left) && left.transaction;
    shop_complain(database->description, member, waits ? "fails: %s" : "fails: %s. Correct the SQL", error);
    if (waits)
        shop_say_open(left.statement);
}

/* ---- scripts ------------------------------------------------------------------------------------------- */

bool shop_database_load(struct shop_database *database)
{
    return shop_schema_load(database->db, database->description);
}

bool shop_database_reset(struct shop_database *database)
{
    const struct shop_description *description = database->description;
    bool ok = true;
    for (size_t i = 0; ok && i < description->reset_count; i++) {
        char *sql = shop_expand(description->reset[i], &database->values), member[32];
        snprintf(member, sizeof member, "reset[%zu]", i);
        wait_from_now(database->db);
        ok = sql && db_run_script(database->db, sql) == DB_OK;
        if (!sql)
            complain("out of memory");
        else if (!ok)
            say_failed(database, member);
        free(sql);
    }
    return ok;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

/* "12", "-3" or "12.00", which is what a sum of numeric may give. */
static bool read_count(const char *text, int64_t *ret_count)
{
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    if (errno || end == text || end[*end == '.' ? 1 + strspn(end + 1, "0") : 0])
        return false;
    *ret_count = count;
    return true;
}

/* Asks, and returns the only value; NULL, having said why. */
static const char *ask(struct shop_database *database, const struct question *question, PGresult **ret_rows)
{
    const struct shop_description *description = database->description;
    struct db *db = database->db;
    wait_from_now(db);
    if (db_run(db, &question->statement, NULL, ret_rows) != DB_OK) {
        say_failed(database, question->member);
        return NULL;
    }
    int rows = PQntuples(*ret_rows), columns = PQnfields(*ret_rows);
    if (rows == 1 && columns == 1 && !PQgetisnull(*ret_rows, 0, 0))
        return PQgetvalue(*ret_rows, 0, 0);
    if (rows == 1 && columns == 1)
        shop_complain(description, question->member,
                      "gives NULL. Write coalesce(…, 0), or correct the condition");
    else
        shop_complain(description, question->member,
                      "gives %d rows of %d columns. Write SQL that gives one value", rows, columns);
    return NULL;
}

static bool ask_count(struct shop_database *database, const struct question *question, int64_t *ret_count)
{
    AUTO_RESULT rows = NULL;
    const char *value = ask(database, question, &rows);
    if (value && !read_count(value, ret_count)) {
        shop_complain(database->description, question->member,
                      "gives '%.60s', which is not a whole number. Correct the SQL", value);
        return false;
    }
    return value != NULL;
}

static bool ask_truth(struct shop_database *database, const struct question *question, bool *ret_truth)
{
    AUTO_RESULT rows = NULL;
    const char *value = ask(database, question, &rows);
    if (value && strcmp(value, "t") != 0 && strcmp(value, "f") != 0) {
        shop_complain(database->description, question->member,
                      "gives '%.60s', which is neither true nor false. Correct the SQL", value);
        return false;
    }
    *ret_truth = value && *value == 't';
    return value != NULL;
}

bool shop_database_read(struct shop_database *database, struct shop_stock *ret_stock)
{
    *ret_stock = (struct shop_stock){.broken = -1};
    db_begin(database->db, DB_REPEATABLE_READ);
    bool ok = ask_count(database, &database->questions[STOCK], &ret_stock->left) &&
              ask_count(database, &database->questions[SOLD], &ret_stock->sold);
    for (size_t i = 0; ok && i < database->description->invariant_count; i++) {
        bool is_true = false;
        ok = ask_truth(database, &database->questions[FIRST_INVARIANT + i], &is_true);
        if (ok && !is_true && ret_stock->broken < 0)
            ret_stock->broken = (int)i;
    }
    db_rollback(database->db);
    return ok;
}

bool shop_database_expire(struct shop_database *database, int64_t *ret_rows)
{
    const struct question *question = &database->questions[EXPIRES];
    const int64_t now_us = monotonic_us();
    AUTO_RESULT rows = NULL;
    db_set_deadline(database->db, now_us + (int64_t)WAIT_MS * 1000, now_us + (int64_t)ROW_LOCK_MS * 1000);
    enum db_status status = db_run(database->db, &question->statement, NULL, &rows);
    *ret_rows = status == DB_OK ? db_cell_number(rows, 0, 0) : -1;
    if (status == DB_OK || status == DB_LOCK_TIMEOUT)
        return true;
    say_failed(database, "expires");
    return false;
}

bool shop_database_settle(struct shop_database *database)
{
    const struct shop_description *description = database->description;
    int64_t until_us = monotonic_us() + description->settle_timeout_ms * 1000;
    bool is_settled = !description->settled;
    while (!is_settled) {
        if (!ask_truth(database, &database->questions[SETTLED], &is_settled))
            return false;
        if (!is_settled && monotonic_us() > until_us) {
            shop_complain(
                description, "settled",
                "is not true %" PRId64
                " ms after the last answer (settle_timeout_ms), so the sales cannot be counted. Correct the "
                "SQL, or raise the limit",
                description->settle_timeout_ms);
            return false;
        }
        if (!is_settled && !sleep_unless_interrupted(SETTLE_POLL_MS))
            return false;
    }
    return true;
}

bool shop_database_blockers(struct shop_database *database, int32_t pid,
                            int32_t ret_pids[static SHOP_BLOCKERS_MAX], size_t *ret_count)
{
    static const struct statement ST_BLOCKERS = {"own_blockers", "SELECT unnest(pg_blocking_pids($1::int))",
                                                 1};
    AUTO_RESULT rows = NULL;
    *ret_count = 0;
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK ||
        db_run(database->db, &ST_BLOCKERS, (const char *const[]){DB_NUMBER(pid)}, &rows) != DB_OK) {
        complain("cannot ask PostgreSQL which statements wait: %s", db_error(database->db));
        return false;
    }
    for (int row = 0; row < PQntuples(rows) && *ret_count < SHOP_BLOCKERS_MAX; row++)
        ret_pids[(*ret_count)++] = (int32_t)db_cell_number(rows, row, 0);
    return true;
}

bool shop_database_has_session(struct shop_database *database, int32_t pid, bool *ret_has)
{
    static const struct statement ST_SESSION = {"own_session",
                                                "SELECT 1 FROM pg_stat_activity WHERE pid = $1::int", 1};
    AUTO_RESULT rows = NULL;
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK ||
        db_run(database->db, &ST_SESSION, (const char *const[]){DB_NUMBER(pid)}, &rows) != DB_OK) {
        complain("cannot ask PostgreSQL for its sessions: %s", db_error(database->db));
        return false;
    }
    *ret_has = PQntuples(rows) > 0;
    return true;
}

/* ---- what runs inside a statement ------------------------------------------------------------------------ */

bool shop_database_routines(struct shop_database *database, struct routines *ret_routines)
{
    static const struct statement ST_ROUTINES = {"own_routines", ROUTINES_SQL, 0};
    AUTO_RESULT rows = NULL;
    *ret_routines = (struct routines){0};
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK || db_run(database->db, &ST_ROUTINES, NULL, &rows) != DB_OK) {
        complain("cannot ask PostgreSQL for the functions and triggers: %s", db_error(database->db));
        return false;
    }
    bool ok = true;
    for (int row = 0; row < PQntuples(rows) && ok; row++)
        ok = routines_add(ret_routines, PQgetvalue(rows, row, 0), PQgetvalue(rows, row, 1),
                          PQgetvalue(rows, row, 2));
    if (!ok)
        complain("out of memory");
    return ok;
}

bool shop_database_tables(struct shop_database *database, struct known_tables *ret_tables)
{
    static const struct statement ST_TABLES = {"own_tables", TABLES_SQL, 0};
    AUTO_RESULT rows = NULL;
    *ret_tables = (struct known_tables){0};
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK || db_run(database->db, &ST_TABLES, NULL, &rows) != DB_OK) {
        complain("cannot ask PostgreSQL for its tables: %s", db_error(database->db));
        return false;
    }
    bool ok = true;
    for (int row = 0; row < PQntuples(rows) && ok; row++)
        ok = known_tables_add(ret_tables, PQgetvalue(rows, row, 0), PQgetvalue(rows, row, 1),
                              PQgetvalue(rows, row, 2));
    if (!ok)
        complain("out of memory");
    return ok;
}

bool shop_database_waits_first(struct shop_database *database, int32_t pid, bool *ret_first)
{
    static const struct statement ST_FIRST = {
        "own_first",
        "SELECT count(DISTINCT l.relation) + count(*) FILTER (WHERE l.mode = 'AccessShareLock')"
        " FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE l.pid = $1::int AND l.locktype = 'relation' AND c.relkind IN ('r', 'p', 'm', 'v')"
        " AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'",
        1};
    AUTO_RESULT rows = NULL;
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK ||
        db_run(database->db, &ST_FIRST, (const char *const[]){DB_NUMBER(pid)}, &rows) != DB_OK) {
        complain("cannot ask PostgreSQL for its locks: %s", db_error(database->db));
        return false;
    }
    *ret_first = PQntuples(rows) == 1 && db_cell_number(rows, 0, 0) <= 1;
    return true;
}

bool shop_database_nature(struct shop_database *database, struct shop_nature *ret_nature)
{
    static const struct statement ST_NATURE = {
        "own_nature",
        "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'default_transaction_isolation' AND reset_val = 'serializable')"
        " OR EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) s"
        " WHERE lower(s) = 'default_transaction_isolation=serializable')"
        ", NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE c.relkind NOT IN ('i', 'I')) AND NOT EXISTS (SELECT FROM pg_policy)"
        " AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f'"
        " AND (confupdtype IN ('c', 'n', 'd') OR confdeltype IN ('c', 'n', 'd')))"
        " AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " JOIN pg_language l ON l.oid = p.prolang WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
        " AND p.provolatile <> 'v' AND l.lanname NOT IN ('c', 'internal'))"
        ", NOT EXISTS (SELECT FROM pg_settings WHERE name = 'default_transaction_isolation' AND reset_val <> 'read committed')"
        " AND NOT EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) s"
        " WHERE lower(s) LIKE 'default_transaction_isolation=%' AND lower(s) NOT LIKE '%=read committed')",
        0};
    AUTO_RESULT rows = NULL;
    wait_from_now(database->db);
    if (db_ready(database->db) != DB_OK || db_run(database->db, &ST_NATURE, NULL, &rows) != DB_OK ||
        PQntuples(rows) != 1) {
        complain("cannot ask PostgreSQL for its isolation level and tables: %s", db_error(database->db));
        return false;
    }
    ret_nature->serializable = *PQgetvalue(rows, 0, 0) == 't';
    ret_nature->tables_alone = *PQgetvalue(rows, 0, 1) == 't';
    ret_nature->read_committed = *PQgetvalue(rows, 0, 2) == 't';
    return true;
}
