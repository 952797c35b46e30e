/* The lock of the engine's tests: it records each call, and checks that it comes at the right place in the order. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_LOCK_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_LOCK_H

#include "tests/unit/service/engine/recorder.h"

static enum lock_status fake_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                                     struct lock_grant *ret_grant)
{
    const struct placing *p = fake.placing;
    rule(lock == p->lock, "another lock");
    rule(strcmp(key, "product:7") == 0, "another product's lock");
    bool gives_back = fake.tx_count >= 2; /* also past the deadlines, within a separate time */
    rule(gives_back || deadline_us <= p->lock_deadline_us,
         "the wait for the lock is longer than the lock's deadline");
    rule(gives_back || deadline_us <= p->deadline_us,
         "the wait for the lock is longer than the order's deadline");
    rule(gives_back ? deadline_us > fake.now_us && deadline_us <= fake.now_us + 5 * 1000000
                    : deadline_us == p->lock_deadline_us || deadline_us == p->deadline_us,
         "the wait for the lock is cut short");
    rule(lock->observer == p->observer, "the lock has another observer");
    bool first = fake.grants == 0;
    rule(first || p->strategy->span == SPAN_AROUND_TWICE, "a lock that is held is taken again");
    rule(fake.tx_open == (p->strategy->span == SPAN_INSIDE_TX || !first),
         "the lock is taken on the wrong side of BEGIN");
    rule(!fake.tx_failed || !fake.tx_open, "a lock is taken after a failure");

    enum lock_status status = (enum lock_status)meaning_of(lock_results, fake_call("acquire"));
    memset(ret_grant, 0xee, sizeof *ret_grant); /* not to be looked at when it failed */
    if (status != LOCK_OK) {
        snprintf(lock->error, sizeof lock->error, "%s", FAKE_LOCK_ERROR);
        fake.tx_failed = true;
        return status;
    }
    *ret_grant = (struct lock_grant){.fence = fake.fence, .lease_end_us = INT64_MAX};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%d", fake.grant_count);
    fake.grants |= 1ul << fake.grant_count++;
    return LOCK_OK;
}

/* Its number, or -1. */
static long held_grant(const struct lock_grant *grant)
{
    char *end;
    long number = strtol(grant->token, &end, 10);
    bool ours = end > grant->token && !*end && number >= 0 && number < 64 && (fake.grants & 1ul << number);
    return ours ? number : -1;
}

static enum lock_status fake_release(struct lock *lock, struct lock_grant *grant)
{
    long number = held_grant(grant);
    bool ours = number >= 0;
    rule(lock == fake.placing->lock, "another lock is released");
    rule(ours, "a lock is released that is not held");
    rule(!holds_outside() || !fake.tx_open, "the outer lock is released before the transaction has ended");
    rule(fake.placing->strategy->span != SPAN_INSIDE_TX || fake.tx_open,
         "the inner lock is released after the transaction");
    if (ours)
        fake.grants &= ~(1ul << number);
    memset(grant, 0xee, sizeof *grant); /* spent */
    return (enum lock_status)meaning_of(lock_results, fake_call("release"));
}

static enum lock_status fake_still_held(struct lock *lock, const struct lock_grant *grant)
{
    rule(lock == fake.placing->lock && held_grant(grant) >= 0, "another lock is asked for");
    return (enum lock_status)meaning_of(lock_results, fake_call("held"));
}

static enum lock_status fake_raise_fence(struct lock *lock, const char *key, int64_t fence)
{
    rule(lock == fake.placing->lock && strcmp(key, "product:7") == 0, "another lock's counter is raised");
    rule(fence == fake.fence + 7, "the counter is not raised to what was registered");
    return (enum lock_status)meaning_of(lock_results, fake_call("raise"));
}

static const struct lock_server fake_server = {.name = "fake server"};
static const struct lock_driver fake_driver = {.name = "fake",
                                               .server = &fake_server,
                                               .acquire = fake_acquire,
                                               .release = fake_release,
                                               .still_held = fake_still_held,
                                               .raise_fence = fake_raise_fence};
static struct lock fake_lock = {.driver = &fake_driver};

#endif
