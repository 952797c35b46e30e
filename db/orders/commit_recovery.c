/* Finds out what became of a COMMIT that got no reply. While the old server process lives it may still commit, so it is
 * terminated first; only then is the transaction's fate final. */
#include "db/orders/commit_recovery.h"
#include "base/clock.h"

#include "db/orders/orders_impl.h"
#include "db/postgres/statements.h"

#include <string.h>

enum { LOOK_AGAIN_US = 10 * 1000 };

/* A process id may be used again, so the start time goes with it. */
static const struct statement ST_TERMINATE = {
    "settle_terminate",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int AND backend_start = $2::timestamptz",
    2};
/* A server that was killed may use the number of a transaction again whose log it had not written yet, and the id of an
 * order, too. The time at which the order was made identifies it. Without an order there is only the number:
 * - The session has ended, so a number that is not used yet, or is of a running transaction, was lost with the server.
 * - A number that was lost and used again cannot have been committed before. So "aborted" is true of both transactions.
 * - "committed" is believed only of the server run that the session belonged to. Otherwise the fate stays NULL, as it does
 *   where PostgreSQL has forgotten the number.
 * A standby may not have replayed the transaction yet, so it is asked again until it is promoted. */
static const struct statement ST_FATE = {
    "settle_fate",
    "SELECT CASE WHEN pg_is_in_recovery() THEN 'in recovery'"
    "            WHEN $2::bigint <> 0 THEN"
    "                CASE WHEN EXISTS (SELECT FROM orders WHERE id = $2::bigint AND created_at = $3::timestamptz)"
    "                     THEN 'committed' ELSE 'aborted' END"
    "            WHEN $1::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) THEN 'aborted'"
    "            WHEN pg_xact_status($1::xid8) <> 'committed' THEN 'aborted'"
    "            WHEN pg_xact_status($1::xid8) = 'committed' AND $4 = " DB_SERVER_RUN " THEN 'committed' END",
    4};

/* An order whose id is not known is found by the transaction that took its stock, among the last $4 ids. After a restart that
 * number may be another transaction's, but then the order is younger than the server run. */
static const struct statement ST_FIND = {
    "settle_find",
    "SELECT o.id, o.amount, o.status, " RFC3339(
        "o.created_at") ", pg_is_in_recovery() "
                        "FROM (VALUES (1)) AS one LEFT JOIN (order_item AS i JOIN orders AS o ON o.id = i.order_id)"
                        "     ON i.order_id > (SELECT max(id) - $4::bigint FROM orders) AND i.stock_xid = $1::xid8 AND i.instance = $2"
                        "        AND ($3 = " DB_SERVER_RUN
                        " OR o.created_at < greatest(pg_postmaster_start_time(),"
                        "                                                               pg_stat_get_bgwriter_stat_reset_time()))",
    4};
static const char AMONG_THE_LAST[] = "100000", AMONG_ALL[] = "9223372036854775807";

static enum commit_fate fate_of_number(struct db *db, const struct lost_commit *lost)
{
    const struct order *order = &lost->order;
    AUTO_RESULT fate = NULL;
    if (db_run(db, &ST_FATE,
               (const char *const[]){lost->xid, DB_NUMBER(order->id), order->id ? order->created_at : NULL,
                                     lost->session.server_run},
               &fate) != DB_OK)
        return COMMIT_UNKNOWN;
    const char *text = PQgetvalue(fate, 0, 0);
    if (strcmp(text, "committed") == 0)
        return COMMIT_COMMITTED;
    if (strcmp(text, "aborted") == 0)
        return COMMIT_ROLLED_BACK;
    return *text == '\0' ? COMMIT_FORGOTTEN : COMMIT_UNKNOWN;
}

static enum commit_fate find_among(struct db *db, struct lost_commit *lost, const char *ids)
{
    AUTO_RESULT found = NULL;
    if (db_run(db, &ST_FIND,
               (const char *const[]){lost->xid, lost->unseen_order_of, lost->session.server_run, ids},
               &found) != DB_OK ||
        PQntuples(found) == 0 || strcmp(PQgetvalue(found, 0, 4), "f") != 0)
        return COMMIT_UNKNOWN;
    if (PQgetisnull(found, 0, 0))
        return COMMIT_ROLLED_BACK;
    order_read(found, 0, 0, &lost->order);
    return COMMIT_COMMITTED;
}

/* Others may have placed many orders before the loss was noticed. Then a look at all orders, which is slow, decides, but only if the
 * number of the transaction does not show that it was rolled back. */
static enum commit_fate find_order(struct db *db, struct lost_commit *lost)
{
    enum commit_fate fate = find_among(db, lost, AMONG_THE_LAST);
    if (fate != COMMIT_ROLLED_BACK)
        return fate;
    fate = fate_of_number(db, lost);
    return fate == COMMIT_COMMITTED || fate == COMMIT_FORGOTTEN ? find_among(db, lost, AMONG_ALL) : fate;
}

static void pause_until_next_look(void)
{
    struct timespec pause = {.tv_nsec = LOOK_AGAIN_US * 1000L};
    nanosleep(&pause, NULL);
}

enum commit_fate commit_recovery(struct db *db, struct lost_commit *lost, int64_t until_us)
{
    const struct db_session *old = &lost->session;
    db_set_deadline(db, until_us, until_us);

    for (; monotonic_us() < until_us; pause_until_next_look()) {
        if (db_ready(db) != DB_OK)
            continue;
        AUTO_RESULT running = NULL;
        if (db_run(db, &ST_TERMINATE, (const char *const[]){old->pid, old->started}, &running) != DB_OK ||
            PQntuples(running) > 0)
            continue;
        enum commit_fate fate = lost->unseen_order_of && !lost->order.id ? find_order(db, lost)
                                                                         : fate_of_number(db, lost);
        if (fate != COMMIT_UNKNOWN)
            return fate;
    }
    return COMMIT_UNKNOWN;
}
