/* Turns SIGINT (Ctrl-C) and similar signals into a flag. Every wait checks it, so the program can clean up and exit. */
#include "loadtest/cli/interrupt.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t signal_seen;
static volatile sig_atomic_t signals;
static bool has_shown;
static volatile int64_t first_us; /* when the first signal came */
static int64_t grace_us;

static void remember(int signal_number)
{
    /* In this sequence: another thread may ask in between. */
    if (signals == 0)
        first_us = monotonic_us();
    signals++;
    signal_seen = signal_number;
}

void interrupt_watch(void)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    /* No SA_RESTART: a call that sleeps returns at once. */
    struct sigaction action = {.sa_handler = remember};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        (void)sigaction(SIGNALS[i], &action, NULL); /* cannot fail: the numbers are valid */
    (void)signal(SIGPIPE, SIG_IGN);
}

int interrupted(void)
{
    bool waits = signals == 1 && monotonic_us() < first_us + grace_us;
    return waits ? 0 : signal_seen;
}

int interrupt_came(void)
{
    return signal_seen;
}

void interrupt_grace(int64_t ms)
{
    grace_us = ms * 1000;
}

bool sleep_unless_interrupted(int64_t ms)
{
    int64_t end = monotonic_us() + ms * 1000;
    while (!interrupted()) {
        int64_t left_us = end - monotonic_us();
        if (left_us <= 0)
            return true;
        /* In slices, since a signal between the look and the sleep would be slept through. */
        if (left_us > 50000)
            left_us = 50000;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)left_us * 1000}, NULL);
    }
    return false;
}

void interrupt_shown(void)
{
    has_shown = true;
}

int interrupt_status(int status)
{
    if (!signal_seen)
        return status;
    if (!has_shown)
        complain("interrupted before there was a result");
    return 128 + signal_seen;
}
