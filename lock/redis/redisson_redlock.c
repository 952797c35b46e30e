/* `redisson-redlock`: a majority of Redisson's locks, one on each of several servers, taken one after the other, as
 * RedissonRedLock and RedissonMultiLock of Redisson 4.7.
 *
 * Each part is a redis-reentrant lock (lock/redis/redisson_lock.c), so the lock is reentrant and its waiters are woken. A
 * round takes the parts in the order of the servers, and waits at each for its share of the time. It fails as soon as
 * the servers that have not said no are no majority; then it releases what it has, and another round starts while there is time.
 *
 * What can go wrong: it is weaker than redlock, although the name is the same. It does not look at the clock: the leases of
 * the first parts run while it takes the others, and may have ended when it has the last; nothing is deducted for clocks that
 * drift. The renewals hide this while the process runs. A process that sleeps in the middle of a round wakes up and believes
 * that it holds the lock, although others have it. Redisson itself has deprecated it. */
#include "base/clock.h"
#include "lock/redis/client/nodes.h"
#include "lock/redis/redisson_base.h"
#include "lock/registry.h"

enum {
    ROUND_MS_FOR_EACH = 1500, /* a round lasts so long for each server at most */
    REQUEST_MS = 100,         /* and a server that takes longer to answer is away */
};

/* Several locks of one contender. */
struct red_lock {
    struct lock base;
    int count;
    struct redisson_handle parts[LOCK_REDLOCK_MOST]; /* of redis_reentrant */
};

static int quorum_of(const struct red_lock *r)
{
    return r->count / 2 + 1;
}

/* Part I, with the observer and the lease that the caller has set for the whole lock. */
static struct lock *part(struct red_lock *r, int i)
{
    struct lock *lock = &r->parts[i].base;
    lock->observer = r->base.observer;
    lock->lease_ms = r->base.lease_ms;
    return lock;
}

/* Adds what part I has counted to the whole lock's counts, and copies its error. Returns STATUS. */
static enum lock_status tell(struct red_lock *r, int i, enum lock_status status)
{
    struct lock *lock = &r->parts[i].base;
    r->base.round_trips += lock->round_trips;
    r->base.wake_ups += lock->wake_ups;
    lock->round_trips = lock->wake_ups = 0;
    return status == LOCK_OK ? LOCK_OK : lock_fail(&r->base, status, "%s", lock->error);
}

/* How many servers have answered in which way. */
struct outcomes {
    int ok;
    int against;            /* busy, or lost */
    enum lock_status worst; /* of the others */
};

static void count(struct outcomes *outcomes, enum lock_status status)
{
    if (status == LOCK_OK)
        outcomes->ok++;
    else if (status == LOCK_TIMED_OUT || status == LOCK_LOST)
        outcomes->against++;
    else
        outcomes->worst = status;
}

/* May this handle hold a part on server I? True for all servers if it knows of no grant: the grant is another handle's. */
static bool may_hold(const struct red_lock *r, int i)
{
    int held = 0;
    for (int j = 0; j < r->count; j++)
        held += r->parts[j].held;
    return held == 0 || r->parts[i].held > 0;
}

static enum lock_status release_part(struct red_lock *r, int i, const struct lock_grant *whole)
{
    struct lock_grant grant = *whole;
    return tell(r, i, redisson_release(part(r, i), &grant));
}

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

/* Takes the parts one after the other. Stops when those not refused can no longer be a majority. */
static enum lock_status one_round(struct red_lock *r, const char *key, int64_t deadline_us,
                                  struct lock_grant *ret_grant)
{
    struct outcomes outcomes = {0};
    unsigned got = 0; /* a bit for each server */
    struct lock_grant grant = {.lease_end_us = INT64_MAX};
    int64_t end_us = earlier(deadline_us, monotonic_us() + (int64_t)r->count * ROUND_MS_FOR_EACH * 1000);
    int64_t share_us = (end_us - monotonic_us()) / r->count;
    for (int i = 0; i < r->count && i - outcomes.ok <= r->count - quorum_of(r); i++) {
        struct lock_grant of_part;
        enum lock_status status = tell(
            r, i, redisson_acquire(part(r, i), key, earlier(end_us, monotonic_us() + share_us), &of_part));
        count(&outcomes, status);
        if (status == LOCK_OK) {
            got |= 1u << i;
            int64_t lease_end_us = earlier(grant.lease_end_us, of_part.lease_end_us);
            grant = of_part; /* key and holder are the same everywhere */
            grant.lease_end_us = lease_end_us;
        }
    }
    if (outcomes.ok >= quorum_of(r)) {
        *ret_grant = grant;
        return LOCK_OK;
    }
    for (int i = 0; i < r->count; i++)
        if (got & 1u << i)
            (void)release_part(r, i, &grant);
    return outcomes.against ? LOCK_TIMED_OUT : outcomes.worst;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct red_lock *r = (struct red_lock *)lock;
    enum lock_status status;
    do
        status = one_round(r, key, deadline_us, ret_grant);
    while ((status == LOCK_TIMED_OUT || status == LOCK_AWAY) &&
           lock_poll_pause(lock, redlock_pause_ms(), deadline_us));
    return status;
}

/* What a majority of the answers says. */
static enum lock_status verdict(const struct red_lock *r, const struct outcomes *outcomes)
{
    if (outcomes->ok >= quorum_of(r))
        return LOCK_OK;
    return outcomes->against > r->count - quorum_of(r) ? LOCK_LOST : outcomes->worst;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct red_lock *r = (struct red_lock *)lock;
    struct outcomes outcomes = {0};
    if (!*grant->token)
        return lock_fail(lock, LOCK_NOT_OWNER, "released before");
    unsigned held = 0; /* a bit for each server */
    for (int i = 0; i < r->count; i++)
        held |= (unsigned)may_hold(r, i) << i;
    for (int i = 0; i < r->count; i++)
        count(&outcomes, held & 1u << i ? release_part(r, i, grant) : LOCK_LOST);
    *grant->token = '\0'; /* spent */
    return verdict(r, &outcomes);
}

static enum lock_status ask_all(struct lock *lock, const struct lock_grant *grant,
                                enum lock_status (*ask)(struct lock *part, const struct lock_grant *grant))
{
    struct red_lock *r = (struct red_lock *)lock;
    struct outcomes outcomes = {0};
    for (int i = 0; i < r->count; i++)
        count(&outcomes, tell(r, i, ask(part(r, i), grant)));
    return verdict(r, &outcomes);
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    return ask_all(lock, grant, redisson_still_held);
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    return ask_all(lock, grant, redisson_renew);
}

static void close_lock(struct lock *lock)
{
    struct red_lock *r = (struct red_lock *)lock;
    for (int i = 0; i < r->count; i++)
        redisson_close(&r->parts[i].base);
}

/* All parts have one number: to every server it is the same contender. */
static bool open_lock(struct lock *lock)
{
    struct red_lock *r = (struct red_lock *)lock;
    const char *list = lock_config.redlock_urls, *url;
    size_t size;
    uint64_t number = redisson_next_number();
    while (lock_next_server(&list, &url, &size)) {
        if (r->count == LOCK_REDLOCK_MOST || !redisson_open_at(&r->parts[r->count], url, size, number))
            return false;
        r->parts[r->count].base.driver = &redis_reentrant;
        r->parts[r->count++].limit_ms = lock_try_ms(REQUEST_MS);
    }
    return r->count > 0;
}

const struct lock_driver redisson_redlock = {
    .name = "redisson-redlock",
    .server = &redlock_servers,
    .properties = {.mechanism = "a majority of Redisson's locks, one on each Redis server, taken one by one",
                   .reentrant = true,
                   .blocking = true,
                   .carrier = CARRIER_LEASE,
                   .renewed = true,
                   .survives_crash = true,
                   .survives_minority = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct red_lock),
    .open = open_lock,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = close_lock,
};
