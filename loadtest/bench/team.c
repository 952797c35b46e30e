/* Threads that do the same thing again and again, side by side, for a given time. */
#include "loadtest/bench/team.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 50

struct member {
    struct team *team;
    size_t number;
    pthread_t thread;
    void *own;
    int64_t turns; /* that ended in time */
    bool well;
    char reason[REASON_SIZE];
};

struct team {
    const struct team_work *work;
    void *shared;
    pthread_mutex_t mutex; /* of the four that follow */
    pthread_cond_t changed;
    size_t ready; /* members that have begun */
    bool started;
    int64_t end_us;
    atomic_bool stopped; /* before the time is up */
};

/* ---- a member ------------------------------------------------------------------------------------------------- */

/* Waits until all others have begun as well; returns when the work ends. */
static int64_t wait_for_start(struct team *team)
{
    pthread_mutex_lock(&team->mutex);
    team->ready++;
    pthread_cond_broadcast(&team->changed);
    while (!team->started)
        pthread_cond_wait(&team->changed, &team->mutex);
    int64_t end_us = team->end_us;
    pthread_mutex_unlock(&team->mutex);
    return end_us;
}

static void *be_member(void *argument)
{
    struct member *m = argument;
    struct team *team = m->team;
    m->well = team->work->begin(m->own, team->shared, m->number, m->reason);
    int64_t end_us = wait_for_start(team);
    while (m->well && !atomic_load(&team->stopped) && monotonic_us() < end_us) {
        m->well = team->work->turn(m->own, end_us, m->reason);
        m->turns += m->well && monotonic_us() <= end_us;
    }
    if (!m->well)
        atomic_store(&team->stopped, true);
    team->work->end(m->own);
    return NULL;
}

/* ---- the team ------------------------------------------------------------------------------------------------- */

static bool fail(char *ret_reason, const char *words)
{
    snprintf(ret_reason, REASON_SIZE, "%s", words);
    return false;
}

/* Starts as many threads as can be had; the rest are missing. */
static size_t start_members(struct team *team, struct member *members, size_t threads)
{
    size_t count = 0;
    for (; count < threads; count++) {
        struct member *m = &members[count];
        *m = (struct member){.team = team, .number = count, .own = calloc(1, team->work->size)};
        if (!m->own || pthread_create(&m->thread, NULL, be_member, m) != 0) {
            free(m->own);
            break;
        }
    }
    return count;
}

/* Lets them go together; returns when the time is up, or one of them has failed, or at an interrupt. */
static void lead(struct team *team, size_t count, int64_t ms, struct progress *progress)
{
    int64_t left_us = ms * 1000;
    pthread_mutex_lock(&team->mutex);
    while (team->ready < count)
        pthread_cond_wait(&team->changed, &team->mutex);
    int64_t end_us = team->end_us = monotonic_us() + left_us;
    team->started = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->mutex);
    while (left_us > 0 && !atomic_load(&team->stopped)) {
        int64_t left_ms = (left_us + 999) / 1000;
        if (!sleep_unless_interrupted(left_ms < LOOK_MS ? left_ms : LOOK_MS))
            atomic_store(&team->stopped, true);
        left_us = end_us - monotonic_us();
        if (progress)
            progress_update(progress, 1 - (double)left_us / 1000 / (double)ms, "");
    }
}

bool team_run(const struct team_work *work, void *shared, size_t threads, int64_t ms,
              struct progress *progress, double *ret_per_s, char *ret_reason)
{
    struct team team = {.work = work,
                        .shared = shared,
                        .mutex = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    struct member *members = calloc(threads, sizeof *members);
    if (!members)
        return fail(ret_reason, "out of memory");
    size_t count = start_members(&team, members, threads);
    bool well = count == threads || fail(ret_reason, "no more threads can be had");
    atomic_store(&team.stopped, !well);
    lead(&team, count, ms, progress);

    int64_t turns = 0;
    for (size_t i = 0; i < count; i++) {
        pthread_join(members[i].thread, NULL);
        turns += members[i].turns;
        free(members[i].own);
        if (well && !members[i].well)
            well = fail(ret_reason, members[i].reason);
    }
    free(members);
    *ret_per_s = (double)turns * 1000 / (double)ms;
    if (well && interrupted())
        return fail(ret_reason, "");
    return well;
}
