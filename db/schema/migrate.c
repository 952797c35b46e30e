/* Migrations: a list of SQL files, a table that remembers which were applied, and a lock against each other. */
#include "db/schema/migrate.h"

#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern const char db_schema_sql[], db_schema_2_sql[], db_schema_3_sql[], db_schema_4_sql[]; /* schema.S */

/* In order; a version that was released is never changed, only followed by another. */
static const struct {
    int version;
    const char *sql;
} migrations[] = {
    {1, db_schema_sql},
    {2, db_schema_2_sql},
    {3, db_schema_3_sql},
    {4, db_schema_4_sql},
};

static const char before[] =
    "BEGIN;"
    "SELECT pg_advisory_xact_lock(hashtextextended('oversell schema', 0));"
    "CREATE TABLE IF NOT EXISTS schema_version ("
    "  version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";

static const char first_product[] =
    "INSERT INTO product (name, price, count, initial_count, created_by, updated_by) "
    "SELECT 'Concert ticket', 19.90, 100, 100, 'oversell', 'oversell' "
    "WHERE NOT EXISTS (SELECT 1 FROM product); COMMIT";

static const struct statement ST_VERSION = {"schema_version",
                                            "SELECT coalesce(max(version), 0) FROM schema_version", 0};

static enum db_status apply(struct db *db, int version, const char *sql)
{
    enum db_status status = db_run_script(db, sql);
    if (status != DB_OK)
        return status;
    char note[80];
    snprintf(note, sizeof note, "INSERT INTO schema_version (version) VALUES (%d)", version);
    return db_run_script(db, note);
}

/* Within the transaction that BEFORE has opened. */
static enum db_status apply_missing(struct db *db)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &ST_VERSION, NULL, &row);
    if (status != DB_OK)
        return status;
    int have = atoi(PQgetvalue(row, 0, 0));
    for (size_t i = 0; i < sizeof migrations / sizeof migrations[0] && status == DB_OK; i++)
        if (migrations[i].version > have)
            status = apply(db, migrations[i].version, migrations[i].sql);
    return status;
}

enum db_status db_migrate(struct db *db)
{
    enum db_status status = db_run_script(db, before);
    if (status == DB_OK)
        status = apply_missing(db);
    if (status == DB_OK)
        status = db_run_script(db, first_product);
    if (status != DB_OK && status != DB_AWAY)
        (void)db_run_script(db, "ROLLBACK"); /* the first error is the one to report */
    return status;
}

static atomic_bool is_ready;

bool db_schema_is_ready(void)
{
    return atomic_load(&is_ready);
}

enum db_status db_ready_with_schema(struct db *db)
{
    static pthread_mutex_t migrating = PTHREAD_MUTEX_INITIALIZER;
    enum db_status status = db_ready(db);
    if (status == DB_OK && !atomic_load(&is_ready)) {
        pthread_mutex_lock(&migrating);
        if (!atomic_load(&is_ready)) {
            status = db_migrate(db);
            atomic_store(&is_ready, status == DB_OK);
        }
        pthread_mutex_unlock(&migrating);
    }
    if (status != DB_OK)
        log_seldom(LOG_WARNING, "postgresql: %s", db_error(db));
    return status;
}
