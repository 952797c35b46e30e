/* The lock test: several processes that update one number under a lock, and are paused. Tells the share of updates that
 * were acknowledged and are not in the number. */
#include "loadtest/faults/lock_test.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/faults/checker/sale_history.h"
#include "loadtest/faults/fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_MS 30000
#define PAUSE_EVERY_MS 5000
#define PAUSE_MS 3500 /* longer than a lease */
#define PAUSED 3      /* of the contenders for a lock, chosen again each time */
#define END_MS 60000
#define UPDATES_MAX 4096 /* of one lock */

static const char TABLE_SQL[] =
    "CREATE TABLE IF NOT EXISTS fault_register (name text PRIMARY KEY, value bigint NOT NULL, fence bigint NOT NULL)";
static const struct statement ST_PUT = {
    "lock_test_put",
    "INSERT INTO fault_register VALUES ($1, 0, 0) ON CONFLICT (name) DO UPDATE SET value = 0, fence = 0", 1};
static const struct statement ST_GET = {"lock_test_get", "SELECT value FROM fault_register WHERE name = $1",
                                        1};

struct contest {
    struct child contenders[LOCK_TEST_CONTENDERS];
    char key[48];
    int64_t paused_us[RUN_MS / PAUSE_EVERY_MS]; /* when some of them were paused */
    size_t pauses;
};

static void log_of(const struct fault_run *run, size_t subject, size_t contender, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 64, "%s/contender-%zu-%zu.log", run->testbed->base.dir, subject, contender);
}

/* ---- starting and pausing ------------------------------------------------------------------------------ */

static bool start_contender(struct fault_run *run, size_t subject, size_t i, struct contest *contest)
{
    char log[PATH_MAX + 64], program[PATH_MAX], run_ms[24], lease_ms[24], seed[24];
    char env[STACK_SERVERS][1100];
    struct lock_config addresses = run->testbed->base.addresses;
    const char *environment[STACK_SERVERS + 2] = {"LOCK_DATABASE_URL"};
    for (int j = 0; j < STACK_SERVERS; j++) {
        snprintf(env[j], sizeof env[j], "%s=%s", server_variable(j), *server_address(&addresses, j));
        environment[j + 1] = env[j];
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    log_of(run, subject, i, log);
    (void)unlink(log);
    snprintf(run_ms, sizeof run_ms, "%d", RUN_MS);
    snprintf(lease_ms, sizeof lease_ms, "%d", LOCK_TEST_LEASE_MS);
    snprintf(seed, sizeof seed, "%" PRIu64, (run->seed + subject * LOCK_TEST_CONTENDERS + i) & INT64_MAX);
    const char *argv[] = {program,      "contend", run->subjects[subject].strategy->name,
                          contest->key, lease_ms,  run_ms,
                          seed,         NULL};
    struct child_plan plan = {.argv = argv, .env = environment, .log = log, .death_signal = SIGKILL};
    if (child_start(&plan, &contest->contenders[i]))
        return true;
    complain("cannot start a client of the lock test");
    return false;
}

static bool start_all(struct fault_run *run, struct contest *contests)
{
    struct db *db = fault_db(run->testbed);
    if (!db)
        return false;
    if (db_run_script(db, TABLE_SQL) != DB_OK) {
        complain("%s", db_error(db));
        return false;
    }
    for (size_t s = 0; s < run->count; s++) {
        snprintf(contests[s].key, sizeof contests[s].key, "contest:%" PRId64 ":%zu", run->cycle, s);
        AUTO_RESULT put = fault_ask(run->testbed, &ST_PUT, (const char *[]){contests[s].key});
        if (!put)
            return false;
        for (size_t i = 0; i < LOCK_TEST_CONTENDERS; i++)
            if (!start_contender(run, s, i, &contests[s]))
                return false;
    }
    return true;
}

/* Some of the contenders for every lock, which ones is random. */
static void signal_some(struct fault_run *run, struct contest *contests, const size_t *first, int number)
{
    for (size_t s = 0; s < run->count; s++)
        for (size_t i = 0; i < PAUSED; i++)
            child_signal(&contests[s].contenders[(first[s] + i) % LOCK_TEST_CONTENDERS], number);
}

static bool pause_and_go_on(struct fault_run *run, struct contest *contests)
{
    size_t first[FAULT_STRATEGIES_MAX];
    for (int64_t at_ms = 0; at_ms + PAUSE_EVERY_MS <= RUN_MS; at_ms += PAUSE_EVERY_MS) {
        for (size_t s = 0; s < run->count; s++)
            first[s] = (size_t)random_up_to(&run->random, LOCK_TEST_CONTENDERS - 1);
        fault_show_progress(run);
        bool ok = sleep_unless_interrupted(PAUSE_EVERY_MS - PAUSE_MS);
        signal_some(run, contests, first, SIGSTOP);
        for (size_t s = 0; s < run->count; s++)
            contests[s].paused_us[contests[s].pauses++] = monotonic_us();
        ok = ok && sleep_unless_interrupted(PAUSE_MS);
        signal_some(run, contests, first, SIGCONT);
        if (!ok)
            return false;
    }
    return true;
}

static bool end_all(struct fault_run *run, struct contest *contests)
{
    bool ok = true;
    int64_t end_us = monotonic_us() + (int64_t)END_MS * 1000;
    for (size_t s = 0; s < run->count; s++)
        for (size_t i = 0; i < LOCK_TEST_CONTENDERS; i++) {
            int64_t left_ms = (end_us - monotonic_us()) / 1000;
            bool ended = child_wait(&contests[s].contenders[i], left_ms > 0 ? left_ms : 0, true);
            child_stop(&contests[s].contenders[i], 0);
            if (ended && contests[s].contenders[i].status == 0)
                continue;
            ok = false;
            if (!interrupted())
                complain("a client of the lock test failed: %s", run->subjects[s].strategy->name);
        }
    return ok;
}

/* ---- judging ------------------------------------------------------------------------------------------- */

/* Reads what one contender did; the number that an update saw grows, where a stock falls. */
static void read_log(const char *path, struct sale *updates, size_t *count, struct fault_counts *counts)
{
    char line[160];
    FILE *log = fopen(path, "re");
    while (log && fgets(line, sizeof line, log)) {
        struct sale update;
        bool wrote = *count < UPDATES_MAX && sscanf(line, "wrote %" SCNd64 " %" SCNd64 " %" SCNd64,
                                                    &update.seen, &update.began_us, &update.ended_us) == 3;
        counts->unclear += strcmp(line, "unclear\n") == 0;
        counts->intents += wrote || strcmp(line, "refused\n") == 0;
        counts->acknowledged += wrote;
        if (!wrote)
            continue;
        update.seen = -update.seen;
        updates[(*count)++] = update;
    }
    if (log)
        fclose(log);
}

/* Updates that were in progress when some contenders were paused. */
static int64_t met(const struct contest *contest, const struct sale *updates, size_t count)
{
    int64_t met = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t pause = 0; pause < contest->pauses; pause++)
            met += updates[i].began_us <= contest->paused_us[pause] &&
                   updates[i].ended_us >= contest->paused_us[pause];
    return met;
}

static bool judge_contest(struct fault_run *run, size_t s, const struct contest *contest)
{
    struct fault_subject *subject = &run->subjects[s];
    struct fault_counts counts = {0};
    struct sale *updates = calloc(UPDATES_MAX, sizeof *updates);
    if (!updates)
        complain("out of memory");
    struct db *db = updates ? fault_db(run->testbed) : NULL;
    AUTO_RESULT rows = NULL;
    const char *values[] = {contest->key};
    size_t count = 0;
    bool ok = db && db_run(db, &ST_GET, values, &rows) == DB_OK && PQntuples(rows) == 1;
    for (size_t i = 0; ok && i < LOCK_TEST_CONTENDERS; i++) {
        char path[PATH_MAX + 64];
        log_of(run, s, i, path);
        read_log(path, updates, &count, &counts);
    }
    if (db && !ok)
        complain("cannot read the result of the lock test: %s", db_error(db));
    if (ok) {
        counts.orders = db_cell_number(rows, 0, 0);
        counts.lost = counts.acknowledged > counts.orders ? counts.acknowledged - counts.orders : 0;
        counts.critical = met(contest, updates, count);
        counts.disordered = (int64_t)history_check(updates, count);
        subject->cycles++;
        subject->seen_in += counts.lost > 0;
        fault_counts_add(&subject->counts, &counts);
    }
    free(updates);
    return ok;
}

bool fault_lock_test(struct fault_run *run)
{
    struct contest *contests = calloc(run->count, sizeof *contests);
    if (!contests)
        complain("out of memory");
    bool ok = contests && start_all(run, contests) && pause_and_go_on(run, contests);
    if (contests && !end_all(run, contests))
        ok = false;
    for (size_t s = 0; ok && s < run->count; s++)
        ok = judge_contest(run, s, &contests[s]);
    free(contests);
    return ok;
}
