/* POST /locks/NAME/hold takes a lock by hand for a while, so that a lesson in two terminals shows the wait for it. */
#include "base/clock.h"
#include "service/api/api.h"

#include <string.h>

enum { HOLD_MAX_MS = 600000, SLICE_US = 20000 };

static void list_locks(char *ret_names, size_t size)
{
    size_t used = 0;
    ret_names[0] = '\0';
    for (size_t i = 0; i < strategy_count && used < size; i++)
        if (strategies[i].lock)
            used += (size_t)snprintf(ret_names + used, size - used, "%s%s", used ? ", " : "",
                                     strategies[i].name);
}

static void reply_status(struct exchange *x, const struct lock_driver *driver, enum lock_status status,
                         const char *error)
{
    const char *server = driver->server ? driver->server->name : "the process";
    json_t *members = json_pack("{s:s, s:b}", "lock", driver->name, "acquired", 0);
    switch (status) {
    case LOCK_TIMED_OUT:
        reply_problem(x, PROBLEM_LOCK_TIMEOUT, members,
                      "another client held the lock until the wait ended; try again");
        return;
    case LOCK_AWAY:
    case LOCK_REFUSED:
    case LOCK_UNAVAILABLE:
        json_object_set_new(members, "backend", json_string(server));
        reply_problem(x, PROBLEM_BACKEND_UNAVAILABLE, members, "%s: %s", server, error);
        return;
    default:
        reply_problem(x, PROBLEM_INTERNAL_ERROR, members, "%s: %s", lock_status_name(status), error);
        return;
    }
}

/* Sleeps for as long as asked, but not while the service shuts down. */
static void hold_on(const struct service *service, int64_t until_us)
{
    for (int64_t left_us; (left_us = until_us - monotonic_us()) > 0 && !atomic_load(&service->draining);) {
        struct timespec slice = {.tv_nsec = (left_us < SLICE_US ? left_us : SLICE_US) * 1000};
        nanosleep(&slice, NULL);
    }
}

static void hold(struct exchange *x, const struct service *service, struct lock *lock, int64_t hold_us,
                 int64_t wait_us)
{
    struct lock_grant grant;
    int64_t begun_us = monotonic_us();
    enum lock_status status = lock_acquire(lock, x->argument, begun_us + wait_us, &grant);
    if (status != LOCK_OK) {
        reply_status(x, lock->driver, status, lock->error);
        return;
    }
    int64_t held_us = monotonic_us(), fence = grant.fence;
    hold_on(service, held_us + hold_us);
    status = lock_release(lock, &grant);
    int64_t ended_us = monotonic_us();
    http_reply_json(x, 200,
                    json_pack("{s:b, s:I, s:I, s:o, s:b}", "acquired", 1, "waited_ms",
                              (json_int_t)(held_us - begun_us) / 1000, "held_ms",
                              (json_int_t)(ended_us - held_us) / 1000, "fence",
                              fence ? json_integer(fence) : json_null(), "released", status == LOCK_OK));
}

void locks_hold(struct exchange *x, struct worker *worker)
{
    struct settings settings = product_settings(worker->service->orders.queue, 0);
    const char *name = NULL;
    int64_t hold_ms = 0, wait_ms = settings.lock_wait_ms, lease_ms = 0;
    const struct member members[] = {
        {"lock", BODY_STRING, true, &name, 1, 64},
        {"hold_ms", BODY_INTEGER, true, &hold_ms, 0, HOLD_MAX_MS},
        {"wait_ms", BODY_INTEGER, false, &wait_ms, 0, LOCK_WAIT_MAX_MS},
        {"lease_ms", BODY_INTEGER, false, &lease_ms, 0, LOCK_TTL_MAX_MS},
        {0},
    };
    if (!lock_is_name(x->argument)) {
        reply_problem(x, PROBLEM_NOT_FOUND, NULL,
                      "a lock's name has 1 to 64 characters of A-Z a-z 0-9 : . _ - and is neither . nor ..");
        return;
    }
    AUTO_JSON body = api_body(x, members);
    if (!body)
        return;
    const struct lock_driver *driver = strategy_lock(name);
    if (!driver) {
        char names[2048];
        list_locks(names, sizeof names);
        reply_problem(x, PROBLEM_INVALID_ORDER, json_pack("{s:s}", "member", "lock"),
                      "there is no lock '%s'; valid: %s", name, names);
        return;
    }
    struct lock *lock = NULL;
    enum lock_status status = lock_open(driver, &lock);
    if (status != LOCK_OK) {
        reply_status(x, driver, status,
                     status == LOCK_UNAVAILABLE ? "it is not configured" : "its lock cannot be opened");
        return;
    }
    /* What has no lease may have a session, whose timeout is of the whole process and not for one call to choose. */
    lock->lease_ms = lease_ms && driver->properties.carrier == CARRIER_LEASE ? lease_ms
                                                                             : settings.lock_ttl_ms;
    lock->lease_ends = lease_ms > 0;
    lock->lease_renewed = lease_ms == 0;
    atomic_fetch_add(&worker->service->holds, 1);
    hold(x, worker->service, lock, hold_ms * 1000, wait_ms * 1000);
    atomic_fetch_sub(&worker->service->holds, 1);
    lock_close(lock);
}
