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
        "Usage: lockrun --lock LOCK --name NAME [--ttl 30s] [--wait 10s] [--no-renew] -- COMMAND [ARGUMENT…]\n"
        "Runs a command while holding a lock that all of lockrun, the order service and foreign clients of the\n"
        "same kind of lock respect.\n\n"
        "  --lock LOCK    which kind of lock, see below\n"
        "  --name NAME    the lock's name: 1 to %d of A-Z a-z 0-9 : . _ -\n"
        "  --ttl TIME     the lease, or ZooKeeper's session timeout (default 30s); prolonged while COMMAND runs\n"
        "  --wait TIME    how long to wait for the lock (default 10s); 0s tries once\n"
        "  --no-renew     let the lease end by itself\n"
        "  --help         this text\n\n"
        "TIME is 250ms, 2s or 1m. COMMAND finds the fencing token in LOCK_FENCE, where the lock has one. When the\n"
        "lock is lost while it runs, it gets SIGTERM. It gets INT, TERM and HUP that lockrun gets, and ends with it.\n"
        "The exit status is COMMAND's, 128+N where signal N ended it, or: 2 usage, 69 the lock's server is away,\n"
        "70 out of memory or the like, 75 not got in time, 126 COMMAND cannot be executed, 127 it was not found.\n\n"
        "Addresses: LOCK_DATABASE_URL (else DATABASE_URL), REDIS_URL, REDLOCK_URLS, ZOOKEEPER_CONNECT,\n"
        "ETCD_ENDPOINTS; what names begin with: LOCK_PREFIX (oversell).\n\n"
        "Examples:\n"
        "  eval \"$(stack/stack env)\"\n"
        "  lockrun --lock redis-lock --name product:1 -- sh -c 'echo nobody sells product 1; sleep 5'\n"
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
        fprintf(stderr, "lockrun: '%s' lies in one process's memory and keeps no other out; valid:", name);
    else
        fprintf(stderr, "lockrun: there is no lock '%s'; valid:", name);
    print_locks(stderr);
    return false;
}

static bool check(const char *lock_name, const struct lockrun_options *options)
{
    const char *wrong = NULL;
    if (!lock_name || !options->name || !options->command[0])
        wrong = "--lock, --name and a command are needed; see --help";
    else if (!lock_is_name(options->name))
        wrong = "--name is not valid; valid: 1 to 64 of A-Z a-z 0-9 : . _ -";
    else if (options->ttl_ms < 10)
        wrong = "--ttl is not valid; valid: 10ms and more, as 250ms, 2s or 1m";
    else if (options->wait_ms < 0)
        wrong = "--wait is not valid; valid: 0s and more, as 250ms, 2s or 1m";
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
