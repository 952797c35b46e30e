/* Settling a COMMIT without a reply: as long as the old server process lives it may still commit, so it is
 * ended first, and only then is the transaction's fate final. */
#include "db/settle.h"

#include <string.h>

enum { LOOK_AGAIN_US = 10 * 1000 };

/* A process id may be used again, so the start time goes with it. */
static const struct statement ST_TERMINATE = {
    "settle_terminate",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int AND backend_start = $2::timestamptz",
    2};
/* A server that was killed may give the number of a transaction again whose log it had not written yet, and the id of an
 * order, too. So where there is an order, it tells: by the time at which it was made as well. */
static const struct statement ST_FATE = {
    "settle_fate",
    "SELECT CASE WHEN $2::bigint = 0 THEN pg_xact_status($1::xid8)"
    "            WHEN EXISTS (SELECT FROM orders WHERE id = $2::bigint AND created_at = $3::timestamptz) THEN 'committed'"
    "            ELSE 'aborted' END",
    3};

static void pause_until_next_look(void)
{
    struct timespec pause = {.tv_nsec = LOOK_AGAIN_US * 1000L};
    nanosleep(&pause, NULL);
}

enum settled db_settle(struct db *db, const struct lost_commit *lost, int64_t until_us)
{
    const struct db_session *old = &lost->session;
    const struct order *order = &lost->order;
    db_set_deadline(db, until_us, until_us);

    for (; monotonic_us() < until_us; pause_until_next_look()) {
        if (db_ready(db) != DB_OK)
            continue;
        AUTO_RESULT running = NULL;
        if (db_run(db, &ST_TERMINATE, (const char *const[]){old->pid, old->started}, &running) != DB_OK ||
            PQntuples(running) > 0)
            continue;
        AUTO_RESULT fate = NULL;
        if (db_run(
                db, &ST_FATE,
                (const char *const[]){lost->xid, DB_NUMBER(order->id), order->id ? order->created_at : NULL},
                &fate) != DB_OK)
            continue;
        const char *text = PQgetvalue(fate, 0, 0);
        if (strcmp(text, "committed") == 0)
            return SETTLED_COMMITTED;
        if (strcmp(text, "aborted") == 0)
            return SETTLED_ROLLED_BACK;
        return SETTLED_UNKNOWN; /* forgotten, or in progress on a server that is not the old one */
    }
    return SETTLED_UNKNOWN;
}
