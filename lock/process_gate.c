/* A list of the names that are held or waited for in this process. A release wakes one waiter of the same name. A newcomer
 * may be quicker than the waiter, so the gate is not fair, like a mutex. */
#include "lock/process_gate.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
    struct name *next;
    const struct lock_driver *driver;
    unsigned process; /* of the handles that it is for */
    char key[65];
    const struct lock *holder; /* NULL: free */
    int64_t free_us;           /* its holder has abandoned it, until then; else INT64_MAX */
    unsigned holds, waiters;   /* the name is dropped when there is neither */
    pthread_cond_t freed;
};

static pthread_once_t initialized = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct name *all;
static const struct lock nobody; /* holds what was abandoned */
static char process_id[LOCK_UUID_SIZE];

/* The explorer's number of the process that LOCK's handle is taken to be in; 0: this process. */
static unsigned process_of(const struct lock *lock)
{
    return lock && lock->observer ? lock->observer->process : 0;
}

static void drop_if_unused(struct name *name)
{
    if (name->holds || name->waiters)
        return;
    struct name **link = &all;
    while (*link != name)
        link = &(*link)->next;
    *link = name->next;
    pthread_cond_destroy(&name->freed);
    free(name);
}

/* A forked child has none of the parent's threads, so none of what they held or waited for. */
static void forget_the_parents(void)
{
    pthread_mutex_init(&mutex, NULL);
    while (all) {
        struct name *name = all;
        all = name->next;
        free(name);
    }
    *process_id = '\0';
}

static void initialize(void)
{
    (void)pthread_atfork(NULL, NULL, forget_the_parents);
}

bool process_gate_client_id(const struct lock *lock, char ret_id[static LOCK_UUID_SIZE])
{
    pthread_once(&initialized, initialize);
    pthread_mutex_lock(&mutex);
    bool made = *process_id || lock_random_uuid(process_id);
    memcpy(ret_id, process_id, sizeof process_id);
    pthread_mutex_unlock(&mutex);
    if (made && process_of(lock))
        snprintf(ret_id + LOCK_UUID_SIZE - 9, 9, "%08x",
                 process_of(lock)); /* another's id, as far as servers see */
    return made;
}

static struct name *find(const struct lock *lock, const char *key)
{
    struct name *name = all;
    while (name &&
           (name->driver != lock->driver || name->process != process_of(lock) || strcmp(name->key, key) != 0))
        name = name->next;
    return name;
}

static struct name *find_or_add(const struct lock *lock, const char *key)
{
    struct name *name = find(lock, key);
    if (name)
        return name;
    name = calloc(1, sizeof *name);
    if (!name)
        return NULL;
    name->driver = lock->driver;
    name->process = process_of(lock);
    snprintf(name->key, sizeof name->key, "%s", key);
    pthread_cond_init(&name->freed, NULL);
    name->next = all;
    all = name;
    return name;
}

static bool is_free(const struct name *name)
{
    return !name->holder || name->free_us <= monotonic_us();
}

/* Until NAME is free or the deadline has come. The mutex is held, but not while the observer is told. */
static void wait_until_free(struct name *name, struct lock *waiter, int64_t deadline_us)
{
    name->waiters++;
    pthread_mutex_unlock(&mutex);
    report_step(waiter->observer, STEP_WAIT, STEP_NO_VALUE);
    pthread_mutex_lock(&mutex);
    while (!is_free(name) && monotonic_us() < deadline_us) {
        int64_t until_us = deadline_us < name->free_us ? deadline_us : name->free_us;
        if (wait_until(&name->freed, &mutex, until_us))
            waiter->wake_ups++;
    }
    name->waiters--;
}

enum lock_status process_gate_acquire(struct lock *holder, const char *key, int64_t deadline_us,
                                      unsigned *ret_holds)
{
    enum lock_status status = LOCK_TIMED_OUT;
    pthread_once(&initialized, initialize);
    pthread_mutex_lock(&mutex);
    struct name *name = find_or_add(holder, key);
    if (!name) {
        pthread_mutex_unlock(&mutex);
        return lock_fail(holder, LOCK_FAILED, "out of memory");
    }
    if (name->holder != holder && !is_free(name))
        wait_until_free(name, holder, deadline_us);
    if (name->holder != holder && is_free(name)) {
        name->holder = holder;
        name->holds = 0;
        name->free_us = INT64_MAX;
    }
    if (name->holder == holder) {
        *ret_holds = ++name->holds;
        status = LOCK_OK;
    }
    drop_if_unused(name);
    pthread_mutex_unlock(&mutex);
    return status;
}

unsigned process_gate_holds(const struct lock *holder, const char *key)
{
    pthread_mutex_lock(&mutex);
    const struct name *name = find(holder, key);
    unsigned holds = name && name->holder == holder ? name->holds : 0;
    pthread_mutex_unlock(&mutex);
    return holds;
}

void process_gate_release(const struct lock *holder, const char *key)
{
    pthread_mutex_lock(&mutex);
    struct name *name = find(holder, key);
    if (name && name->holder == holder && --name->holds == 0) {
        name->holder = NULL;
        pthread_cond_signal(&name->freed);
        drop_if_unused(name);
    }
    pthread_mutex_unlock(&mutex);
}

void process_gate_abandon(const struct lock *holder, int64_t until_us)
{
    pthread_mutex_lock(&mutex);
    for (struct name *name = all; name; name = name->next) {
        if (name->holder != holder)
            continue;
        name->holder = &nobody; /* the handle's memory may soon be another's */
        name->free_us = until_us;
        pthread_cond_broadcast(&name->freed); /* all have another time to wait for */
    }
    pthread_mutex_unlock(&mutex);
}
