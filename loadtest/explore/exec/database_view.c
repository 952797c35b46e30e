/* Reads pg_locks and the product's row for the view of a schedule in progress. */
#include "loadtest/explore/exec/database_view.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xmax of the row's committed version is the transaction that has locked or is replacing it. Transactions that share a lock (the
 * check of a foreign key) are not found, but no write waits for them. */
static const struct statement ST_ROW_HOLDER = {
    "explore_row_holder",
    "SELECT l.pid FROM product p JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted"
    " AND l.transactionid = p.xmax WHERE p.id = $1",
    1};
static const struct statement ST_WAITING_FOR = {
    "explore_waiting_for", "SELECT pid, locktype FROM pg_locks WHERE NOT granted AND pid = ANY ($1::int[])",
    1};

static const struct statement ST_ROW = {
    "explore_row", "SELECT fence_redis, fence_zookeeper, fence_etcd, version FROM product WHERE id = $1", 1};
static const char *const FENCED_SERVICES[] = {"redis", "zookeeper", "etcd"}; /* the first columns of ST_ROW */
enum { VERSION_COLUMN = 3 };

enum { LOOK_US = 10 * 1000 * 1000 };

/* The index of the order whose session is PID; ACTORS_MAX: none. */
static size_t whose(const struct execution *execution, const char *pid)
{
    for (size_t i = 0; i < execution->settings.actors; i++)
        if (strcmp(actor_session(&execution->actors[i]), pid) == 0)
            return i;
    return ACTORS_MAX;
}

static const char *in_words(const char *locktype)
{
    static const struct {
        const char *type, *words;
    } TYPES[] = {{"transactionid", "row lock"},
                 {"tuple", "row lock"},
                 {"relation", "table lock"},
                 {"advisory", "advisory lock"}};
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strcmp(TYPES[i].type, locktype) == 0)
            return TYPES[i].words;
    return "transaction";
}

static int64_t row_fence(const PGresult *row, const struct lock_driver *lock)
{
    for (int i = 0; i < VERSION_COLUMN; i++)
        if (lock && lock->server && strcmp(lock->server->name, FENCED_SERVICES[i]) == 0)
            return db_cell_number(row, 0, i);
    return 0;
}

bool database_view_read(struct execution *execution, struct database_view *ret_view)
{
    struct product_schema *schema = execution->schema;
    AUTO_RESULT holders = NULL;
    AUTO_RESULT waiting = NULL;
    AUTO_RESULT row = NULL;
    const char *pids[ACTORS_MAX];
    char sessions[SESSION_LIST];
    *ret_view = (struct database_view){0};
    for (size_t i = 0; i < execution->settings.actors; i++)
        pids[i] = actor_session(&execution->actors[i]);
    (void)product_schema_list_sessions(pids, execution->settings.actors, sessions);
    int64_t deadline_us = monotonic_us() + LOOK_US;
    if (!product_schema_audit(schema, &ret_view->audit))
        return execution_database_error(execution);
    db_set_deadline(schema->db, deadline_us, deadline_us);
    if (db_run(schema->db, &ST_ROW_HOLDER, (const char *const[]){DB_NUMBER(schema->product_id)}, &holders) !=
            DB_OK ||
        db_run(schema->db, &ST_WAITING_FOR, (const char *const[]){sessions}, &waiting) != DB_OK ||
        db_run(schema->db, &ST_ROW, (const char *const[]){DB_NUMBER(schema->product_id)}, &row) != DB_OK)
        return execution_fail(execution, "postgresql: %s", db_error(schema->db));
    for (int i = 0; i < PQntuples(holders); i++) {
        size_t holder = whose(execution, PQgetvalue(holders, i, 0));
        if (holder < ACTORS_MAX)
            ret_view->row_holders |= 1u << holder;
    }
    for (int i = 0; i < PQntuples(waiting); i++) {
        size_t waiter = whose(execution, PQgetvalue(waiting, i, 0));
        if (waiter < ACTORS_MAX)
            ret_view->awaited_lock[waiter] = in_words(PQgetvalue(waiting, i, 1));
    }
    if (PQntuples(row) == 1) {
        ret_view->row_fence = row_fence(row, execution->settings.strategy->lock);
        ret_view->row_version = db_cell_number(row, 0, VERSION_COLUMN);
    }
    return true;
}
