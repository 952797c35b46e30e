/* Calls the implementation of a lock for its callers, has leases renewed, and holds the functions that implementations
 * share. */
#include "base/clock.h"
#include "lock/lock_driver.h"

#include "lock/lease_renewer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

bool lock_is_name(const char *name)
{
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:._-");
    return length > 0 && length <= LOCK_NAME_MAX && !name[length] && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

const char *lock_status_name(enum lock_status status)
{
    static const char *const names[] = {"ok",   "busy",    "lost",        "not owner",
                                        "away", "refused", "unavailable", "failed"};
    return names[status];
}

static bool is_configured(const struct lock_server *server)
{
    return !server || **server->address;
}

enum lock_status lock_open(const struct lock_driver *driver, struct lock **ret_lock)
{
    if (!is_configured(driver->server))
        return LOCK_UNAVAILABLE;
    struct lock *lock = calloc(1, driver->handle_size ? driver->handle_size : sizeof *lock);
    if (!lock)
        return LOCK_FAILED;
    lock->driver = driver;
    if (driver->open && !driver->open(lock)) {
        lock_close(lock);
        return LOCK_FAILED;
    }
    *ret_lock = lock;
    return LOCK_OK;
}

enum lock_status lock_ping(const struct lock_server *server, int64_t deadline_us, char *ret_error,
                           size_t size)
{
    if (is_configured(server))
        return server->ping(deadline_us, ret_error, size);
    snprintf(ret_error, size, "%s is not set", server->setting);
    return LOCK_UNAVAILABLE;
}

static bool is_renewed(const struct lock *lock)
{
    return lock->driver->renew && !lock->lease_ends &&
           (lock->lease_renewed || lock->driver->properties.renewed);
}

enum lock_status lock_acquire(struct lock *lock, const char *key, int64_t deadline_us,
                              struct lock_grant *ret_grant)
{
    if (deadline_us < 0)
        deadline_us = 0; /* long past, like any other */
    enum lock_status status = lock->driver->acquire(lock, key, deadline_us, ret_grant);
    if (status == LOCK_OK && is_renewed(lock))
        (void)lease_renewer_add(lock, ret_grant); /* without memory for it the lease ends */
    return status;
}

enum lock_status lock_release(struct lock *lock, struct lock_grant *grant)
{
    if (is_renewed(lock))
        lease_renewer_remove(lock, grant);
    return lock->driver->release(lock, grant);
}

enum lock_status lock_still_held(struct lock *lock, const struct lock_grant *grant)
{
    return lock->driver->still_held(lock, grant);
}

void lock_close(struct lock *lock)
{
    if (!lock)
        return;
    if (lock->driver->renew)
        lease_renewer_remove(lock, NULL); /* or what is held would have no end */
    if (lock->driver->close)
        lock->driver->close(lock);
    free(lock);
}

/* ---- functions for implementations --------------------------------------------------------------------- */

int64_t lock_try_ms(int64_t usual_ms)
{
    return lock_config.try_ms > usual_ms ? lock_config.try_ms : usual_ms;
}

int64_t lock_command_ms(int64_t deadline_us)
{
    if (deadline_us < 0)
        deadline_us = 0; /* long past, like any other */
    int64_t left_ms = (deadline_us - monotonic_us() + 999) / 1000;
    if (left_ms < lock_try_ms(LOCK_TRY_MS))
        return lock_try_ms(LOCK_TRY_MS);
    return left_ms < LOCK_COMMAND_MS ? left_ms : LOCK_COMMAND_MS;
}

enum lock_status lock_fail(struct lock *lock, enum lock_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lock->error, sizeof lock->error, format, arguments);
    va_end(arguments);
    return status;
}

void lock_fill_grant(struct lock_grant *ret_grant, const char *key, const char *token, int64_t lease_end_us)
{
    *ret_grant = (struct lock_grant){.lease_end_us = lease_end_us};
    snprintf(ret_grant->key, sizeof ret_grant->key, "%s", key);
    snprintf(ret_grant->token, sizeof ret_grant->token, "%s", token);
}

bool lock_random_token(char ret_token[static LOCK_TOKEN_SIZE])
{
    unsigned char bytes[(LOCK_TOKEN_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

bool lock_random_uuid(char ret_uuid[static LOCK_UUID_SIZE])
{
    char hex[LOCK_TOKEN_SIZE];
    if (!lock_random_token(hex))
        return false;
    hex[12] = '4';                 /* the version: random */
    hex[16] = "89ab"[hex[16] % 4]; /* and the variant, see RFC 4122 */
    snprintf(ret_uuid, LOCK_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
    return true;
}

bool lock_poll_pause(struct lock *lock, int64_t period_ms, int64_t deadline_us)
{
    report_step(lock->observer, STEP_WAIT, STEP_NO_VALUE);
    int64_t left_us = deadline_us - monotonic_us();
    if (left_us <= 0)
        return false;
    int64_t fifth_us = period_ms * 200;
    int64_t pause_us = period_ms * 1000 - fifth_us + random() % (2 * fifth_us + 1);
    if (pause_us > left_us)
        pause_us = left_us;
    pause_order(lock->observer, pause_us);
    return true;
}

void lock_server_key(char *ret_key, size_t size, const char *before, const char *between, const char *key)
{
    snprintf(ret_key, size, "%s%s%s%s", before, lock_config.prefix, between, key);
}
