/* `loadtest contend`: one contender of the lock test, in a separate process. Again and again it takes a lock, reads a
 * number, thinks for up to the lock's lease, and writes the number plus one. It prints what was written. */
#include "base/clock.h"
#include "base/prng.h"
#include "db/postgres/connection.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/options.h"
#include "loadtest/faults/lock_test.h"
#include "service/engine/strategy.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_US INT64_C(5000000)
#define DB_US INT64_C(20000000)

static const struct statement ST_REGISTER = {
    "contend_register", "UPDATE fault_register SET fence = $2 WHERE name = $1 AND fence < $2 RETURNING 1", 2};
static const struct statement ST_READ = {"contend_read", "SELECT value FROM fault_register WHERE name = $1",
                                         1};
/* $3 is the token: of no lock (0), of one that the row must still have, or of one that it must not have been left behind by. */
static const struct statement ST_WRITE = {
    "contend_write",
    "UPDATE fault_register SET value = $2 WHERE name = $1 AND ($3 = 0 OR fence = $3) RETURNING 1", 3};
static const struct statement ST_WRITE_FENCED = {
    "contend_write_fenced",
    "UPDATE fault_register SET value = $2, fence = $3 WHERE name = $1 AND fence <= $3 RETURNING 1", 3};

struct contender {
    const struct strategy *strategy;
    const char *key;
    struct db *db;
    struct lock *lock;
    uint64_t random;
    int64_t think_ms;
};

/* Runs a statement that gives a row or none; false where it failed or gave none. */
static bool row_of(struct contender *c, const struct statement *statement, const char *const *values,
                   bool once, int64_t *ret_number)
{
    PGresult *result = NULL;
    int64_t end_us = monotonic_us() + DB_US;
    db_set_deadline(c->db, end_us, end_us);
    enum db_status status = db_ready(c->db);
    if (status == DB_OK)
        status = once ? db_run_once(c->db, statement, values, &result)
                      : db_run(c->db, statement, values, &result);
    bool found = status == DB_OK && PQntuples(result) == 1;
    if (found)
        *ret_number = db_cell_number(result, 0, 0);
    if (status == DB_UNKNOWN)
        puts("unclear");
    PQclear(result);
    return found;
}

static void update(struct contender *c, const struct lock_grant *grant, int64_t locked_us)
{
    int64_t seen, ignored;
    const char *fence = DB_NUMBER(c->strategy->fencing == FENCE_NONE ? 0 : grant->fence);
    bool on_write = c->strategy->fencing == FENCE_ON_WRITE;
    if (c->strategy->fencing == FENCE_BEFORE_READ &&
        !row_of(c, &ST_REGISTER, (const char *[]){c->key, fence}, false, &ignored))
        return;
    if (!row_of(c, &ST_READ, (const char *[]){c->key}, false, &seen))
        return;
    (void)poll(NULL, 0, (int)random_up_to(&c->random, c->think_ms));
    const char *values[] = {c->key, DB_NUMBER(seen + 1), fence};
    if (row_of(c, on_write ? &ST_WRITE_FENCED : &ST_WRITE, values, true, &ignored))
        printf("wrote %" PRId64 " %" PRId64 " %" PRId64 "\n", seen, locked_us, monotonic_us());
    else
        puts("refused");
}

static void contend(struct contender *c, int64_t end_us)
{
    while (monotonic_us() < end_us) {
        struct lock_grant grant;
        if (lock_acquire(c->lock, c->key, monotonic_us() + WAIT_US, &grant) != LOCK_OK) {
            (void)poll(NULL, 0, 20);
            continue;
        }
        update(c, &grant, monotonic_us());
        (void)lock_release(c->lock, &grant);
        (void)fflush(stdout); /* it may be killed at any time */
    }
}

/* loadtest contend STRATEGY KEY LEASE_MS RUN_MS SEED: started by the lock test, with the servers in the environment. */
int contend_main(int argc, char **argv)
{
    int64_t lease_ms, run_ms, seed;
    char error[200];
    struct contender c = {.strategy = argc == 6 ? strategy_find(argv[1]) : NULL};
    if (!c.strategy || !c.strategy->lock || !parse_number(argv[3], &lease_ms) ||
        !parse_number(argv[4], &run_ms) || !parse_number(argv[5], &seed)) {
        fputs("usage: loadtest contend STRATEGY KEY LEASE_MS RUN_MS SEED\n", stderr);
        return ENDED_USAGE;
    }
    const char *database = getenv("DATABASE_URL");
    c.key = argv[2];
    c.think_ms = lease_ms;
    c.random = random_from((uint64_t)seed);
    srandom((unsigned)seed);
    if (!database || !lock_configure_from_environment(error, sizeof error) ||
        !(c.db = db_new(database, "oversell contender")) || lock_open(c.strategy->lock, &c.lock) != LOCK_OK)
        return ENDED_ENVIRONMENT;
    c.lock->lease_ms = lease_ms;
    contend(&c, monotonic_us() + run_ms * 1000);
    lock_close(c.lock);
    db_free(c.db);
    return ENDED_AS_EXPECTED;
}
