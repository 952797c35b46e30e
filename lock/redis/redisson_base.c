/* What locks in the format of Redisson (the Java client) share, as its RedissonBaseLock. */
#include "lock/redis/redisson_base.h"

#include "lock/process_gate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t redisson_next_number(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

enum lock_status redisson_open_at(const struct lock_driver *driver, const char *url, size_t size,
                                  uint64_t number, struct lock **ret_lock)
{
    char client_uuid[LOCK_UUID_SIZE];
    struct redisson_handle *r = process_gate_client_id(NULL, client_uuid) ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return LOCK_FAILED;
    r->redis = redis_new(url, size);
    if (!r->redis) {
        free(r);
        return LOCK_FAILED;
    }
    r->url = url;
    r->url_size = size;
    r->limit_ms = LOCK_COMMAND_MS;
    snprintf(r->identity, sizeof r->identity, "%s:%llu", client_uuid, (unsigned long long)number);
    r->base.driver = driver;
    *ret_lock = &r->base;
    return LOCK_OK;
}

enum lock_status redisson_open(const struct lock_driver *driver, struct lock **ret_lock)
{
    const char *url = lock_config.redis_url;
    return *url ? redisson_open_at(driver, url, strlen(url), redisson_next_number(), ret_lock)
                : LOCK_UNAVAILABLE;
}

void redisson_close(struct lock *lock)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    if (!r)
        return;
    redis_free(r->redis);
    free(r);
}

void redisson_name(char ret_name[static REDISSON_NAME_SIZE], const char *key)
{
    lock_server_key(ret_name, REDISSON_NAME_SIZE, "", ":lock:", key);
}

void redisson_name_beside(char ret_name[static REDISSON_NAME_SIZE], const char *what, const char *name)
{
    /* In a cluster the braces put both on one server; a name that has its own needs none. */
    snprintf(ret_name, REDISSON_NAME_SIZE, strchr(name, '{') ? "%s:%s" : "%s:{%s}", what, name);
}

int64_t redisson_limit(const struct redisson_handle *r, int64_t limit_ms)
{
    return limit_ms < r->limit_ms ? limit_ms : r->limit_ms;
}

void redisson_grant(struct redisson_handle *r, const char *key, int64_t sent_us, struct lock_grant *ret_grant)
{
    *ret_grant = (struct lock_grant){.lease_end_us = sent_us + r->base.lease_ms * 1000};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%s", r->identity);
    r->held++;
}

enum lock_status redisson_still_held(struct lock *lock, const struct lock_grant *grant)
{
    struct redisson_handle *r = (struct redisson_handle *)lock;
    char name[REDISSON_NAME_SIZE];
    AUTO_REPLY reply = NULL;
    redisson_name(name, grant->key);
    enum lock_status status = redis_command(r->redis, lock, redisson_limit(r, lock_try_ms(LOCK_TRY_MS)),
                                            &reply, "HEXISTS %s %s", name, grant->token);
    if (status == LOCK_OK && redis_integer(reply) != 1)
        return lock_fail(lock, LOCK_LOST, "the lease has ended");
    return status;
}

enum lock_status redisson_renew(struct lock *lock, const struct lock_grant *grant)
{
    static struct redis_script script = {
        .text = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end "
                "return redis.call('pexpire', KEYS[1], ARGV[2])",
    };
    struct redisson_handle *r = (struct redisson_handle *)lock;
    char name[REDISSON_NAME_SIZE], lease[24];
    AUTO_REPLY reply = NULL;
    redisson_name(name, grant->key);
    snprintf(lease, sizeof lease, "%lld", (long long)lock->lease_ms);
    const char *words[] = {name, grant->token, lease};
    enum lock_status status = redis_eval(r->redis, lock, redisson_limit(r, lock_try_ms(LOCK_TRY_MS)), &reply,
                                         &script, 1, words, 3);
    if (status == LOCK_OK && redis_integer(reply) != 1)
        return lock_fail(lock, LOCK_LOST, "the lease has ended");
    return status;
}
