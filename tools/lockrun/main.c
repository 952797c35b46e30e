/* Runs a command while holding a lock, as flock(1) and `etcdctl lock` do, with any lock that is more than this process's.
 *
 * The main thread acquires, starts the command and asks now and then whether the lock still holds; a second thread
 * takes the signals and passes them on (tools/lockrun/command.c). */
#include "tools/lockrun/main.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHECK_MS = 1000 };

/* Waits for the command's end and tells it, once, when the lock is lost. Where the lock's server does not answer for
 * as long as a lease, nobody has prolonged it, and it is lost as well. */
static int wait_for_command(struct lock *lock, const struct lock_grant *grant)
{
    int64_t every_ms = lock->lease_ms / 3 < CHECK_MS ? lock->lease_ms / 3 + 1 : CHECK_MS;
    int64_t sure_us = monotonic_us();
    bool told = false;
    int status;
    while (!lockrun_has_ended(every_ms, &status)) {
        int64_t now_us = monotonic_us();
        lock->error[0] = '\0';
        enum lock_status held = told ? LOCK_OK : lock->driver->still_held(lock, grant);
        if (held == LOCK_OK)
            sure_us = now_us;
        else if (held == LOCK_LOST || held == LOCK_NOT_OWNER || now_us - sure_us > lock->lease_ms * 1000) {
            fprintf(stderr, "lockrun: the lock was lost (%s): sent SIGTERM to the command\n",
                    lock->error[0] ? lock->error : lock_status_name(held));
            lockrun_signal(SIGTERM);
            told = true;
        }
    }
    return status;
}

/* Why the lock was not got, in words and as the exit status. */
static int explain(const struct lockrun_options *options, const struct lock *lock, enum lock_status status)
{
    const struct lock_server *server = options->lock->server;
    const char *error = lock && lock->error[0] ? lock->error : lock_status_name(status);
    switch (status) {
    case LOCK_TIMED_OUT:
        fprintf(stderr, "lockrun: no lock on %s within %lld ms: another process holds it\n", options->name,
                (long long)options->wait_ms);
        return EXIT_NOT_GOT;
    case LOCK_UNAVAILABLE:
        fprintf(stderr, "lockrun: %s is not set: set it to the address of %s\n", server->setting,
                server->name);
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
static int run_command(const struct lockrun_options *options, struct lock *lock, const sigset_t *mask)
{
    struct lock_grant grant;
    lock->lease_ms = options->ttl_ms;
    lock->lease_ends = options->no_renew;
    lock->lease_renewed = !options->no_renew;
    enum lock_status status = lock_acquire(lock, options->name, monotonic_us() + options->wait_ms * 1000,
                                           &grant);
    if (status != LOCK_OK)
        return explain(options, lock, status);
    tell_fence(&grant);
    int exit_status = lockrun_start(options->command, mask);
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
    struct lockrun_options options;
    struct lock *lock = NULL;
    sigset_t mask;
    int exit_status;
    char error[200];
    lockrun_note_inherited();
    if (!lockrun_read_options(argc, argv, &options, &exit_status))
        return exit_status;
    if (!lock_configure_from_environment(error, sizeof error)) {
        fprintf(stderr, "lockrun: %s\n", error);
        return EXIT_USAGE;
    }
    if (!lockrun_take_signals(&mask)) {
        fprintf(stderr, "lockrun: cannot start a thread for signals\n");
        return EXIT_OURS;
    }
    srandom((unsigned)monotonic_us()); /* the jitter of locks that poll */
    enum lock_status status = lock_open(options.lock, &lock);
    exit_status = status == LOCK_OK ? run_command(&options, lock, &mask) : explain(&options, NULL, status);
    lock_close(lock);
    return exit_status;
}
