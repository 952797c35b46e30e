/* What the benchmark (bench/) needs in C: loops over the service's own locks, and over the bare calls of their servers; its script in
 * Redis; its SQL as text. Each call measures one thing on the servers that the environment names, and prints it. */
#include "db/postgres/statements.h"
#include "tools/lockbench/lockbench.h"
#include "tools/lockbench/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MOST = 256, SECONDS_MOST = 3600, PATIENCE_S = 300 };

static const char USAGE[] = "usage: lockbench locks\n"
                            "       lockbench statements\n"
                            "       lockbench cycles LOCK THREADS MS [one-key]\n"
                            "       lockbench hand-overs LOCK THREADS MS\n"
                            "       lockbench etcd|zookeeper|redis-stock THREADS MS\n";

/* The names of all locks, each with its server, or "-" if it is in the process's memory. */
static void print_locks(void)
{
    for (size_t i = 0; all_locks[i]; i++)
        printf("%s %s\n", all_locks[i]->name, all_locks[i]->server ? all_locks[i]->server->name : "-");
}

/* The statements of an order: name, number of parameters, and SQL, each ended by NUL. */
static void print_statements(void)
{
    const struct {
        const char *name;
        const struct statement *statement;
    } ROWS[] = {
        {"begin", &ST_BEGIN[DB_READ_COMMITTED]},
        {"commit", &ST_COMMIT},
        {"read-for-update", &ST_READ_FOR_UPDATE},
        {"write-target", &ST_STOCK_WRITE_TARGET},
        {"guarded", &ST_GUARDED},
        {"insert-order", &ST_INSERT_ORDER},
        {"place-in-one", &ST_PLACE_IN_ONE},
        {"insert-batch", &ST_INSERT_BATCH},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        printf("%s%c%d%c%s%c", ROWS[i].name, 0, ROWS[i].statement->parameters, 0, ROWS[i].statement->sql, 0);
}

/* A number of 1 to MOST; ends the program if TEXT is none. */
static int64_t number(const char *text, int64_t most)
{
    char *end;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (value < 1 || value > most || *end)
        die("%s", USAGE);
    return value;
}

static const struct lock_driver *find_lock(const char *name)
{
    for (size_t i = 0; all_locks[i]; i++)
        if (strcmp(all_locks[i]->name, name) == 0)
            return all_locks[i];
    die("there is no lock '%s'", name);
}

static void print_rate(double per_s)
{
    if (per_s <= 0)
        die("the lock was not acquired once");
    printf("%.6f\n", per_s);
}

/* WORDS, ended by NULL: a lock for verbs about one, the threads, the milliseconds, and for cycles perhaps "one-key". */
static void measure(const char *verb, char *const *words)
{
    bool cycles = strcmp(verb, "cycles") == 0, hand_overs = strcmp(verb, "hand-overs") == 0;
    const struct lock_driver *lock = (cycles || hand_overs) && words[0] ? find_lock(*words++) : NULL;
    size_t threads = (size_t)number(words[0], THREADS_MOST);
    int64_t ms = number(words[1], SECONDS_MOST * INT64_C(1000));
    bool one_key = cycles && words[2] && strcmp(words[2], "one-key") == 0;
    if (words[2] && !one_key)
        die("%s", USAGE);
    alarm((unsigned)(ms / 1000) + PATIENCE_S); /* no wait may be endless */
    if (hand_overs) {
        struct hand_overs seen = lock_hand_overs(lock, threads, ms);
        printf("%.6f %.6f %.6f\n", seen.median_ms, seen.wake_ups, seen.together);
    } else if (cycles)
        print_rate(lock_cycles(lock, one_key, threads, ms));
    else if (strcmp(verb, "etcd") == 0)
        print_rate(etcd_bare_cycles(threads, ms));
    else if (strcmp(verb, "zookeeper") == 0)
        print_rate(zookeeper_bare_cycles(threads, ms));
    else if (strcmp(verb, "redis-stock") == 0)
        print_rate(redis_stock_takes(threads, ms));
    else
        die("%s", USAGE);
}

int main(int argc, char **argv)
{
    char error[200];
    if (!lock_configure_from_environment(error, sizeof error))
        die("%s", error);
    srandom((unsigned)getpid()); /* the jitter of locks that poll */
    if (argc < 2)
        die("%s", USAGE);
    if (strcmp(argv[1], "locks") == 0)
        print_locks();
    else if (strcmp(argv[1], "statements") == 0)
        print_statements();
    else
        measure(argv[1], argv + 2);
    return fflush(stdout) == 0 ? 0 : 1;
}
