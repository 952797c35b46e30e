/* Turns SIGINT (Ctrl-C) and similar signals into a flag. Every wait checks it, so the program can clean up and exit. */
#include "loadtest/cli/interrupt.h"

#include "base/clock.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t signal_seen;

static void remember(int signal_number)
{
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
    return signal_seen;
}

bool sleep_unless_interrupted(int64_t ms)
{
    int64_t end = monotonic_us() + ms * 1000;
    while (!signal_seen) {
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
