/* A controlled lock wraps the strategy's lock: a wait becomes a series of single tries, and the actor is held between them. */
#include "loadtest/explore/exec/controlled_lock.h"

#include "base/text.h"
#include "loadtest/explore/exec/lock_admin.h"

#include "lock/lock_driver.h"

#include <stdlib.h>
#include <string.h>

enum { FAR_AWAY_MS = 10 * 3600 * 1000 }; /* longer than any schedule */

struct controlled_lock {
    struct lock base;
    struct lock_driver driver; /* the inner lock's, except what this file replaces */
    struct lock *inner;
    struct actor *actor;
};

static struct lock *inner_of(struct lock *lock)
{
    struct lock *inner = ((struct controlled_lock *)lock)->inner;
    inner->observer = lock->observer;
    return inner;
}

static enum lock_status tell(struct lock *lock, enum lock_status status)
{
    memcpy(lock->error, ((struct controlled_lock *)lock)->inner->error, sizeof lock->error);
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct controlled_lock *controlled = (struct controlled_lock *)lock;
    struct lock *inner = inner_of(lock);
    enum lock_status status;
    struct lock_hold *hold = &controlled->actor->hold;
    if (!lock_has_queue(&controlled->driver))
        deadline_us = 0; /* in the past: a single try */
    do
        status = inner->driver->acquire(inner, key, deadline_us, ret_grant);
    while (status == LOCK_TIMED_OUT && actor_wait(controlled->actor));
    if (status == LOCK_OK && hold->depth++ == 0) {
        /* A fault may have ended the grant before its holder knew of it; the end of a mere place does not count. */
        bool is_over = hold->has_grant && hold->is_over && !hold->is_place;
        *hold = (struct lock_hold){.grant = *ret_grant, .depth = 1, .has_grant = true, .is_over = is_over};
    }
    return tell(lock, status);
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct lock *inner = inner_of(lock);
    struct actor *actor = ((struct controlled_lock *)lock)->actor;
    struct lock_hold *hold = &actor->hold;
    if (lock->driver->server) /* a lock in memory is released when its process crashes */
        actor_die_if_due(actor);
    enum lock_status status = inner->driver->release(inner, grant);
    if (--hold->depth == 0)
        hold->has_grant = false;
    return tell(lock, status);
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct lock *inner = inner_of(lock);
    return tell(lock, inner->driver->still_held(inner, grant));
}

static enum lock_status raise_fence(struct lock *lock, const char *key, int64_t fence)
{
    struct lock *inner = inner_of(lock);
    return tell(lock, inner->driver->raise_fence(inner, key, fence));
}

static void close_held(struct lock *lock)
{
    lock_close(((struct controlled_lock *)lock)->inner);
}

static enum lock_status open_lock(const struct lock_driver *driver, struct actor *actor,
                                  struct lock **ret_lock)
{
    struct controlled_lock *controlled = calloc(1, sizeof *controlled);
    enum lock_status status = controlled ? lock_open(driver, &controlled->inner) : LOCK_FAILED;
    if (status != LOCK_OK) {
        free(controlled);
        return status;
    }
    controlled->actor = actor;
    controlled->inner->lease_ms = FAR_AWAY_MS;
    controlled->inner->lease_ends = true;
    controlled->driver = (struct lock_driver){
        .name = driver->name,
        .server = driver->server,
        .properties = driver->properties,
        .acquire = acquire,
        .release = release,
        .still_held = still_held,
        .raise_fence = driver->raise_fence ? raise_fence : NULL,
        .close = close_held,
    };
    controlled->base.driver = &controlled->driver;
    *ret_lock = &controlled->base;
    return LOCK_OK;
}

void controlled_lock_close(struct actor *actor)
{
    lock_close(actor->lock);
    actor->lock = NULL;
    free(actor->servers);
    actor->servers = NULL;
    actor->cuts = 0;
}

bool controlled_lock_open(struct actor *actor, const struct strategy *strategy, unsigned *next_process,
                          char *ret_error, size_t size)
{
    if (!strategy->lock == !actor->lock && actor->cuts == 0 &&
        (!actor->lock || strcmp(actor->lock->driver->name, strategy->lock->name) == 0))
        return true;
    controlled_lock_close(actor);
    actor->observer.process = next_process ? ++*next_process : 0;
    enum lock_status status = strategy->lock ? open_lock(strategy->lock, actor, &actor->lock) : LOCK_OK;
    return status == LOCK_OK ||
           text_fail(ret_error, size, "%s: %s", strategy->lock->name, lock_status_name(status));
}

bool controlled_lock_cut(struct actor *actor)
{
    const struct lock_driver *driver = actor->placing.strategy->lock;
    unsigned cuts = actor->cuts + 1;
    char *servers = lock_admin_cut_servers(driver, cuts);
    if (!servers)
        return false;
    struct lock_config all = lock_config, some = lock_config;
    some.redlock_urls = servers;
    controlled_lock_close(actor);
    lock_configure(&some);
    enum lock_status status = open_lock(driver, actor, &actor->lock);
    lock_configure(&all);
    actor->cuts = cuts;
    actor->servers = servers;
    actor->placing.lock = actor->lock;
    return status == LOCK_OK;
}
