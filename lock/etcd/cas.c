/* `etcd-cas`: the simplest lock in etcd. One key, put only if it is absent, with a lease as its time to live.
 *
 *   acquire  a transaction: if the key was never created, put it with a random token and our lease; else read it
 *   renew    a transaction compares the token; only then is the lease kept alive
 *   release  a transaction: if the token is ours, delete the key; then revoke the lease
 * "If absent" is the whole lock: a plain put with a time to live always succeeds, and everybody holds. npm's etcd3 and
 * others lock the same bare key in this way, and exclude us, as we do them.
 *
 * A waiter watches the key, and looks once more where the store has changed since it saw it taken, so that no deletion
 * is missed in between. All waiters watch the same key; so that a release does not wake them all, the waiters of a
 * process stand in line, and only the first of them watches. It hands the watch on to the next when it has got the lock
 * or given up, together with the revision. The line is for the watch alone: whether the lock is free is for etcd to
 * say, and a newcomer who finds it so goes before the line. */
#include "base/clock.h"
#include "lock/etcd/client/client.h"
#include "lock/lab.h"
#include "lock/registry.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 160 };

/* One acquisition. */
struct attempt {
    struct etcd_lease lease;
    char key[KEY_SIZE];
    char token[LOCK_TOKEN_SIZE];
    int64_t revision; /* at which the key was put by us, or last seen taken */
};

/* ---- the line of this process's waiters ---------------------------------------------------------------- */

struct waiter {
    struct waiter *next; /* who came later, for this key or another */
    const char *key;
    int64_t revision;
    bool watches;
    pthread_cond_t turn;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *line;

static struct waiter *first_for(const char *key)
{
    struct waiter *w = line;
    while (w && strcmp(w->key, key) != 0)
        w = w->next;
    return w;
}

static void join_line(struct waiter *me)
{
    pthread_cond_init(&me->turn, NULL);
    pthread_mutex_lock(&mutex);
    struct waiter **end = &line;
    while (*end)
        end = &(*end)->next;
    *end = me;
    me->watches = first_for(me->key) == me;
    pthread_mutex_unlock(&mutex);
}

static bool wait_for_turn(struct waiter *me, int64_t until_us)
{
    pthread_mutex_lock(&mutex);
    while (!me->watches && wait_until(&me->turn, &mutex, until_us)) {
    }
    bool watches = me->watches;
    pthread_mutex_unlock(&mutex);
    return watches;
}

static void leave_line(struct waiter *me)
{
    pthread_mutex_lock(&mutex);
    struct waiter **link = &line;
    while (*link != me)
        link = &(*link)->next;
    *link = me->next;
    struct waiter *next = me->watches ? first_for(me->key) : NULL;
    if (next) {
        next->watches = true;
        if (next->revision < me->revision)
            next->revision = me->revision;
        pthread_cond_signal(&next->turn);
    }
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&me->turn);
}

/* ---- acquiring ----------------------------------------------------------------------------------------- */

static json_t *read_key(const char *key)
{
    return json_pack("{s:{s:o}}", "request_range", "key", etcd_bytes(key));
}

static bool is_ours(const json_t *found, const char *token)
{
    AUTO_JSON ours = etcd_bytes(token);
    return ours && json_equal(json_object_get(found, "value"), ours);
}

/* LOCK_OK: it was absent, and is ours. LOCK_TIMED_OUT: it is somebody else's. */
static enum lock_status put_if_absent(struct lock *lock, int64_t deadline_us, struct attempt *attempt)
{
    AUTO_JSON reply = NULL;
    json_t *put = json_pack("{s:{s:o,s:o,s:I}}", "request_put", "key", etcd_bytes(attempt->key), "value",
                            etcd_bytes(attempt->token), "lease", (json_int_t)attempt->lease.id);
    json_t *transaction = json_pack("{s:[{s:s,s:s,s:o,s:i}],s:[o],s:[o]}", "compare", "target", "CREATE",
                                    "result", "EQUAL", "key", etcd_bytes(attempt->key), "create_revision", 0,
                                    "success", put, "failure", read_key(attempt->key));
    enum lock_status status = etcd_call(etcd_of(lock), lock, deadline_us, "/v3/kv/txn", transaction, &reply);
    if (status != LOCK_OK)
        return status;
    attempt->revision = etcd_revision(reply);
    if (!etcd_succeeded(reply)) {
        if (!is_ours(etcd_found(reply, 0), attempt->token))
            return LOCK_TIMED_OUT;
        /* Our own request had been done when its reply was lost, and this was its second sending. */
        attempt->revision = etcd_number(etcd_found(reply, 0), "create_revision");
    }
    return attempt->revision > 0
               ? LOCK_OK
               : lock_fail(lock, LOCK_REFUSED, "etcd: a transaction's reply without a revision");
}

/* Waits for the turn to watch, and keeps the lease alive meanwhile. */
static enum lock_status stand_in_line(struct lock *lock, int64_t deadline_us, struct attempt *attempt,
                                      struct waiter *me)
{
    enum lock_status status = LOCK_OK;
    while (status == LOCK_OK) {
        int64_t due_us = etcd_renewal_due_us(&attempt->lease);
        if (wait_for_turn(me, deadline_us < due_us ? deadline_us : due_us))
            return LOCK_OK;
        status = monotonic_us() < deadline_us
                     ? etcd_keep_alive(etcd_of(lock), lock, deadline_us, &attempt->lease)
                     : LOCK_TIMED_OUT;
        if (etcd_may_come_back(lock, deadline_us, &attempt->lease, status))
            status = LOCK_OK;
    }
    return status;
}

static enum lock_status wait_until_absent(struct lock *lock, int64_t deadline_us, struct attempt *attempt)
{
    struct waiter me = {.key = attempt->key, .revision = attempt->revision};
    AUTO_JSON key = etcd_bytes(attempt->key);
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
    join_line(&me);
    enum lock_status status = key ? stand_in_line(lock, deadline_us, attempt, &me) : LOCK_FAILED;
    while (status == LOCK_OK) {
        status = etcd_await_deletion(etcd_of(lock), lock, deadline_us, json_string_value(key), me.revision,
                                     &attempt->lease);
        if (status == LOCK_OK) {
            do /* once more where the reply was lost: a put that was done is known by its token */
                status = put_if_absent(lock, deadline_us, attempt);
            while (etcd_may_come_back(lock, deadline_us, &attempt->lease, status));
            me.revision = attempt->revision;
            if (status == LOCK_OK)
                break;
            if (status == LOCK_TIMED_OUT)
                status = LOCK_OK; /* somebody else was faster */
        } else if (etcd_may_come_back(lock, deadline_us, &attempt->lease, status)) {
            status = LOCK_OK;
        }
    }
    leave_line(&me);
    return status == LOCK_OK ? etcd_freshen(etcd_of(lock), lock, deadline_us, &attempt->lease) : status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct attempt attempt;
    enum lock_status status;
    do { /* more than once only where the lease ended while we waited */
        attempt = (struct attempt){0};
        if (!lock_random_token(attempt.token))
            return lock_fail(lock, LOCK_FAILED, "no randomness for a token");
        lock_server_key(attempt.key, sizeof attempt.key, "", "/locks/", key);
        status = etcd_grant(etcd_of(lock), lock, deadline_us, &attempt.lease);
        if (status != LOCK_OK)
            return status;
        do
            status = put_if_absent(lock, deadline_us, &attempt);
        while (etcd_may_come_back(lock, deadline_us, NULL, status));
        if (status == LOCK_TIMED_OUT && monotonic_us() < deadline_us)
            status = wait_until_absent(lock, deadline_us, &attempt);
        if (status != LOCK_OK)
            status = etcd_give_up(etcd_of(lock), lock, attempt.lease.id, status);
    } while (status == LOCK_LOST && monotonic_us() < deadline_us);
    if (status != LOCK_OK)
        return status == LOCK_LOST ? LOCK_AWAY : status;

    *ret_grant = (struct lock_grant){.fence = attempt.revision, .lease_end_us = attempt.lease.end_us};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%" PRIx64 "/%s", (uint64_t)attempt.lease.id,
             attempt.token);
    return LOCK_OK;
}

/* ---- holding and releasing ----------------------------------------------------------------------------- */

/* If the key's value is the grant's token, does CHANGE to the key; else LOCK_LOST. */
static enum lock_status if_ours(struct lock *lock, const struct lock_grant *grant, const char *change)
{
    AUTO_JSON reply = NULL;
    char key[KEY_SIZE];
    const char *slash = strchr(grant->token, '/');
    lock_server_key(key, sizeof key, "", "/locks/", grant->key);
    json_t *transaction = json_pack("{s:[{s:s,s:s,s:o,s:o}],s:[{s:{s:o}}]}", "compare", "target", "VALUE",
                                    "result", "EQUAL", "key", etcd_bytes(key), "value",
                                    etcd_bytes(slash ? slash + 1 : ""), "success", change, "key",
                                    etcd_bytes(key));
    enum lock_status status = etcd_call(etcd_of(lock), lock, INT64_MAX, "/v3/kv/txn", transaction, &reply);
    if (status == LOCK_OK && !etcd_succeeded(reply))
        return lock_fail(lock, LOCK_LOST, "etcd: the key is not ours any more");
    return status;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    if (!*grant->token)
        return LOCK_NOT_OWNER; /* released before */
    enum lock_status status = if_ours(lock, grant, "request_delete_range");
    if (status == LOCK_LOST && etcd_was_repeated(etcd_of(lock)))
        status = LOCK_OK; /* the first sending of this request has deleted it */
    status = etcd_give_up(etcd_of(lock), lock, etcd_lease_of(grant), status);
    *grant->token = '\0';
    return status;
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    return if_ours(lock, grant, "request_range");
}

static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    struct etcd_lease lease = {.id = etcd_lease_of(grant)};
    enum lock_status status = if_ours(lock, grant, "request_range");
    return status == LOCK_OK ? etcd_keep_alive(etcd_of(lock), lock, INT64_MAX, &lease) : status;
}

const struct lock_driver etcd_cas = {
    .name = "etcd-cas",
    .server = &etcd_server,
    .properties = {.mechanism = "one key in etcd, put if absent, with a lease",
                   .blocking = true,
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
