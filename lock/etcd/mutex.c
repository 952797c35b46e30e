/* `etcd`: a queue of keys in etcd. Each contender puts its own key, and the key that was created first holds the lock.
 *
 * The algorithm is that of etcd's concurrency.Mutex (client/v3/concurrency/mutex.go), which `etcdctl lock` uses too, so
 * that its clients and we exclude each other:
 *   acquire  1. grant a lease; its number makes the contender's key: <prefix>/locks/<key>/<lease in hex>
 *            2. in one transaction put the key and read which key of the queue was created first; ours: held
 *            3. else wait until the key created just before ours is deleted: whoever releases wakes one waiter
 *            4. read our own key again: gone means that our lease ended while we waited, and somebody else may hold
 *   release  revoke the lease, which deletes the key
 * Step 4 is what the lock service inside etcd 3.4 leaves out, as Jepsen found in 2020: its waiters could believe that
 * they hold what they had lost. What remains is true of every lease: a holder that sleeps for longer than its lease
 * wakes up without the lock, and only the fencing token, the revision that created its key, can stop what it writes.
 * Every acquisition makes a new key, and etcd looks through the deleted ones too until they are compacted away: without
 * compaction a lock that is taken often grows slower, here about twice as slow after 8,000 times. */
#include "base/clock.h"
#include "lock/etcd/client/client.h"
#include "lock/lab.h"
#include "lock/registry.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY_SIZE = 160 };

/* A contender's place in the queue. */
struct place {
    struct etcd_lease lease;
    char queue[KEY_SIZE];     /* what the keys of the queue begin with … */
    char queue_end[KEY_SIZE]; /* … and the first text after all of them */
    char own[KEY_SIZE];
    int64_t created; /* the revision that created our key */
};

static void name_keys(struct place *place, const char *key)
{
    char name[KEY_SIZE - 24];
    lock_server_key(name, sizeof name, "", "/locks/", key);
    snprintf(place->queue, sizeof place->queue, "%s/", name);
    snprintf(place->queue_end, sizeof place->queue_end, "%s0", name); /* '0' comes after '/' */
    snprintf(place->own, sizeof place->own, "%s/%" PRIx64, name, (uint64_t)place->lease.id);
}

/* ---- acquiring ----------------------------------------------------------------------------------------- */

static json_t *read_own(const struct place *place)
{
    return json_pack("{s:{s:o,s:b}}", "request_range", "key", etcd_bytes(place->own), "keys_only", 1);
}

static json_t *read_first(const struct place *place)
{
    return json_pack("{s:{s:o,s:o,s:s,s:s,s:i,s:b}}", "request_range", "key", etcd_bytes(place->queue),
                     "range_end", etcd_bytes(place->queue_end), "sort_target", "CREATE", "sort_order",
                     "ASCEND", "limit", 1, "keys_only", 1);
}

/* The last of those that were created before us. */
static json_t *read_predecessor(const struct place *place)
{
    return json_pack("{s:{s:o,s:o,s:s,s:s,s:i,s:b,s:I}}", "request_range", "key", etcd_bytes(place->queue),
                     "range_end", etcd_bytes(place->queue_end), "sort_target", "CREATE", "sort_order",
                     "DESCEND", "limit", 1, "keys_only", 1, "max_create_revision",
                     (json_int_t)place->created - 1);
}

/* Step 2. LOCK_OK: we are the first, and hold the lock. LOCK_TIMED_OUT: we stand in the queue. */
static enum lock_status enter_queue(struct lock *lock, int64_t deadline_us, struct place *place)
{
    AUTO_JSON reply = NULL;
    json_t *put = json_pack("{s:{s:o,s:I}}", "request_put", "key", etcd_bytes(place->own), "lease",
                            (json_int_t)place->lease.id);
    json_t *transaction = json_pack(
        "{s:[{s:s,s:s,s:o,s:i}],s:[o,o],s:[o,o]}", "compare", "target", "CREATE", "result", "EQUAL", "key",
        etcd_bytes(place->own), "create_revision", 0, "success", put, read_first(place), "failure",
        read_own(place), read_first(place)); /* the failure is our own request, sent for the second time */
    enum lock_status status = etcd_call(etcd_of(lock), lock, deadline_us, "/v3/kv/txn", transaction, &reply);
    if (status != LOCK_OK)
        return status;
    place->created = etcd_succeeded(reply) ? etcd_revision(reply)
                                           : etcd_number(etcd_found(reply, 0), "create_revision");
    const json_t *first = etcd_found(reply, 1);
    if (place->created <= 0 || !first)
        return lock_fail(lock, LOCK_REFUSED, "etcd: a transaction's reply without its results");
    return etcd_number(first, "create_revision") == place->created ? LOCK_OK : LOCK_TIMED_OUT;
}

/* Steps 3 and 4. Our own key and our predecessor are read at one moment, each time that we are woken: a predecessor
 * that gave up is gone too, and then there is another one before us. */
static enum lock_status wait_in_queue(struct lock *lock, int64_t deadline_us, struct place *place)
{
    struct etcd *etcd = etcd_of(lock);
    while (true) {
        AUTO_JSON reply = NULL;
        json_t *look = json_pack("{s:[o,o]}", "success", read_own(place), read_predecessor(place));
        enum lock_status status = etcd_call(etcd, lock, deadline_us, "/v3/kv/txn", look, &reply);
        if (etcd_may_come_back(lock, deadline_us, &place->lease, status))
            continue;
        if (status != LOCK_OK)
            return status;
        if (etcd_number(etcd_found(reply, 0), "create_revision") != place->created)
            return lock_fail(lock, LOCK_LOST, "etcd: our place in the queue ended with its lease");
        const char *predecessor = json_string_value(json_object_get(etcd_found(reply, 1), "key"));
        if (predecessor) {
            report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE); /* here it may go unwatched */
            status = etcd_await_deletion(etcd, lock, deadline_us, predecessor, etcd_revision(reply),
                                         &place->lease);
        } else {
            status = etcd_freshen(etcd, lock, deadline_us, &place->lease);
        }
        if (etcd_may_come_back(lock, deadline_us, &place->lease, status))
            continue;
        if (status != LOCK_OK || !predecessor)
            return status;
    }
}

/* The place as a grant: its number is the lease's. */
static void fill_grant(const struct place *place, const char *key, struct lock_grant *ret_grant)
{
    char token[24];
    snprintf(token, sizeof token, "%" PRIx64, (uint64_t)place->lease.id);
    lock_fill_grant(ret_grant, key, token, place->lease.end_us);
    ret_grant->fence = place->created;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct place place;
    enum lock_status status;
    do { /* more than once only where the lease ended while we waited, and our place with it */
        place = (struct place){0};
        status = etcd_grant(etcd_of(lock), lock, deadline_us, &place.lease);
        if (status != LOCK_OK)
            return status;
        name_keys(&place, key);
        do
            status = enter_queue(lock, deadline_us, &place);
        while (etcd_may_come_back(lock, deadline_us, NULL, status));
        fill_grant(&place, key, ret_grant);
        if (status == LOCK_TIMED_OUT && monotonic_us() < deadline_us)
            status = wait_in_queue(lock, deadline_us, &place);
        if (status != LOCK_OK)
            status = etcd_give_up(etcd_of(lock), lock, place.lease.id, status);
    } while (status == LOCK_LOST && monotonic_us() < deadline_us);
    ret_grant->lease_end_us = place.lease.end_us; /* which who has waited has renewed */
    return status == LOCK_LOST ? LOCK_AWAY : status;
}

/* ---- holding and releasing ----------------------------------------------------------------------------- */

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    if (!*grant->token)
        return LOCK_NOT_OWNER; /* released before */
    enum lock_status status = etcd_revoke(etcd_of(lock), lock, INT64_MAX, etcd_lease_of(grant));
    *grant->token = '\0';
    return status;
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    AUTO_JSON reply = NULL;
    struct place place = {.lease.id = etcd_lease_of(grant)};
    name_keys(&place, grant->key);
    enum lock_status status = etcd_call(etcd_of(lock), lock, INT64_MAX, "/v3/kv/txn",
                                        json_pack("{s:[o]}", "success", read_own(&place)), &reply);
    if (status != LOCK_OK)
        return status;
    if (etcd_number(etcd_found(reply, 0), "create_revision") != grant->fence)
        return lock_fail(lock, LOCK_LOST, "etcd: our key is gone: its lease has ended");
    return LOCK_OK;
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    struct etcd_lease lease = {.id = etcd_lease_of(grant)};
    return etcd_keep_alive(etcd_of(lock), lock, INT64_MAX, &lease);
}

const struct lock_driver etcd_mutex = {
    .name = "etcd",
    .server = &etcd_server,
    .properties = {.mechanism = "a lease and a queue of keys in etcd, first created first served",
                   .blocking = true,
                   .fair = true,
                   .carrier = CARRIER_LEASE,
                   .renewed = true,
                   .fenced = true,
                   .survives_crash = true,
                   .survives_minority = true,
                   .perils = PERIL_PAUSE},
    .handle_size = sizeof(struct etcd_lock),
    .open = etcd_open_lock,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = etcd_close_lock,
    .lab = &(const struct lock_lab){.end = LOCK_ENDS_BY_RELEASE},
};
