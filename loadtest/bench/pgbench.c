/* Measures with pgbench how fast PostgreSQL executes the service's SQL without the service. */
#include "loadtest/bench/pgbench.h"

#include "db/postgres/connection.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/process/child.h"
#include "loadtest/report/output.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTRA_MS 120000 /* to connect and to exit */
#define REPORT_MAX 65536
#define SECONDS_MAX 120 /* where no shorter run has a transaction */
#define ENV_MAX 10

bool pgbench_parse(const char *report, struct pgbench_result *ret_result)
{
    static const char RATE[] = "\ntps = ", DONE[] = "\nnumber of transactions actually processed: ",
                      FAILED[] = "\nnumber of failed transactions: ";
    const char *rate = strstr(report, RATE), *done = strstr(report, DONE), *failed = strstr(report, FAILED);
    int64_t failures;
    return rate && done && sscanf(rate + sizeof RATE - 1, "%lf", &ret_result->per_s) == 1 &&
           sscanf(done + sizeof DONE - 1, "%" SCNd64, &ret_result->transactions) == 1 &&
           (!failed || (sscanf(failed + sizeof FAILED - 1, "%" SCNd64, &failures) == 1 && failures == 0));
}

/* The database's address goes into the environment: an argument could be seen by everybody. So does what the service's
 * sessions ask of the planner (db/postgres/connection.c). */
static bool set_env(char **env, const char *url)
{
    bool well = db_url_environment(url, env, ENV_MAX - 2);
    size_t count = 0;
    while (env[count])
        count++;
    well = well && (env[count] = strdup("PGOPTIONS=-c enable_seqscan=off -c jit=off"));
    if (!well)
        complain("cannot read the address of the database");
    return well;
}

static bool write_script(const struct script *script, const char *path)
{
    char *text = script_text(script);
    bool written = text && output_file(path, text, strlen(text));
    if (!text)
        complain("no script for pgbench can be made of the statements of %s", script->strategy);
    free(text);
    return written;
}

/* pgbench starts its clock before its clients connect: on a busy machine the time may be over before the first transaction. */
static bool was_too_short(const char *report)
{
    return report && strstr(report, "\nnumber of transactions actually processed: 0\n");
}

bool pgbench_run(const struct pgbench_run *run, struct pgbench_result *ret_result)
{
    char path[PATH_MAX], clients[24], seconds[24], first[40], last[40], instance[160], strategy[80];
    char *env[ENV_MAX] = {NULL};
    if (snprintf(path, sizeof path, "%s/%s.pgbench", run->dir, run->script->strategy) >= (int)sizeof path ||
        !write_script(run->script, path))
        return false;
    snprintf(clients, sizeof clients, "%" PRId64, run->clients);
    snprintf(first, sizeof first, "first=%" PRId64, run->first);
    snprintf(last, sizeof last, "last=%" PRId64, run->first + run->products - 1);
    snprintf(instance, sizeof instance, "instance=%s", run->instance);
    snprintf(strategy, sizeof strategy, "strategy=%s", run->script->strategy);

    char *report = NULL;
    if (set_env(env, run->database_url)) {
        const struct child_plan plan = {
            .argv = (const char *[]){"pgbench",  "--no-vacuum", "--protocol=prepared",
                                     "--client", clients,       "--time",
                                     seconds,    "--file",      path,
                                     "--define", first,         "--define",
                                     last,       "--define",    "quantity=1",
                                     "--define", instance,      "--define",
                                     strategy,   NULL},
            .env = (const char *const *)env,
            .death_signal = SIGTERM,
        };
        for (int64_t s = run->seconds; s == run->seconds || (was_too_short(report) && s <= SECONDS_MAX);
             s *= 2) {
            free(report);
            snprintf(seconds, sizeof seconds, "%" PRId64, s);
            report = child_output(plan, s * 1000 + EXTRA_MS, REPORT_MAX);
        }
    }
    for (size_t i = 0; i < ENV_MAX; i++)
        free(env[i]);
    bool well = report && pgbench_parse(report, ret_result);
    if (!well && !interrupted())
        complain("pgbench failed%s%s",
                 report ? ":\n" : ": install PostgreSQL's server package, which contains it",
                 report ? report : "");
    free(report);
    return well;
}
