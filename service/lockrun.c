/* Runs a command while holding a lock, as flock(1) and `etcdctl lock` do, with any lock that is more than this process's.
 *
 * The main thread acquires, starts the command and asks now and then whether the lock still holds; a second thread
 * takes the signals and passes them on. */
#include "lock/lock.h"
#include "service/strategy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum exit_status {
    EXIT_USAGE = 2,
    EXIT_AWAY = 69,     /* EX_UNAVAILABLE of sysexits.h: the lock's server does not serve */
    EXIT_OURS = 70,     /* EX_SOFTWARE: out of memory, threads or processes */
    EXIT_NOT_GOT = 75,  /* EX_TEMPFAIL: not got in time */
    EXIT_CANNOT = 126,  /* as shells have it: found, but not executable … */
    EXIT_MISSING = 127, /* … and not found */
    EXIT_SIGNAL = 128,  /* … and the number of the signal that ended it */
};

enum { INHERITED_MAX = 256, CHECK_MS = 1000, NAME_MAX_BYTES = 64 };

struct options {
    const struct lock_ops *lock;
    const char *name;
    int64_t ttl_ms, wait_ms;
    bool no_renew;
    char **command;
};

/* ---- options --------------------------------------------------------------------------------------------- */

/* The lock of a strategy, or of its own name where no strategy uses it. NULL where there is none. */
static const struct lock_ops *find_lock(const char *name)
{
    const struct strategy *strategy = strategy_find(name);
    if (strategy && strategy->lock)
        return strategy->lock;
    for (const struct lock_ops *const *lock = all_locks; *lock; lock++)
        if (strcmp((*lock)->name, name) == 0)
            return *lock;
    return NULL;
}

/* Those that another process can see: a mutex in this one's memory would keep nobody out. */
static void print_locks(FILE *to)
{
    for (const struct lock_ops *const *lock = all_locks; *lock; lock++)
        if ((*lock)->server)
            fprintf(to, " %s", (*lock)->name);
    for (size_t i = 0; i < strategy_count; i++) {
        const struct lock_ops *lock = strategies[i].lock;
        if (lock && lock->server && strcmp(lock->name, strategies[i].name) != 0)
            fprintf(to, " %s", strategies[i].name);
    }
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
        "  --ttl TIME     the lease, or ZooKeeper's session time-out (default 30s); prolonged while COMMAND runs\n"
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
        NAME_MAX_BYTES);
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

static bool is_name(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:._-");
    return length > 0 && length <= NAME_MAX_BYTES && !text[length];
}

/* Says what is wrong, and what would be valid. */
static bool check_lock(const char *name, const struct lock_ops *lock)
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

static bool check(const char *lock_name, const struct options *options)
{
    const char *wrong = NULL;
    if (!lock_name || !options->name || !options->command[0])
        wrong = "--lock, --name and a command are needed; see --help";
    else if (!is_name(options->name))
        wrong = "--name is not valid; valid: 1 to 64 of A-Z a-z 0-9 : . _ -";
    else if (options->ttl_ms < 10)
        wrong = "--ttl is not valid; valid: 10ms and more, as 250ms, 2s or 1m";
    else if (options->wait_ms < 0)
        wrong = "--wait is not valid; valid: 0s and more, as 250ms, 2s or 1m";
    if (wrong)
        fprintf(stderr, "lockrun: %s\n", wrong);
    return !wrong && check_lock(lock_name, options->lock);
}

/* 0, or what to exit with in *RET_STATUS. */
static bool read_options(int argc, char *argv[], struct options *ret_options, int *ret_status)
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
    struct options options = {.ttl_ms = 30000, .wait_ms = 10000};
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
    options.lock = lock_name ? find_lock(lock_name) : NULL;
    if (!check(lock_name, &options) || !options.lock)
        return false;
    *ret_options = options;
    return true;
}

/* ---- signals --------------------------------------------------------------------------------------------- */

static pthread_mutex_t child_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t child; /* the command while it runs */
enum { NOT_STARTED = 0, ENDED = -1 };

static void die_of(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

static void signal_child(int number)
{
    pthread_mutex_lock(&child_mutex);
    if (child > 0)
        kill(child, number);
    pthread_mutex_unlock(&child_mutex);
}

/* Takes signals from the start to the end: while the lock is waited for they end lockrun at once. */
static void *pass_signals_on(void *arg)
{
    const sigset_t *signals = arg;
    while (true) {
        siginfo_t info;
        int number = sigwaitinfo(signals, &info);
        if (number < 0)
            continue;
        pthread_mutex_lock(&child_mutex);
        if (child == NOT_STARTED)
            die_of(number);
        else if (child > 0 && info.si_code != SI_KERNEL) /* the terminal's went to the command as well */
            kill(child, number);
        pthread_mutex_unlock(&child_mutex);
    }
    return NULL;
}

/* Blocks them in every thread that will be; those of the command are in *RET_BEFORE. */
static bool take_signals(sigset_t *ret_before)
{
    static sigset_t passed;
    sigset_t all;
    pthread_t thread;
    sigemptyset(&passed);
    sigaddset(&passed, SIGINT);
    sigaddset(&passed, SIGTERM);
    sigaddset(&passed, SIGHUP);
    all = passed;
    sigaddset(&all, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the command's status away */
    pthread_sigmask(SIG_BLOCK, &all, ret_before);
    if (pthread_create(&thread, NULL, pass_signals_on, &passed) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

/* ---- the command ----------------------------------------------------------------------------------------- */

/* Descriptors that we were given, and pass on; what we open ourselves, such as the lock's connection, is not the
 * command's: it would keep a lock that dies with its connection alive after us. */
static unsigned inherited[INHERITED_MAX];
static int inherited_count;

static int compare(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    return (left > right) - (left < right);
}

static void note_inherited(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) && inherited_count < INHERITED_MAX) {
        unsigned fd = (unsigned)strtoul(entry->d_name, NULL, 10);
        if (isdigit((unsigned char)entry->d_name[0]) && fd > 2 && fd != (unsigned)dirfd(folder))
            inherited[inherited_count++] = fd;
    }
    if (folder)
        closedir(folder);
    qsort(inherited, (size_t)inherited_count, sizeof inherited[0], compare);
}

/* In the child. */
static void close_ours(void)
{
    unsigned first = 3;
    for (int i = 0; i < inherited_count; first = inherited[i++] + 1)
        if (first < inherited[i])
            close_range(first, inherited[i] - 1, CLOSE_RANGE_CLOEXEC);
    close_range(first, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* In the child, after fork() in a process with threads: system calls only. REPORT gets errno where it fails. */
static void become(char *const command[], pid_t parent, const sigset_t *mask, int report)
{
    /* Whoever kills us kills the command; it may have happened before we could ask for that. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(EXIT_OURS);
    close_ours();
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(error == ENOENT ? EXIT_MISSING : EXIT_CANNOT);
}

/* Starts the command; 0, or what to exit with. The child's mutex is held, so that a signal finds the child. */
static int start(char *const command[], const sigset_t *mask)
{
    int report[2], error = 0;
    if (pipe2(report, O_CLOEXEC) != 0) {
        fprintf(stderr, "lockrun: pipe: %s\n", strerror(errno));
        return EXIT_OURS;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(command, parent, mask, report[1]);
    child = pid > 0 ? pid : ENDED;
    close(report[1]);
    if (pid < 0) {
        fprintf(stderr, "lockrun: fork: %s\n", strerror(errno));
        close(report[0]);
        return EXIT_OURS;
    }
    ssize_t got;
    while ((got = read(report[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(report[0]);
    if (got == (ssize_t)sizeof error)
        fprintf(stderr, "lockrun: %s: %s\n", command[0], strerror(error));
    return 0;
}

/* Has the command ended within MS? Then its exit status as shells have it is in *RET_STATUS. */
static bool has_ended(int64_t ms, int *ret_status)
{
    int status = EXIT_OURS << 8;
    sigset_t death;
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    sigemptyset(&death);
    sigaddset(&death, SIGCHLD);
    (void)sigtimedwait(&death, NULL, &limit);
    pthread_mutex_lock(&child_mutex); /* nobody signals a number that is free again */
    bool ended = waitpid(child, &status, WNOHANG) != 0;
    if (ended)
        child = ENDED;
    pthread_mutex_unlock(&child_mutex);
    if (ended)
        *ret_status = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    return ended;
}

/* Still ours? Where there is a lease that nobody else prolongs, asking prolongs it. */
static enum lock_status ask(struct lock *lock, const struct lock_grant *grant)
{
    const struct lock_ops *ops = lock->ops;
    bool ours_to_renew = ops->renew && !ops->properties.renewed && !lock->lease_ends;
    lock->error[0] = '\0';
    return ours_to_renew ? ops->renew(lock, grant) : ops->still_held(lock, grant);
}

/* Waits for the command's end and tells it, once, when the lock is lost. Where the lock's server does not answer for
 * as long as a lease, nobody has prolonged it, and it is lost as well. */
static int wait_for_command(struct lock *lock, const struct lock_grant *grant)
{
    int64_t every_ms = lock->lease_ms / 3 < CHECK_MS ? lock->lease_ms / 3 + 1 : CHECK_MS;
    int64_t sure_us = monotonic_us();
    bool told = false;
    int status;
    while (!has_ended(every_ms, &status)) {
        int64_t now_us = monotonic_us();
        enum lock_status held = told ? LOCK_OK : ask(lock, grant);
        if (held == LOCK_OK)
            sure_us = now_us;
        else if (held == LOCK_LOST || held == LOCK_NOT_OWNER || now_us - sure_us > lock->lease_ms * 1000) {
            fprintf(stderr, "lockrun: the lock was lost (%s): the command is told to end\n",
                    lock->error[0] ? lock->error : lock_status_name(held));
            signal_child(SIGTERM);
            told = true;
        }
    }
    return status;
}

/* ---- start ----------------------------------------------------------------------------------------------- */

static const char *from_environment(const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? value : otherwise;
}

static void configure(void)
{
    lock_configure(&(struct lock_config){
        .database_url = from_environment("LOCK_DATABASE_URL", from_environment("DATABASE_URL", "")),
        .redis_url = from_environment("REDIS_URL", ""),
        .redlock_urls = from_environment("REDLOCK_URLS", ""),
        .zookeeper_connect = from_environment("ZOOKEEPER_CONNECT", ""),
        .etcd_endpoints = from_environment("ETCD_ENDPOINTS", ""),
        .prefix = from_environment("LOCK_PREFIX", "oversell"),
    });
}

/* Why the lock was not got, in words and as the exit status. */
static int explain(const struct options *options, const struct lock *lock, enum lock_status status)
{
    const struct lock_server *server = options->lock->server;
    const char *error = lock && lock->error[0] ? lock->error : lock_status_name(status);
    switch (status) {
    case LOCK_BUSY:
        fprintf(stderr, "lockrun: %s was not got within %lld ms\n", options->name,
                (long long)options->wait_ms);
        return EXIT_NOT_GOT;
    case LOCK_UNAVAILABLE:
        fprintf(stderr, "lockrun: %s is not set: no %s\n", server->setting, server->name);
        return EXIT_AWAY;
    case LOCK_AWAY:
    case LOCK_REFUSED: fprintf(stderr, "lockrun: %s: %s\n", server->name, error); return EXIT_AWAY;
    default: fprintf(stderr, "lockrun: %s\n", error); return EXIT_OURS;
    }
}

static void tell_fence(const struct lock_grant *grant)
{
    char fence[24];
    snprintf(fence, sizeof fence, "%lld", (long long)grant->fence);
    if (grant->fence > 0)
        setenv("LOCK_FENCE", fence, 1);
    else
        unsetenv("LOCK_FENCE");
}

/* Acquires, runs, releases; returns the exit status. */
static int run(const struct options *options, struct lock *lock, const sigset_t *mask)
{
    struct lock_grant grant;
    lock->lease_ms = options->ttl_ms;
    lock->lease_ends = options->no_renew;
    enum lock_status status = lock_acquire(lock, options->name, monotonic_us() + options->wait_ms * 1000,
                                           &grant);
    if (status != LOCK_OK)
        return explain(options, lock, status);
    tell_fence(&grant);
    /* A signal from here on is for the command: ended by it now, we would leave the lock behind. */
    pthread_mutex_lock(&child_mutex);
    int exit_status = start(options->command, mask);
    pthread_mutex_unlock(&child_mutex);
    if (exit_status == 0)
        exit_status = wait_for_command(lock, &grant);
    status = lock_release(lock, &grant);
    if (status != LOCK_OK)
        fprintf(stderr, "lockrun: the lock was not released: %s\n",
                lock->error[0] ? lock->error : lock_status_name(status));
    return exit_status;
}

int main(int argc, char *argv[])
{
    struct options options;
    struct lock *lock = NULL;
    sigset_t mask;
    int exit_status;
    note_inherited();
    if (!read_options(argc, argv, &options, &exit_status))
        return exit_status;
    if (!take_signals(&mask)) {
        fprintf(stderr, "lockrun: no thread for signals\n");
        return EXIT_OURS;
    }
    srandom((unsigned)monotonic_us()); /* the jitter of locks that poll */
    configure();
    enum lock_status status = lock_open(options.lock, &lock);
    exit_status = status == LOCK_OK ? run(&options, lock, &mask) : explain(&options, NULL, status);
    lock_close(lock);
    return exit_status;
}
