/* lockrun's command line: which lock, for how long, and around what. */
#include "service/engine/strategy.h"
#include "tools/lockrun/main.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that another process can see: a mutex in this one's memory would keep nobody out. */
static void print_locks(FILE *to)
{
    for (size_t i = 0; i < strategy_count; i++)
        if (strategies[i].lock && strategies[i].lock->server)
            fprintf(to, " %s", strategies[i].name);
    fprintf(to, "\n");
}

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: lockrun --lock LOCK --name NAME [--ttl TIME] [--wait TIME] [--no-renew] -- COMMAND [ARGUMENT…]\n\n"
        "Runs a command while it holds a lock. The order service, other runs of lockrun and foreign clients of\n"
        "this kind of lock cannot hold the same name at the same time.\n\n"
        "Example:\n"
        "  eval \"$(stack/stack env)\"\n"
        "  lockrun --lock redis-lock --name product:1 -- sh -c 'echo nobody sells product 1; sleep 5'\n\n"
        "  --lock LOCK    Kind of lock: a name of the list below.\n"
        "  --name NAME    Name of the lock: 1 to %d of A-Z a-z 0-9 : . _ -\n"
        "  --ttl TIME     Lease of the lock, or ZooKeeper's session timeout. lockrun renews it. (default: 30s)\n"
        "  --wait TIME    Time to wait for the lock; 0s: try once. (default: 10s)\n"
        "  --no-renew     Do not renew the lease.\n"
        "  --help         Print this text.\n\n"
        "TIME has a unit: 250ms, 2s, 1m.\n\n"
        "If the lock has fencing tokens, COMMAND finds its token in the variable LOCK_FENCE. If the lock is lost,\n"
        "lockrun sends SIGTERM to COMMAND. It forwards INT, TERM and HUP, and COMMAND ends when lockrun ends.\n\n"
        "Exit status: that of COMMAND, or 128+N if signal N killed it; 2 wrong usage, 69 the lock's server is not\n"
        "reachable, 70 lockrun failed (no memory), 75 no lock within the wait, 126 COMMAND cannot be executed,\n"
        "127 COMMAND was not found.\n\n"
        "Addresses of the servers: LOCK_DATABASE_URL (else DATABASE_URL), REDIS_URL, REDLOCK_URLS,\n"
        "ZOOKEEPER_CONNECT, ETCD_ENDPOINTS. Prefix of all keys: LOCK_PREFIX (default: oversell).\n\n"
        "More examples:\n"
        "  lockrun --lock etcd --name nightly --ttl 1m --wait 0s -- ./report || [ $? -eq 75 ]\n"
        "  lockrun --lock zookeeper --name deploy --wait 5m -- sh -c './deploy --fence \"$LOCK_FENCE\"'\n\n"
        "Locks:",
        LOCK_NAME_MAX);
    print_locks(to);
}

/* "250ms", "2s", "1m" in milliseconds; false where it is nothing of the kind, or more than a day. */
static bool parse_duration(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}};
    char *unit;
    errno = 0;
    long long amount = strtoll(text, &unit, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0 && isdigit((unsigned char)text[0]) && !errno &&
            amount <= 24 * 3600000LL / units[i].ms) {
            *ret_ms = amount * units[i].ms;
            return true;
        }
    return false;
}

/* Says what is wrong, and what would be valid. */
static bool check_lock(const char *name, const struct lock_driver *lock)
{
    if (lock && lock->server)
        return true;
    if (lock)
        fprintf(
            stderr,
            "lockrun: '%s' is in the memory of one process, so it excludes no other process; valid:", name);
    else
        fprintf(stderr, "lockrun: unknown lock '%s'; valid:", name);
    print_locks(stderr);
    return false;
}

static bool check(const char *lock_name, const struct lockrun_options *options)
{
    const char *wrong = NULL;
    if (!lock_name || !options->name || !options->command[0])
        wrong = "--lock, --name or the command is missing; see --help";
    else if (!lock_is_name(options->name))
        wrong = "--name is not valid; valid: 1 to 64 of A-Z a-z 0-9 : . _ -";
    else if (options->ttl_ms < 10)
        wrong = "--ttl is not valid; valid: 10ms or more, such as 250ms, 2s or 1m";
    else if (options->wait_ms < 0)
        wrong = "--wait is not valid; valid: 0s or more, such as 250ms, 2s or 1m";
    if (wrong)
        fprintf(stderr, "lockrun: %s\n", wrong);
    return !wrong && check_lock(lock_name, options->lock);
}

bool lockrun_read_options(int argc, char *argv[], struct lockrun_options *ret_options, int *ret_status)
{
    static const struct option known[] = {
        {"lock", required_argument, NULL, 'l'},
        {"name", required_argument, NULL, 'n'},
        {"ttl", required_argument, NULL, 't'},
        {"wait", required_argument, NULL, 'w'},
        {"no-renew", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *lock_name = NULL;
    struct lockrun_options options = {.ttl_ms = 30000, .wait_ms = 10000};
    *ret_status = EXIT_USAGE;
    for (int option; (option = getopt_long(argc, argv, "+h", known, NULL)) != -1;) {
        switch (option) {
        case 'l': lock_name = optarg; break;
        case 'n': options.name = optarg; break;
        case 't':
            if (!parse_duration(optarg, &options.ttl_ms))
                options.ttl_ms = -1;
            break;
        case 'w':
            if (!parse_duration(optarg, &options.wait_ms))
                options.wait_ms = -1;
            break;
        case 'r': options.no_renew = true; break;
        case 'h':
            print_help(stdout);
            *ret_status = 0;
            return false;
        default: fprintf(stderr, "lockrun: see --help\n"); return false;
        }
    }
    options.command = argv + optind;
    options.lock = lock_name ? strategy_lock(lock_name) : NULL;
    if (!check(lock_name, &options) || !options.lock)
        return false;
    *ret_options = options;
    return true;
}
