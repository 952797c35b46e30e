/* Runs the foreign programs that the locks are compared with: redis-benchmark and, in Python, kazoo. */
#include "loadtest/bench/references.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/process/child.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/redis_cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTRA_MS 120000 /* to start and stop, also on a busy machine */
#define OUTPUT_MAX 65536
#define FIRST_REQUESTS 20000 /* to find how many fill the time */

static bool fail(char *ret_reason, const char *words)
{
    snprintf(ret_reason, REASON_SIZE, "%s", interrupted() ? "" : words);
    return false;
}

/* ---- redis-benchmark ------------------------------------------------------------------------------------------- */

bool redis_benchmark_parse(const char *csv, double *ret_per_s)
{
    static const char ROW[] = "\"SET\",\"";
    const char *row = strstr(csv, ROW);
    return row && sscanf(row + sizeof ROW - 1, "%lf", ret_per_s) == 1 && *ret_per_s > 0;
}

/* redis-benchmark takes a password as an argument only, and everybody can read arguments. So it works as a user without one,
 * who may do nothing but set the benchmark's own key. */
#define BENCHMARK_USER "redis-benchmark"
#define BENCHMARK_KEY "key:__rand_int__"

static bool run_benchmark(const struct lock_config *config, size_t connections, int64_t requests, int64_t ms,
                          double *ret_per_s, char *ret_reason)
{
    char clients[24], number[24], port_text[24], password[128];
    int port;
    if (!redis_address(config->redis_url, 0, password, &port) ||
        !redis_tell(config->redis_url, 0,
                    "ACL SETUSER " BENCHMARK_USER " reset on nopass ~" BENCHMARK_KEY " +set"))
        return fail(
            ret_reason,
            "cannot create a Redis user for redis-benchmark: Redis is not a private server, or is older than 6.0");
    snprintf(port_text, sizeof port_text, "%d", port);
    snprintf(clients, sizeof clients, "%zu", connections);
    snprintf(number, sizeof number, "%lld", (long long)requests);
    const struct child_plan plan = {
        .argv = (const char *[]){"redis-benchmark", "-h", "127.0.0.1", "-p", port_text, "--user",
                                 BENCHMARK_USER, "-a", "none", "-t", "set", "-c", clients, "-n", number,
                                 "--csv", NULL},
        .log = "/dev/null",
        .death_signal = SIGKILL,
    };
    char *csv = child_output(plan, 10 * ms + EXTRA_MS, OUTPUT_MAX);
    bool well = csv && redis_benchmark_parse(csv, ret_per_s);
    free(csv);
    (void)redis_tell(config->redis_url, 0,
                     "ACL DELUSER " BENCHMARK_USER); /* it ends with the server at the latest */
    return well || fail(ret_reason, "redis-benchmark failed or is missing: install the package redis-tools");
}

bool redis_benchmark_sets(const struct lock_config *config, size_t threads, int64_t ms,
                          struct progress *progress, double *ret_per_s, char *ret_reason)
{
    (void)progress; /* it tells nothing until it has ended */
    double rate;
    if (!run_benchmark(config, threads, FIRST_REQUESTS, ms, &rate, ret_reason))
        return false;
    return run_benchmark(config, threads, (int64_t)(rate * (double)ms / 1000) + 1, ms, ret_per_s, ret_reason);
}

/* ---- kazoo ----------------------------------------------------------------------------------------------------- */

bool kazoo_cycles(const struct lock_config *config, size_t threads, int64_t ms, struct progress *progress,
                  double *ret_per_s, char *ret_reason)
{
    (void)progress;
    char script[PATH_MAX], contenders[24], seconds[32];
    if (!path_of(PATH_KAZOO_LOCK, script))
        return fail(ret_reason, "the script that uses kazoo is missing");
    snprintf(contenders, sizeof contenders, "%zu", threads);
    snprintf(seconds, sizeof seconds, "%.3f", (double)ms / 1000);
    const struct child_plan plan = {
        .argv = (const char *[]){"/usr/bin/python3", "-B", script, config->zookeeper_connect, contenders,
                                 seconds, NULL},
        .log = "/dev/null",
        .death_signal = SIGKILL,
    };
    char *text = child_output(plan, ms + EXTRA_MS, OUTPUT_MAX);
    bool well = text && sscanf(text, "%lf", ret_per_s) == 1 && *ret_per_s > 0;
    free(text);
    return well || fail(ret_reason, "kazoo failed or is missing: install the package python3-kazoo");
}
