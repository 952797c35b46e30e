/* Runs threads that repeat the same action concurrently for a given time. */
#include "loadtest/bench/threads.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"
#include "lock/lock_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 50
#define BEGIN_US 300000000 /* for all threads to begin; each of their calls has its own, shorter time limit */

struct member {
    struct thread_group *group;
    size_t number;
    pthread_t thread;
    void *own;
    int64_t turns; /* that ended in time */
    bool well;
    char reason[REASON_SIZE];
};

struct thread_group {
    const struct thread_work *work;
    void *shared;
    pthread_mutex_t mutex; /* of the three that follow */
    pthread_cond_t changed;
    size_t ready;        /* members that have begun */
    int64_t end_us;      /* of the work; 0: it has not started */
    atomic_bool stopped; /* before the time is up */
};

/* ---- a member ------------------------------------------------------------------------------------------------- */

/* Waits until all others have begun as well; returns when the work ends, 0 if they have not begun in time. */
static int64_t wait_for_start(struct thread_group *group)
{
    pthread_mutex_lock(&group->mutex);
    group->ready++;
    pthread_cond_broadcast(&group->changed);
    for (int64_t until_us = monotonic_us() + BEGIN_US; group->end_us == 0;)
        if (!wait_until(&group->changed, &group->mutex, until_us))
            break;
    int64_t end_us = group->end_us;
    pthread_mutex_unlock(&group->mutex);
    return end_us;
}

static void *be_member(void *argument)
{
    struct member *m = argument;
    struct thread_group *group = m->group;
    m->well = group->work->begin(m->own, group->shared, m->number, m->reason);
    int64_t end_us = wait_for_start(group);
    while (m->well && !atomic_load(&group->stopped) && monotonic_us() < end_us) {
        m->well = group->work->turn(m->own, end_us, m->reason);
        m->turns += m->well && monotonic_us() <= end_us;
    }
    if (!m->well)
        atomic_store(&group->stopped, true);
    group->work->end(m->own);
    return NULL;
}

/* ---- the group ------------------------------------------------------------------------------------------------- */

static bool fail(char *ret_reason, const char *words)
{
    snprintf(ret_reason, REASON_SIZE, "%s", words);
    return false;
}

/* Starts as many threads as can be had; the rest are missing. */
static size_t start_members(struct thread_group *group, struct member *members, size_t threads)
{
    size_t count = 0;
    for (; count < threads; count++) {
        struct member *m = &members[count];
        *m = (struct member){.group = group, .number = count, .own = calloc(1, group->work->size)};
        if (!m->own || pthread_create(&m->thread, NULL, be_member, m) != 0) {
            free(m->own);
            break;
        }
    }
    return count;
}

/* Starts the work of all threads together; returns when the time is up, or one of them has failed, or at an interrupt. False
 * if not all began. */
static bool lead(struct thread_group *group, size_t count, int64_t ms, struct progress *progress)
{
    int64_t left_us = ms * 1000;
    pthread_mutex_lock(&group->mutex);
    for (int64_t until_us = monotonic_us() + BEGIN_US; group->ready < count;)
        if (!wait_until(&group->changed, &group->mutex, until_us)) {
            atomic_store(&group->stopped, true);
            break;
        }
    bool all_began = group->ready == count;
    int64_t end_us = group->end_us = monotonic_us() + left_us;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    while (left_us > 0 && !atomic_load(&group->stopped)) {
        int64_t left_ms = (left_us + 999) / 1000;
        if (!sleep_unless_interrupted(left_ms < LOOK_MS ? left_ms : LOOK_MS))
            atomic_store(&group->stopped, true);
        left_us = end_us - monotonic_us();
        if (progress)
            progress_update(progress, 1 - (double)left_us / 1000 / (double)ms, "");
    }
    return all_began;
}

bool threads_run(const struct thread_work *work, void *shared, size_t threads, int64_t ms,
                 struct progress *progress, double *ret_per_s, char *ret_reason)
{
    struct thread_group group = {.work = work,
                                 .shared = shared,
                                 .mutex = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER};
    struct member *members = calloc(threads, sizeof *members);
    if (!members)
        return fail(ret_reason, "out of memory");
    size_t count = start_members(&group, members, threads);
    bool well = count == threads || fail(ret_reason, "cannot start more threads");
    atomic_store(&group.stopped, !well);
    if (!lead(&group, count, ms, progress) && well)
        well = fail(ret_reason, "a thread did not start in time");

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
