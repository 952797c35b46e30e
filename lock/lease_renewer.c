/* Prolonging leases: for each server a list of grants, and a thread that renews the one that is due next. A server that
 * is silent keeps its own thread waiting, and so must not be the concern of leases that lie elsewhere.
 *
 * It renews with handles of its own, one for each lock, so that the holder's connection is never shared. Renewing
 * takes the list's turn, not its mutex: a holder that releases waits for a renewal of its own grant, not for others. */
#include "lock/lease_renewer.h"
#include "base/clock.h"

#include "lock/lock_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct watched {
    struct watched *next;
    const struct lock *holder; /* known by its address, and not looked into */
    const struct lock_driver *driver;
    struct lock_grant grant; /* a copy without impl */
    int64_t lease_ms;
    int64_t due_us;
};

/* The watchdog's handle of a lock. */
struct handle {
    struct handle *next;
    struct lock *lock;
};

/* What lies on one server. Lives as long as the process. */
struct watchdog {
    struct watchdog *next;
    const struct lock_server *server;
    pthread_cond_t changed; /* the list, or what is being renewed */
    struct watched *all;
    const struct watched *renewing; /* by the thread, outside the mutex */
    int64_t next_look_us; /* when the thread looks at the list, if nobody tells it to do so before */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is here */
static struct watchdog *watchdogs;

static int64_t a_third_us(const struct watched *w)
{
    return w->lease_ms * 1000 / 3;
}

/* The thread's own: the handle for OPS, opened when first needed; NULL when out of memory. */
static struct lock *handle_of(struct handle **handles, const struct lock_driver *driver)
{
    for (struct handle *h = *handles; h; h = h->next)
        if (h->lock->driver == driver)
            return h->lock;
    struct handle *h = calloc(1, sizeof *h);
    if (!h || lock_open(driver, &h->lock) != LOCK_OK) {
        free(h);
        return NULL;
    }
    h->next = *handles;
    *handles = h;
    return h->lock;
}

static struct watched *most_urgent(const struct watchdog *dog)
{
    struct watched *first = dog->all;
    for (struct watched *w = dog->all; w; w = w->next)
        if (w->due_us < first->due_us)
            first = w;
    return first;
}

static void drop(struct watchdog *dog, struct watched *w)
{
    struct watched **link = &dog->all;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    free(w);
}

/* Renews W, which is due; called and left with the mutex held. */
static void renew(struct watchdog *dog, struct watched *w, struct handle **handles)
{
    dog->renewing = w;
    pthread_mutex_unlock(&mutex);
    struct lock *lock = handle_of(handles, w->driver);
    enum lock_status status = LOCK_AWAY;
    if (lock) {
        lock->lease_ms = w->lease_ms;
        status = w->driver->renew(lock, &w->grant);
    }
    pthread_mutex_lock(&mutex);
    dog->renewing = NULL;
    pthread_cond_broadcast(&dog->changed);
    if (status == LOCK_LOST || status == LOCK_NOT_OWNER)
        drop(dog, w);
    else /* no answer: ask again soon, since the lease runs on */
        w->due_us = monotonic_us() + (status == LOCK_OK ? a_third_us(w) : a_third_us(w) / 8);
}

static void *watch(void *arg)
{
    struct watchdog *dog = arg;
    struct handle *handles = NULL;
    pthread_mutex_lock(&mutex);
    while (true) {
        struct watched *next = most_urgent(dog);
        dog->next_look_us = next ? next->due_us : INT64_MAX;
        if (!next) {
            pthread_cond_wait(&dog->changed, &mutex);
        } else if (next->due_us > monotonic_us()) {
            (void)lock_wait_until(&dog->changed, &mutex, next->due_us);
        } else {
            renew(dog, next, &handles);
        }
    }
    return NULL;
}

static struct watchdog *find_watchdog(const struct lock_server *server)
{
    struct watchdog *dog = watchdogs;
    while (dog && dog->server != server)
        dog = dog->next;
    return dog;
}

/* The watchdog of SERVER, started when first needed; NULL when out of memory or threads. The mutex is held. */
static struct watchdog *watchdog_of(const struct lock_server *server)
{
    pthread_t thread;
    struct watchdog *dog = find_watchdog(server);
    if (dog || !(dog = calloc(1, sizeof *dog)))
        return dog;
    dog->server = server;
    pthread_cond_init(&dog->changed, NULL);
    if (pthread_create(&thread, NULL, watch, dog) != 0) {
        pthread_cond_destroy(&dog->changed);
        free(dog);
        return NULL;
    }
    pthread_detach(thread);
    dog->next = watchdogs;
    watchdogs = dog;
    return dog;
}

bool lease_renewer_add(const struct lock *holder, const struct lock_grant *grant)
{
    struct watched *w = malloc(sizeof *w);
    if (!w)
        return false;
    *w = (struct watched){
        .holder = holder, .driver = holder->driver, .grant = *grant, .lease_ms = holder->lease_ms};
    w->grant.impl = NULL;
    w->due_us = monotonic_us() + a_third_us(w);
    pthread_mutex_lock(&mutex);
    struct watchdog *dog = watchdog_of(w->driver->server);
    if (dog) {
        w->next = dog->all;
        dog->all = w;
        if (w->due_us < dog->next_look_us) /* else it is soon enough: most grants are released long before */
            pthread_cond_broadcast(&dog->changed);
    } else {
        free(w);
    }
    pthread_mutex_unlock(&mutex);
    return dog;
}

/* HOLDER's GRANT, or (NULL) any of its grants. */
static struct watched *find(const struct watchdog *dog, const struct lock *holder,
                            const struct lock_grant *grant)
{
    struct watched *w = dog->all;
    while (w && (w->holder != holder || (grant && (strcmp(w->grant.token, grant->token) != 0 ||
                                                   strcmp(w->grant.key, grant->key) != 0))))
        w = w->next;
    return w;
}

/* Of those that are found, one for each grant; looked up anew each time, since the renewal may drop what it renews. */
static void forget(const struct lock *holder, const struct lock_grant *grant)
{
    struct watched *w;
    struct watchdog *dog = find_watchdog(holder->driver->server);
    while (dog && (w = find(dog, holder, grant))) {
        if (dog->renewing == w) {
            pthread_cond_wait(&dog->changed, &mutex);
            continue;
        }
        drop(dog, w);
        if (grant)
            return;
    }
}

void lease_renewer_remove(const struct lock *holder, const struct lock_grant *grant)
{
    pthread_mutex_lock(&mutex);
    forget(holder, grant);
    pthread_mutex_unlock(&mutex);
}
