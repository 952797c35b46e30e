/* Prolonging leases: a list of grants, and a thread that renews the one that is due next.
 *
 * It renews with handles of its own, one for each lock, so that the holder's connection is never shared. Renewing
 * takes the list's turn, not its mutex: a holder that releases waits for a renewal of its own grant, not for others. */
#include "lock/watchdog.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct watched {
    struct watched *next;
    const struct lock_ops *ops;
    struct lock_grant grant; /* a copy without impl */
    int64_t lease_ms;
    int64_t due_us;
};

/* The watchdog's handle of a lock. */
struct handle {
    struct handle *next;
    struct lock *lock;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* the list, or what is being renewed; on the monotonic clock */
static bool running;
static struct watched *all;
static const struct watched *renewing; /* by the thread, outside the mutex */

static int64_t a_third_us(const struct watched *w)
{
    return w->lease_ms * 1000 / 3;
}

/* The thread's own: the handle for OPS, opened when first needed; NULL when out of memory. */
static struct lock *handle_of(struct handle **handles, const struct lock_ops *ops)
{
    for (struct handle *h = *handles; h; h = h->next)
        if (h->lock->ops == ops)
            return h->lock;
    struct handle *h = calloc(1, sizeof *h);
    if (!h || lock_open(ops, &h->lock) != LOCK_OK) {
        free(h);
        return NULL;
    }
    h->next = *handles;
    *handles = h;
    return h->lock;
}

static struct watched *most_urgent(void)
{
    struct watched *first = all;
    for (struct watched *w = all; w; w = w->next)
        if (w->due_us < first->due_us)
            first = w;
    return first;
}

static void drop(struct watched *w)
{
    struct watched **link = &all;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    free(w);
}

/* Renews W, which is due; called and left with the mutex held. */
static void renew(struct watched *w, struct handle **handles)
{
    renewing = w;
    pthread_mutex_unlock(&mutex);
    struct lock *lock = handle_of(handles, w->ops);
    enum lock_status status = LOCK_AWAY;
    if (lock) {
        lock->lease_ms = w->lease_ms;
        status = w->ops->renew(lock, &w->grant);
    }
    pthread_mutex_lock(&mutex);
    renewing = NULL;
    pthread_cond_broadcast(&changed);
    if (status == LOCK_LOST || status == LOCK_NOT_OWNER)
        drop(w);
    else /* no answer: ask again soon, since the lease runs on */
        w->due_us = monotonic_us() + (status == LOCK_OK ? a_third_us(w) : a_third_us(w) / 8);
}

static void *watch(void *arg)
{
    (void)arg;
    struct handle *handles = NULL;
    pthread_mutex_lock(&mutex);
    while (true) {
        struct watched *next = most_urgent();
        if (!next) {
            pthread_cond_wait(&changed, &mutex);
        } else if (next->due_us > monotonic_us()) {
            struct timespec due = {.tv_sec = next->due_us / 1000000,
                                   .tv_nsec = next->due_us % 1000000 * 1000};
            pthread_cond_timedwait(&changed, &mutex, &due);
        } else {
            renew(next, &handles);
        }
    }
    return NULL;
}

/* Starts the thread when first needed; it lives as long as the process. The mutex is held. */
static bool start(void)
{
    pthread_t thread;
    pthread_condattr_t attributes;
    if (running)
        return true;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    running = pthread_create(&thread, NULL, watch, NULL) == 0;
    if (running)
        pthread_detach(thread);
    return running;
}

bool watchdog_watch(const struct lock_ops *ops, const struct lock_grant *grant, int64_t lease_ms)
{
    struct watched *w = malloc(sizeof *w);
    if (!w)
        return false;
    *w = (struct watched){.ops = ops, .grant = *grant, .lease_ms = lease_ms};
    w->grant.impl = NULL;
    w->due_us = monotonic_us() + a_third_us(w);
    pthread_mutex_lock(&mutex);
    bool well = start();
    if (well) {
        w->next = all;
        all = w;
        pthread_cond_broadcast(&changed);
    } else {
        free(w);
    }
    pthread_mutex_unlock(&mutex);
    return well;
}

static struct watched *find(const struct lock_ops *ops, const struct lock_grant *grant)
{
    struct watched *w = all;
    while (w && (w->ops != ops || strcmp(w->grant.token, grant->token) != 0 ||
                 strcmp(w->grant.key, grant->key) != 0))
        w = w->next;
    return w;
}

void watchdog_forget(const struct lock_ops *ops, const struct lock_grant *grant)
{
    struct watched *w;
    pthread_mutex_lock(&mutex);
    while ((w = find(ops, grant)) && renewing == w)
        pthread_cond_wait(&changed, &mutex); /* looked up anew: the renewal may drop it */
    if (w)
        drop(w);
    pthread_mutex_unlock(&mutex);
}
