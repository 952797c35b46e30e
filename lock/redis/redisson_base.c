/* Acquires and releases locks in the format of Redisson, the Java client: runs the scripts of redis-reentrant and redis-fair,
 * and waits for the messages that a release publishes. */
#include "lock/redis/redisson_base.h"
#include "base/clock.h"
#include "lock/process_gate.h"
#include "lock/redis/client/wakeup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_SIZE = 200,
    LOOK_AGAIN_MS = 10000, /* at a lock that is held for longer, or without end, as a stranger's may be */
    CORRECT_MS = 50,       /* the script after a lost reply is sent, and not waited for long */
};

/* ---- acquiring and releasing ------------------------------------------------------------------------------- */

static const struct redisson_kind *kind_of(const struct redisson_handle *r)
{
    return r->base.driver->variant;
}

/* After a lost reply: true if the lock was held by WHO. */
static bool correct(struct redisson_handle *r, const char *key, const char *who, int64_t limit_ms)
{
    AUTO_REPLY reply = NULL;
    return redisson_run(r, kind_of(r)->correct, key, who, 0, limit_ms, &reply) == LOCK_OK &&
           reply->type != REDIS_REPLY_NIL;
}

/* One request, which asks for a place in the queue for PLACE_MS if the lock is taken (0: for none): LOCK_OK, or
 * LOCK_TIMED_OUT with the time after which to try again without a message. */
static enum lock_status try_once(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                 int64_t place_ms, int64_t *ret_pause_ms, struct lock_grant *ret_grant)
{
    AUTO_REPLY reply = NULL;
    int64_t sent_us = monotonic_us(), lease_ms = r->base.lease_ms;
    int64_t longest_ms = kind_of(r)->queues ? lease_ms / 3
                                            : LOOK_AGAIN_MS; /* a place is renewed as a lease is */
    enum lock_status status = redisson_run(r, kind_of(r)->take, key, r->identity, place_ms,
                                           lock_command_ms(deadline_us), &reply);
    if (status == LOCK_AWAY && redis_was_sent(r->redis))
        (void)correct(r, key, r->identity, CORRECT_MS); /* it may be ours without our knowing: give it back */
    if (status != LOCK_OK)
        return status;
    if (reply->type == REDIS_REPLY_NIL) {
        lock_fill_grant(ret_grant, key, r->identity, sent_us + lease_ms * 1000);
        r->held++;
        return LOCK_OK;
    }
    *ret_pause_ms = redis_integer(reply);
    if (*ret_pause_ms < 0 || *ret_pause_ms > longest_ms)
        *ret_pause_ms = longest_ms;
    return lock_fail(&r->base, LOCK_TIMED_OUT, "taken");
}

/* For how long to ask for a place: one lease, or until our own wait ends and the last try is done. 0: there is no queue. */
static int64_t place_ms(const struct redisson_handle *r, int64_t deadline_us)
{
    int64_t left_ms = (deadline_us - monotonic_us()) / 1000;
    return kind_of(r)->queues ? (left_ms < r->base.lease_ms ? left_ms : r->base.lease_ms) + LOCK_TRY_MS : 0;
}

static void name(char ret_name[static NAME_SIZE], const char *key)
{
    lock_server_key(ret_name, NAME_SIZE, "", ":lock:", key);
}

/* "redisson_lock__channel:{oversell:lock:product:1}": in a cluster the braces put both keys on one server; a name that has
 * its own needs none. */
static void name_beside(char ret_name[static NAME_SIZE], const char *what, const char *name)
{
    snprintf(ret_name, NAME_SIZE, strchr(name, '{') ? "%s:%s" : "%s:{%s}", what, name);
}

/* Subscribes before it tries again and takes a place: a release between the first try and the subscription is not missed. */
static enum lock_status wait_for_it(struct redisson_handle *r, const char *key, int64_t deadline_us,
                                    struct lock_grant *ret_grant)
{
    char lock_name[NAME_SIZE], all[NAME_SIZE], channel[NAME_SIZE + sizeof r->identity];
    AUTO_WAITER waiter = NULL;
    int64_t pause_ms = 0;
    name(lock_name, key);
    name_beside(all, "redisson_lock__channel", lock_name);
    snprintf(channel, sizeof channel, kind_of(r)->queues ? "%s:%s" : "%s", all, r->identity);
    enum lock_status status = redis_wakeup_join(&r->base, r->url, r->url_size, channel,
                                                lock_command_ms(deadline_us), &waiter);
    if (status != LOCK_OK)
        return status;
    do {
        status = try_once(r, key, deadline_us, place_ms(r, deadline_us), &pause_ms, ret_grant);
        if (status == LOCK_TIMED_OUT) /* a waiter is named in the same way as the holder */
            lock_fill_grant(ret_grant, key, r->identity, INT64_MAX);
    } while (status == LOCK_TIMED_OUT &&
             redis_wakeup_wait_for_turn(&r->base, waiter, ret_grant, pause_ms + 1, deadline_us));
    if (kind_of(r)->queues && (status == LOCK_TIMED_OUT || status == LOCK_REFUSED))
        (void)correct(r, key, r->identity,
                      LOCK_TRY_MS); /* else the place times out, or try_once has done it */
    redis_wakeup_leave(waiter, status);
    waiter = NULL;
    return status;
}

enum lock_status redisson_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                  struct lock_grant *ret_grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    int64_t pause_ms = 0;
    enum lock_status status = try_once(r, key, deadline_us, 0, &pause_ms, ret_grant);
    if (status != LOCK_TIMED_OUT || monotonic_us() >= deadline_us)
        return status;
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
    return wait_for_it(r, key, deadline_us, ret_grant);
}

enum lock_status redisson_release(struct lock *lock, struct lock_grant *grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    AUTO_REPLY reply = NULL;
    if (!*grant->token)
        return lock_fail(lock, LOCK_NOT_OWNER, "released before");
    if (r->held > 0)
        r->held--;
    enum lock_status status = redisson_run(r, kind_of(r)->release, grant->key, grant->token, 0,
                                           LOCK_COMMAND_MS, &reply);
    if (status == LOCK_OK && reply->type == REDIS_REPLY_NIL)
        status = lock_fail(lock, LOCK_LOST, "the lease had ended");
    if (status == LOCK_AWAY && correct(r, grant->key, grant->token, CORRECT_MS))
        status = LOCK_OK;
    *grant->token = '\0'; /* spent */
    return status;
}

/* ---- what a holder asks -------------------------------------------------------------------------------------- */

static int64_t limit(const struct redisson_handle *r, int64_t limit_ms)
{
    return limit_ms < r->limit_ms ? limit_ms : r->limit_ms;
}

/* STATUS of a request whose reply is 1 if the lock is held. */
static enum lock_status held_if_1(struct lock *lock, enum lock_status status, const redisReply *reply)
{
    if (status == LOCK_OK && redis_integer(reply) != 1)
        return lock_fail(lock, LOCK_LOST, "the lease has ended");
    return status;
}

enum lock_status redisson_still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    char lock_name[NAME_SIZE];
    AUTO_REPLY reply = NULL;
    name(lock_name, grant->key);
    enum lock_status status = redis_command(r->redis, lock, limit(r, lock_try_ms(LOCK_TRY_MS)), &reply,
                                            "HEXISTS %s %s", lock_name, grant->token);
    return held_if_1(lock, status, reply);
}

enum lock_status redisson_renew(struct lock *lock, const struct lock_grant *grant)
{
    static struct redis_script script = {
        .text = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end "
                "return redis.call('pexpire', KEYS[1], ARGV[2])",
    };
    AUTO_REPLY reply = NULL;
    enum lock_status status = redisson_run((struct redisson_handle *)lock, &script, grant->key, grant->token,
                                           0, lock_try_ms(LOCK_TRY_MS), &reply);
    return held_if_1(lock, status, reply);
}

/* ---- the handle -------------------------------------------------------------------------------------------------- */

enum lock_status redisson_run(struct redisson_handle *r, struct redis_script *script, const char *key,
                              const char *who, int64_t place_ms, int64_t limit_ms, redisReply **ret_reply)
{
    enum { KEYS = 4, ARGUMENTS = 4 };
    static const char *const beside[KEYS] = {NULL, "redisson_lock__channel", "redisson_lock_queue",
                                             "redisson_lock_timeout"};
    int key_count = kind_of(r)->queues ? KEYS : 2;
    char names[KEYS][NAME_SIZE], lease[24], count[12], place[24];
    const char *words[KEYS + ARGUMENTS], **word = words;
    name(names[0], key);
    for (int i = 0; i < key_count; i++) {
        if (i > 0)
            name_beside(names[i], beside[i], names[0]);
        *word++ = names[i];
    }
    snprintf(lease, sizeof lease, "%lld", (long long)r->base.lease_ms);
    snprintf(count, sizeof count, "%d", r->held);
    snprintf(place, sizeof place, "%lld", (long long)place_ms);
    memcpy(word, (const char *[]){who, lease, count, place}, ARGUMENTS * sizeof *word);
    return redis_eval(r->redis, &r->base, limit(r, limit_ms), ret_reply, script, key_count, words,
                      key_count + ARGUMENTS);
}

uint64_t redisson_next_number(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

bool redisson_open_at(struct redisson_handle *r, const char *url, size_t size, uint64_t number)
{
    char client_uuid[LOCK_UUID_SIZE];
    if (!process_gate_client_id(NULL, client_uuid))
        return false;
    snprintf(r->identity, sizeof r->identity, "%s:%llu", client_uuid, (unsigned long long)number);
    r->redis = redis_new(url, size);
    r->url = url;
    r->url_size = size;
    r->limit_ms = LOCK_COMMAND_MS;
    return r->redis;
}

bool redisson_open(struct lock *lock)
{
    return redisson_open_at((struct redisson_handle *)lock, lock_config.redis_url,
                            strlen(lock_config.redis_url), redisson_next_number());
}

void redisson_close(struct lock *lock)
{
    redis_free(((struct redisson_handle *)lock)->redis);
}
