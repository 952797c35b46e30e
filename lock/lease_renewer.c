/* Renews leases at every third of their length: for each server one thread with a list of grants. A server that does not
 * answer delays only its own thread, not the leases on other servers.
 *
 * The thread renews with its own handles, one for each lock, so that no connection is shared with a holder. It renews
 * outside the mutex: a holder that releases waits for a renewal of its grant, not for others. */
#include "lock/lease_renewer.h"
#include "base/clock.h"

#include "lock/lock_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct lease {
    struct lease *next;
    const struct lock *holder; /* compared by address only: it may be in use */
    const struct lock_driver *driver;
    struct lock_grant grant; /* a copy without impl */
    int64_t lease_ms;
    int64_t due_us;
};

/* The thread's own handle of a lock. */
struct handle {
    struct handle *next;
    struct lock *lock;
};

/* The leases on one server, and its thread. Lives as long as the process. */
struct renewer {
    struct renewer *next;
    const struct lock_server *server;
    pthread_cond_t changed; /* the list, or what is being renewed */
    struct lease *all;
    const struct lease *renewing; /* by the thread, outside the mutex */
    int64_t next_look_us;         /* when the thread looks at the list, if nobody tells it to do so before */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is here */
static struct renewer *renewers;

static int64_t a_third_us(const struct lease *lease)
{
    return lease->lease_ms * 1000 / 3;
}

/* The thread's own: the handle for DRIVER, opened when first needed; NULL when out of memory. */
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

static struct lease *most_urgent(const struct renewer *renewer)
{
    struct lease *first = renewer->all;
    for (struct lease *lease = renewer->all; lease; lease = lease->next)
        if (lease->due_us < first->due_us)
            first = lease;
    return first;
}

static void drop(struct renewer *renewer, struct lease *lease)
{
    struct lease **link = &renewer->all;
    while (*link != lease)
        link = &(*link)->next;
    *link = lease->next;
    free(lease);
}

/* Renews W, which is due; called and left with the mutex held. */
static void renew(struct renewer *renewer, struct lease *lease, struct handle **handles)
{
    renewer->renewing = lease;
    pthread_mutex_unlock(&mutex);
    struct lock *lock = handle_of(handles, lease->driver);
    enum lock_status status = LOCK_AWAY;
    if (lock) {
        lock->lease_ms = lease->lease_ms;
        status = lease->driver->renew(lock, &lease->grant);
    }
    pthread_mutex_lock(&mutex);
    renewer->renewing = NULL;
    pthread_cond_broadcast(&renewer->changed);
    if (status == LOCK_LOST || status == LOCK_NOT_OWNER)
        drop(renewer, lease);
    else /* no answer: ask again soon, since the lease runs on */
        lease->due_us = monotonic_us() + (status == LOCK_OK ? a_third_us(lease) : a_third_us(lease) / 8);
}

static void *renew_leases(void *arg)
{
    struct renewer *renewer = arg;
    struct handle *handles = NULL;
    pthread_mutex_lock(&mutex);
    while (true) {
        struct lease *next = most_urgent(renewer);
        renewer->next_look_us = next ? next->due_us : INT64_MAX;
        if (!next) {
            pthread_cond_wait(&renewer->changed, &mutex);
        } else if (next->due_us > monotonic_us()) {
            (void)wait_until(&renewer->changed, &mutex, next->due_us);
        } else {
            renew(renewer, next, &handles);
        }
    }
    return NULL;
}

static struct renewer *find_renewer(const struct lock_server *server)
{
    struct renewer *renewer = renewers;
    while (renewer && renewer->server != server)
        renewer = renewer->next;
    return renewer;
}

/* The renewer of SERVER, started when first needed; NULL when out of memory or threads. The mutex is held. */
static struct renewer *renewer_of(const struct lock_server *server)
{
    pthread_t thread;
    struct renewer *renewer = find_renewer(server);
    if (renewer || !(renewer = calloc(1, sizeof *renewer)))
        return renewer;
    renewer->server = server;
    pthread_cond_init(&renewer->changed, NULL);
    if (pthread_create(&thread, NULL, renew_leases, renewer) != 0) {
        pthread_cond_destroy(&renewer->changed);
        free(renewer);
        return NULL;
    }
    pthread_detach(thread);
    renewer->next = renewers;
    renewers = renewer;
    return renewer;
}

bool lease_renewer_add(const struct lock *holder, const struct lock_grant *grant)
{
    struct lease *lease = malloc(sizeof *lease);
    if (!lease)
        return false;
    *lease = (struct lease){
        .holder = holder, .driver = holder->driver, .grant = *grant, .lease_ms = holder->lease_ms};
    lease->grant.impl = NULL;
    lease->due_us = monotonic_us() + a_third_us(lease);
    pthread_mutex_lock(&mutex);
    struct renewer *renewer = renewer_of(lease->driver->server);
    if (renewer) {
        lease->next = renewer->all;
        renewer->all = lease;
        if (lease->due_us <
            renewer->next_look_us) /* else it is soon enough: most grants are released long before */
            pthread_cond_broadcast(&renewer->changed);
    } else {
        free(lease);
    }
    pthread_mutex_unlock(&mutex);
    return renewer;
}

/* HOLDER's GRANT, or (NULL) any of its grants. */
static struct lease *find(const struct renewer *renewer, const struct lock *holder,
                          const struct lock_grant *grant)
{
    struct lease *lease = renewer->all;
    while (lease && (lease->holder != holder || (grant && (strcmp(lease->grant.token, grant->token) != 0 ||
                                                           strcmp(lease->grant.key, grant->key) != 0))))
        lease = lease->next;
    return lease;
}

/* Removes one lease for GRANT, or (NULL) all of HOLDER. Looks each up again after a wait, since a renewal may drop it. */
static void remove_leases(const struct lock *holder, const struct lock_grant *grant)
{
    struct lease *lease;
    struct renewer *renewer = find_renewer(holder->driver->server);
    while (renewer && (lease = find(renewer, holder, grant))) {
        if (renewer->renewing == lease) {
            pthread_cond_wait(&renewer->changed, &mutex);
            continue;
        }
        drop(renewer, lease);
        if (grant)
            return;
    }
}

void lease_renewer_remove(const struct lock *holder, const struct lock_grant *grant)
{
    pthread_mutex_lock(&mutex);
    remove_leases(holder, grant);
    pthread_mutex_unlock(&mutex);
}
