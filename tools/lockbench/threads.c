/* Runs threads that repeat the same action concurrently for a given time. */
#include "tools/lockbench/threads.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct team {
    const struct thread_work *work;
    void *shared;
    pthread_barrier_t ready, started; /* all have begun; the end is known */
    int64_t end_us;
};

struct member {
    struct team *team;
    size_t number;
    pthread_t thread;
    int64_t turns; /* that ended in time */
};

void die(const char *format, ...)
{
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER; /* the other threads fail as a consequence */
    va_list arguments;
    pthread_mutex_lock(&first);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

static void *be_member(void *argument)
{
    struct member *m = argument;
    struct team *team = m->team;
    void *own = calloc(1, team->work->size);
    if (!own)
        die("out of memory");
    team->work->begin(own, team->shared, m->number);
    (void)pthread_barrier_wait(&team->ready);
    (void)pthread_barrier_wait(&team->started);
    while (monotonic_us() < team->end_us) {
        team->work->turn(own, team->end_us);
        m->turns += monotonic_us() <= team->end_us;
    }
    team->work->end(own);
    free(own);
    return NULL;
}

/* The waits at the barriers end with the program, which has a time limit (main.c). */
double threads_run(const struct thread_work *work, void *shared, size_t threads, int64_t ms)
{
    struct team team = {.work = work, .shared = shared};
    struct member *members = calloc(threads, sizeof *members);
    int64_t turns = 0;
    if (!members || pthread_barrier_init(&team.ready, NULL, (unsigned)threads + 1) != 0 ||
        pthread_barrier_init(&team.started, NULL, (unsigned)threads + 1) != 0)
        die("out of memory");
    for (size_t i = 0; i < threads; i++) {
        members[i] = (struct member){.team = &team, .number = i};
        if (pthread_create(&members[i].thread, NULL, be_member, &members[i]) != 0)
            die("cannot start more threads");
    }
    (void)pthread_barrier_wait(&team.ready);
    team.end_us = monotonic_us() + ms * 1000;
    (void)pthread_barrier_wait(&team.started);
    for (size_t i = 0; i < threads; i++) {
        pthread_join(members[i].thread, NULL);
        turns += members[i].turns;
    }
    pthread_barrier_destroy(&team.ready);
    pthread_barrier_destroy(&team.started);
    free(members);
    return (double)turns * 1000 / (double)ms;
}
