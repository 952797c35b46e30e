/* Ends grants from outside, in the way that fits each lock: expiry, a shortened lease, a release, a terminated session. */
#include "loadtest/explore/exec/lock_admin.h"

#include "lock/lab.h"
#include "lock/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the grant of a lock can be ended from outside. */
enum grant_end {
    NEVER,    /* not at all: a mutex in the memory of the process */
    EXPIRE,   /* by the driver's own function */
    SHORTEN,  /* by renewing the lease with a negative duration */
    RELEASE,  /* by a release: the node is deleted, or the etcd lease revoked */
    TERMINATE /* by terminating the PostgreSQL session that holds it */
};

static enum grant_end grant_end_of(const struct lock_driver *driver)
{
    if (!driver || !driver->server)
        return NEVER;
    if (driver->lab && driver->lab->expire)
        return EXPIRE;
    switch (driver->lab ? driver->lab->end : LOCK_ENDS_BY_RENEWAL) {
    case LOCK_ENDS_BY_RENEWAL: return driver->renew ? SHORTEN : RELEASE;
    case LOCK_ENDS_BY_RELEASE: return RELEASE;
    case LOCK_ENDS_WITH_SESSION: return TERMINATE;
    }
    return NEVER;
}

bool lock_has_queue(const struct lock_driver *driver)
{
    return driver && driver->server && driver->properties.fair;
}

bool lock_admin_can_expire(const struct lock_driver *driver)
{
    return driver && driver->properties.carrier != CARRIER_NONE;
}

enum lock_status lock_admin_open(const struct lock_driver *driver, struct lock **ret_admin)
{
    *ret_admin = NULL;
    if (grant_end_of(driver) == NEVER || grant_end_of(driver) == TERMINATE)
        return LOCK_OK;
    const struct lock_driver *outsider = driver->lab ? driver->lab->outsider : NULL;
    enum lock_status status = lock_open(outsider ? outsider : driver, ret_admin);
    if (status == LOCK_OK)
        (*ret_admin)->lease_ms = -1;
    return status;
}

const char *lock_admin_session(const struct lock_driver *driver, const struct lock_hold *hold,
                               char pid[static 16])
{
    bool known = grant_end_of(driver) == TERMINATE && hold->has_grant;
    snprintf(pid, 16, "%.*s", known ? (int)strcspn(hold->grant.token, "/") : 0, hold->grant.token);
    return pid;
}

bool lock_admin_is_held(struct lock *admin, const struct lock_hold *hold)
{
    return !admin || admin->driver->still_held(admin, &hold->grant) != LOCK_LOST;
}

/* The driver reports that this renewal came too late, so its status says nothing: the server is asked instead. Some drivers
 * leave little time for the answer, so there are several tries. */
static enum lock_status shorten(struct lock *admin, const struct lock_hold *hold)
{
    enum { TRIES = 20 };
    for (int tries = 0; tries < TRIES; tries++) {
        (void)admin->driver->renew(admin, &hold->grant);
        if (!lock_admin_is_held(admin, hold))
            return LOCK_OK;
    }
    return LOCK_FAILED;
}

/* Number SERVER of a list with commas between, malloc'ed; NULL where there are fewer. */
static char *url_of(const char *list, unsigned server)
{
    for (; server > 0 && *list; server--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return *list ? strndup(list, strcspn(list, ",")) : NULL;
}

static bool has_many_servers(const struct lock_driver *driver)
{
    return driver && driver->properties.survives_minority && driver->server == redlock.server;
}

char *lock_admin_cut_servers(const struct lock_driver *driver, unsigned count)
{
    static const char NOBODY[] = ",redis://127.0.0.1:1"; /* a port at which no server is asked to listen */
    unsigned all = has_many_servers(driver) ? (unsigned)lock_count_servers(lock_config.redlock_urls) : 0;
    char *urls = NULL;
    size_t size;
    FILE *out = count < all ? open_memstream(&urls, &size) : NULL;
    for (unsigned i = 0; out && i < all; i++) {
        char *url = url_of(lock_config.redlock_urls, i);
        fprintf(out, "%s", i + count >= all ? NOBODY + (i == 0) : i ? "," : "");
        if (i + count < all)
            fputs(url ? url : "", out);
        free(url);
    }
    if (out && fclose(out) == 0)
        return urls;
    free(urls);
    return NULL;
}

bool lock_admin_forget(const struct lock_driver *driver, unsigned server, const struct lock_hold *hold)
{
    struct lock_config all = lock_config, one = lock_config;
    struct lock *there = NULL;
    char *url = has_many_servers(driver) ? url_of(all.redlock_urls, server) : NULL;
    if (!url)
        return false;
    one.redlock_urls = url; /* a majority of one */
    lock_configure(&one);
    bool opened = lock_open(driver, &there) == LOCK_OK;
    lock_configure(&all);
    if (opened)
        there->lease_ms = -1;
    bool forgotten = opened && shorten(there, hold) == LOCK_OK;
    lock_close(there);
    free(url);
    return forgotten;
}

enum lock_status lock_admin_expire(const struct lock_driver *driver, struct lock *admin,
                                   struct product_schema *schema, const struct lock_hold *hold)
{
    struct lock_grant grant = hold->grant;
    char pid[16];
    switch (grant_end_of(driver)) {
    case EXPIRE: return admin->driver->lab->expire(admin, &grant);
    case SHORTEN: return shorten(admin, hold);
    case RELEASE: return admin->driver->release(admin, &grant);
    case TERMINATE:
        return product_schema_end_session(schema, lock_admin_session(driver, hold, pid)) ? LOCK_OK
                                                                                         : LOCK_FAILED;
    case NEVER: break;
    }
    return LOCK_LOST;
}

void lock_admin_clean_up(const struct lock_driver *driver, struct lock *admin, const struct lock_hold *hold)
{
    struct lock_grant grant = hold->grant;
    enum grant_end way = grant_end_of(driver);
    if (!admin || !hold->has_grant)
        return;
    if (way == SHORTEN)
        (void)admin->driver->renew(admin, &grant);
    if (way == EXPIRE)
        (void)admin->driver->lab->expire(admin, &grant);
    if (way != SHORTEN) /* also what has no end */
        (void)admin->driver->release(admin, &grant);
}
