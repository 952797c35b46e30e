/* Faults of PostgreSQL: a backend killed, the server killed, a reply lost, and the connection of a lock ended. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>

#define DEAD_MS 60000 /* for PostgreSQL to exit after an immediate shutdown */
#define POLL_MS 5
#define SPARED 8 /* COMMITs that pass at most before one is hit */

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
    AUTO_RESULT rows = fault_ask(testbed, statement, NULL);
    if (rows && PQntuples(rows) > 0)
        return db_cell_number(rows, 0, 0);
    if (rows && !interrupted())
        complain("no service has a session in PostgreSQL");
    return -1;
}

/* When a backend is killed, shared memory may be damaged, so PostgreSQL restarts by itself. */
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
        complain("PostgreSQL is not running");
        return false;
    }
    int64_t end_us = monotonic_us() + (int64_t)DEAD_MS * 1000;
    while (fault_server_signal(run->testbed, "postgres", 0) && monotonic_us() < end_us)
        if (!sleep_unless_interrupted(POLL_MS))
            return false;
    return fault_postgres_up(run->testbed, NULL, &run->ready_us);
}

static void lose_commit(struct fault_run *run, struct proxy_rules *rules)
{
    /* Orders have keys, so a COMMIT follows the one statement of atomic-statement, too. */
    rules->lose_reply_to = "commit";
    /* Of the orders that begin together, not always the first. */
    rules->spare = random_up_to(&run->random, SPARED);
    if (rules->held_ms == 0 && random_up_to(&run->random, 1) == 0)
        rules->held_ms = HELD_FOREVER;
}

/* Repeatedly resets a connection so that a COMMIT is lost, or only its reply. With held_ms in the fault's rules the COMMIT itself
 * arrives late: long after the service has found out what became of the order. */
bool nemesis_commit(struct fault_run *run)
{
    return fault_set_rules_repeatedly(run, 1 << SERVER_POSTGRES, lose_commit) &&
           sleep_unless_interrupted(run->fault->rules.held_ms);
}

bool nemesis_lock_backend(struct fault_run *run)
{
    return ask_number(run->testbed, &ST_END_LOCKS) >= 0;
}
