/* Faults of PostgreSQL: a backend killed, the server killed, a reply lost, and the connection of a lock ended. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>

#define DEAD_MS 60000 /* for PostgreSQL to exit after an immediate shutdown */
#define POLL_MS 5
#define LATE_MS 1500 /* longer than a service needs to resolve a lost COMMIT */

static const struct statement ST_BACKEND = {
    "fault_backend",
    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'oversell orders %' "
    "ORDER BY (state <> 'idle') DESC, random() LIMIT 1",
    0};
static const struct statement ST_END_LOCKS = {
    "fault_end_locks",
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'oversell lock%' AND state "
    "= 'idle in transaction'",
    0};

static int64_t ask_number(struct fault_testbed *testbed, const struct statement *statement)
{
    struct db *db = fault_db(testbed);
    AUTO_RESULT rows = NULL;
    if (!db || db_run(db, statement, NULL, &rows) != DB_OK || PQntuples(rows) == 0) {
        if (db && !interrupted())
            complain("%s", rows ? "no service has a session" : db_error(db));
        return -1;
    }
    return strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
}

/* PostgreSQL takes the death of one backend for a damage to the memory that all share, and begins anew by itself. */
bool nemesis_postgres_backend(struct fault_run *run)
{
    int64_t pid = ask_number(run->testbed, &ST_BACKEND);
    if (pid < 0)
        return false;
    (void)kill((pid_t)pid, SIGKILL);
    run->ready_us = fault_postgres_await(run->testbed);
    return run->ready_us > 0;
}

bool nemesis_postgres_immediate(struct fault_run *run)
{
    if (!fault_server_signal(run->testbed, "postgres", SIGQUIT)) {
        complain("PostgreSQL does not run");
        return false;
    }
    int64_t end_us = monotonic_us() + (int64_t)DEAD_MS * 1000;
    while (fault_server_signal(run->testbed, "postgres", 0) && monotonic_us() < end_us)
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    return fault_postgres_up(run->testbed, NULL, &run->ready_us);
}

/* Of a COMMIT, or of the statement that is a whole order, some connection loses the reply, again and again. */
bool nemesis_commit_reply(struct fault_run *run)
{
    static const char *const SENT[] = {"commit", "commit", "order_place_in_one"};
    run->targets |= 1u << SERVER_POSTGRES;
    for (int i = 0; i < fault_repetitions(run); i++) {
        struct proxy_rules rules = {.lose_reply_to = SENT[random_up_to(&run->random, 2)]};
        fault_proxies_set(run->testbed, 1 << SERVER_POSTGRES, &rules);
        if (!fault_pause_between(run))
            return false;
    }
    fault_proxies_set(run->testbed, 1 << SERVER_POSTGRES, &(struct proxy_rules){0});
    run->ready_us = monotonic_us();
    return true;
}

/* Connections are reset with their COMMIT still on its way: it reaches the old server process, if that still lives, long
 * after the service has found out what became of the order. */
bool nemesis_commit_late(struct fault_run *run)
{
    static const char *const SENT[] = {"commit", "commit", "order_place_in_one"};
    run->targets |= 1u << SERVER_POSTGRES;
    for (int i = 0; i < fault_repetitions(run); i++) {
        struct proxy_rules rules = {.lose_reply_to = SENT[random_up_to(&run->random, 2)], .held_ms = LATE_MS};
        fault_proxies_set(run->testbed, 1 << SERVER_POSTGRES, &rules);
        if (!fault_pause_between(run))
            return false;
    }
    fault_proxies_set(run->testbed, 1 << SERVER_POSTGRES, &(struct proxy_rules){0});
    run->ready_us = monotonic_us();
    return sleep_unless_interrupted(LATE_MS);
}

bool nemesis_lock_backend(struct fault_run *run)
{
    return ask_number(run->testbed, &ST_END_LOCKS) >= 0;
}
