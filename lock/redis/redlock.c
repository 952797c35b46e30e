/* `redlock`: a lock on a majority of several Redis servers, so that any minority of them may fail, after "Distributed Locks
 * with Redis" in Redis's documentation.
 *
 * The servers know nothing of each other. A contender sends the same SET NX PX to all of them at once. If a majority sets the
 * key in much less than the TTL, the contender holds the lock for the rest of it: TTL − time used − clock drift. Otherwise it
 * releases on all servers, also on those that refused or did not answer, waits for a random time, so that two contenders that
 * have split the votes do not split them again, and tries again.
 *
 * What can go wrong: the algorithm needs clocks that run evenly and servers that do not forget. A holder that sleeps for longer
 * than its validity writes while the next one holds the lock. If a server of the majority forgets the key, because its clock
 * jumps or because it restarts without its memory, a second majority is possible. There is no fencing token, since no server
 * counts for all.
 *
 * Keys and values are those of node-redlock; unlike it, this lock checks the validity that is left, and releases between tries. */
#include "base/clock.h"
#include "lock/redis/client/nodes.h"
#include "lock/registry.h"

#include <stdio.h>
#include <string.h>

enum {
    NODE_LEAST_MS = 5, /* how long the servers may take to answer: TTL/200, in these bounds */
    NODE_MOST_MS = 50,
    DRIFT_MS = 2, /* and a hundredth of the TTL */
};

/* Sent as text each time: to remember which of the servers knows the script would cost more than it saves. */
static const char release_script[] =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])";
static const char extend_script[] =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('pexpire', KEYS[1], ARGV[2])";

static const struct redlock_yes WAS_SET = {REDIS_REPLY_STATUS, "OK"};
static const struct redlock_yes DONE = {REDIS_REPLY_INTEGER, NULL}; /* of both scripts */

struct quorum_lock {
    struct lock base;
    struct redlock_nodes *nodes;
};

/* A question about one key. */
struct question {
    char key[200];
    char ttl[24];
    const char *token;
};

static struct question question_of(const struct lock *lock, const char *key, const char *token)
{
    struct question q = {.token = token};
    lock_server_key(q.key, sizeof q.key, "", ":lock:", key);
    snprintf(q.ttl, sizeof q.ttl, "%lld", (long long)lock->lease_ms);
    return q;
}

static struct redlock_votes ask_release(struct quorum_lock *r, const struct question *q, int64_t limit_ms)
{
    const char *const words[] = {"EVAL", release_script, "1", q->key, q->token};
    return redlock_ask(r->nodes, &r->base, limit_ms, DONE, words, 5);
}

/* What the votes on a grant mean: it is lost only if a majority says so. */
static enum lock_status verdict(struct quorum_lock *r, const struct redlock_votes *votes)
{
    int count = redlock_count(r->nodes), quorum = redlock_quorum(r->nodes);
    if (votes->yes >= quorum)
        return LOCK_OK;
    if (votes->no > count - quorum)
        return lock_fail(&r->base, LOCK_LOST, "%d of %d servers do not have it any more", votes->no, count);
    return lock_fail(&r->base, votes->refused > count - quorum ? LOCK_REFUSED : LOCK_AWAY,
                     "of %d servers %d agree, %d do not, %d are silent, %d refuse%s%s", count, votes->yes,
                     votes->no, votes->silent, votes->refused, *votes->refusal ? ": " : "", votes->refusal);
}

static int64_t drift_ms(int64_t ttl_ms)
{
    return ttl_ms / 100 + DRIFT_MS;
}

static int64_t node_limit_ms(int64_t ttl_ms)
{
    int64_t limit_ms = ttl_ms / 200;
    return lock_try_ms(limit_ms < NODE_LEAST_MS  ? NODE_LEAST_MS
                       : limit_ms > NODE_MOST_MS ? NODE_MOST_MS
                                                 : limit_ms);
}

/* One round. LOCK_OK with the end of the lock's validity, or why not. */
static enum lock_status try_once(struct quorum_lock *r, const struct question *q, int64_t *ret_valid_until_us)
{
    int64_t ttl_ms = r->base.lease_ms, began_us = monotonic_us();
    const char *const words[] = {"SET", q->key, q->token, "NX", "PX", q->ttl};
    struct redlock_votes votes = redlock_ask(r->nodes, &r->base, node_limit_ms(ttl_ms), WAS_SET, words, 6);
    int64_t valid_until_us = began_us + (ttl_ms - drift_ms(ttl_ms)) * 1000;
    if (votes.yes >= redlock_quorum(r->nodes) && monotonic_us() < valid_until_us) {
        *ret_valid_until_us = valid_until_us;
        return LOCK_OK;
    }
    (void)ask_release(r, q, node_limit_ms(ttl_ms));
    enum lock_status status = verdict(r, &votes);
    if (status == LOCK_OK || status == LOCK_LOST || votes.yes + votes.no >= redlock_quorum(r->nodes))
        return lock_fail(&r->base, LOCK_TIMED_OUT, "%d of %d votes", votes.yes, redlock_count(r->nodes));
    return status;
}

static enum lock_status acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                struct lock_grant *ret_grant)
{
    struct quorum_lock *r = (struct quorum_lock *)lock;
    char token[LOCK_TOKEN_SIZE];
    int64_t valid_until_us = 0;
    enum lock_status status;
    do {
        if (!lock_random_token(token)) /* a new one for each round: a vote that comes late is for nobody */
            return lock_fail(lock, LOCK_FAILED, "no randomness");
        struct question q = question_of(lock, key, token);
        status = try_once(r, &q, &valid_until_us);
    } while ((status == LOCK_TIMED_OUT || status == LOCK_AWAY) &&
             lock_poll_pause(lock, redlock_pause_ms(), deadline_us));
    if (status != LOCK_OK)
        return status;
    lock_fill_grant(ret_grant, key, token, valid_until_us);
    return LOCK_OK;
}

static enum lock_status release(struct lock *lock, struct lock_grant *grant)
{
    struct quorum_lock *r = (struct quorum_lock *)lock;
    if (!*grant->token)
        return lock_fail(lock, LOCK_NOT_OWNER, "released before");
    struct question q = question_of(lock, grant->key, grant->token);
    /* Returns with the majority's answers: a minority that does not answer costs no time. */
    struct redlock_votes votes = ask_release(r, &q, LOCK_COMMAND_MS);
    *grant->token = '\0'; /* spent */
    return verdict(r, &votes);
}

static enum lock_status still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct quorum_lock *r = (struct quorum_lock *)lock;
    struct question q = question_of(lock, grant->key, grant->token);
    const char *const words[] = {"GET", q.key};
    struct redlock_yes our_token = {REDIS_REPLY_STRING, q.token};
    struct redlock_votes votes = redlock_ask(r->nodes, lock, lock_try_ms(LOCK_TRY_MS), our_token, words, 2);
    return verdict(r, &votes);
}

/* The end of the validity need not be remembered for this: a majority that still has our token has had it all the time, since
 * nobody sets this token twice. */
static enum lock_status renew(struct lock *lock, const struct lock_grant *grant)
{
    struct quorum_lock *r = (struct quorum_lock *)lock;
    struct question q = question_of(lock, grant->key, grant->token);
    int64_t began_us = monotonic_us();
    const char *const words[] = {"EVAL", extend_script, "1", q.key, q.token, q.ttl};
    struct redlock_votes votes = redlock_ask(r->nodes, lock, lock_try_ms(LOCK_TRY_MS), DONE, words, 6);
    enum lock_status status = verdict(r, &votes);
    if (status == LOCK_OK && monotonic_us() - began_us > (lock->lease_ms - drift_ms(lock->lease_ms)) * 1000)
        return lock_fail(lock, LOCK_LOST, "the extension took longer than it extends");
    return status;
}

static void close_lock(struct lock *lock)
{
    redlock_nodes_free(((struct quorum_lock *)lock)->nodes);
}

static bool open_lock(struct lock *lock)
{
    struct quorum_lock *r = (struct quorum_lock *)lock;
    r->nodes = redlock_nodes_new(lock_config.redlock_urls);
    return r->nodes;
}

const struct lock_driver redlock = {
    .name = "redlock",
    .server = &redlock_servers,
    .properties = {.mechanism =
                       "the same key on a majority of independent Redis servers, with a validity time",
                   .carrier = CARRIER_LEASE,
                   .survives_crash = true,
                   .survives_minority = true,
                   .perils = PERIL_PAUSE | PERIL_CLOCK | PERIL_RESTART},
    .handle_size = sizeof(struct quorum_lock),
    .open = open_lock,
    .acquire = acquire,
    .release = release,
    .still_held = still_held,
    .renew = renew,
    .close = close_lock,
};
