/* The local lock in front of redis-registry: one for each key that anybody in the process holds or waits for, and
 * none for the others, so that keys which are used once do not add up. */
#include "lock/redis_local.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct redis_local {
    struct redis_local *next;
    char key[65];
    const struct lock *owner; /* NULL: free */
    int holds;
    int64_t ends_us; /* free from then on, where its owner has abandoned it; else INT64_MAX */
    int users;       /* the owner and those who wait */
    pthread_cond_t freed;
};

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* of all that follows, and of every struct redis_local */
static struct redis_local *all;
static char process_id[PROCESS_ID_SIZE];
static pid_t made_for; /* the process that the two belong to: a forked child begins with neither */

static void begin_anew_after_fork(void)
{
    pid_t me = getpid();
    if (made_for == me)
        return;
    made_for = me;
    all = NULL; /* what the parent's threads hold is not ours to wait for */
    *process_id = '\0';
}

bool redis_local_process_id(char ret_id[static PROCESS_ID_SIZE])
{
    char hex[LOCK_TOKEN_SIZE];
    bool well = true;
    pthread_mutex_lock(&mutex);
    begin_anew_after_fork();
    if (!*process_id) {
        well = lock_random_token(hex);
        if (well) /* version 4, variant 1: as random UUIDs are marked */
            snprintf(process_id, sizeof process_id, "%.8s-%.4s-4%.3s-a%.3s-%.12s", hex, hex + 8, hex + 13,
                     hex + 17, hex + 20);
    }
    memcpy(ret_id, process_id, sizeof process_id);
    pthread_mutex_unlock(&mutex);
    return well;
}

static struct redis_local *find_or_make(const char *key)
{
    struct redis_local *local = all;
    while (local && strcmp(local->key, key) != 0)
        local = local->next;
    if (local || !(local = calloc(1, sizeof *local)))
        return local;
    snprintf(local->key, sizeof local->key, "%s", key);
    pthread_cond_init(&local->freed, NULL);
    local->next = all;
    all = local;
    return local;
}

static void give_up(struct redis_local *local)
{
    struct redis_local **link = &all;
    if (--local->users > 0)
        return;
    while (*link != local)
        link = &(*link)->next;
    *link = local->next;
    pthread_cond_destroy(&local->freed);
    free(local);
}

static bool is_free(const struct redis_local *local)
{
    return !local->owner || local->ends_us <= monotonic_us();
}

/* Waits until LOCAL is free: true, or until the deadline: false. The mutex is held but while it waits. */
static bool wait_for(struct redis_local *local, struct lock *lock, int64_t deadline_us)
{
    pthread_mutex_unlock(&mutex);
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE); /* which may take its time */
    pthread_mutex_lock(&mutex);
    while (!is_free(local)) {
        int64_t until_us = deadline_us < local->ends_us ? deadline_us : local->ends_us;
        if (deadline_us <= monotonic_us())
            return false;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        if (pthread_cond_clockwait(&local->freed, &mutex, CLOCK_MONOTONIC, &until) == 0)
            lock->wake_ups++;
    }
    return true;
}

enum lock_status redis_local_enter(struct lock *lock, const char *key, int64_t deadline_us,
                                   struct redis_local **ret_local, int *ret_holds)
{
    enum lock_status status = LOCK_OK;
    pthread_mutex_lock(&mutex);
    begin_anew_after_fork();
    struct redis_local *local = find_or_make(key);
    if (!local) {
        status = LOCK_FAILED;
    } else if (local->owner == lock) {
        *ret_holds = ++local->holds;
    } else {
        local->users++;
        if (is_free(local) || wait_for(local, lock, deadline_us)) {
            local->users -= local->owner != NULL; /* who has abandoned it is not coming back */
            local->owner = lock;
            local->ends_us = INT64_MAX;
            *ret_holds = local->holds = 1;
        } else {
            give_up(local);
            status = LOCK_BUSY;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (status == LOCK_OK)
        *ret_local = local;
    return status;
}

int redis_local_holds(const struct redis_local *local)
{
    pthread_mutex_lock(&mutex);
    int holds = local->holds;
    pthread_mutex_unlock(&mutex);
    return holds;
}

void redis_local_leave(struct redis_local *local)
{
    pthread_mutex_lock(&mutex);
    if (--local->holds == 0) {
        local->owner = NULL;
        pthread_cond_signal(&local->freed);
        give_up(local);
    }
    pthread_mutex_unlock(&mutex);
}

void redis_local_abandon(struct redis_local *local, int64_t until_us)
{
    static const struct lock nobody;
    pthread_mutex_lock(&mutex);
    local->owner = &nobody; /* the handle's memory may soon be another handle's */
    local->ends_us = until_us;
    pthread_cond_broadcast(&local->freed); /* everybody has a new time to wait for */
    pthread_mutex_unlock(&mutex);
}
