/* etcd's client, through its JSON gateway (version 3.4 and later): every request is a POST of one JSON object, bytes
 * are base64, 64-bit numbers come back as strings, and what is zero is left out.
 *
 * A request that got no answer is sent again to the next of ETCD_ENDPOINTS. That does no harm, because every request
 * the locks make may arrive twice: a second lease ends by itself, and a second transaction finds what the first did. */
#ifndef OVERSELL_LOCK_ETCD_CLIENT_CLIENT_H
#define OVERSELL_LOCK_ETCD_CLIENT_CLIENT_H

#include "lock/lock_driver.h"

#include <jansson.h>

/* One handle's connections: one that is kept for requests, and one for a watch while there is one. Never shared. */
struct etcd;

/* The handle of every lock in etcd. */
struct etcd_lock {
    struct lock base;
    struct etcd *etcd;
};
/* As in struct lock_driver. */
bool etcd_open_lock(struct lock *lock);
void etcd_close_lock(struct lock *lock);

static inline struct etcd *etcd_of(struct lock *lock)
{
    return ((struct etcd_lock *)lock)->etcd;
}

/* Posts REQUEST, whose reference it takes (NULL: out of memory), to PATH and waits as long as lock_command_ms allows
 * (a deadline of INT64_MAX: LOCK_COMMAND_MS).
 * LOCK_OK: *ret_reply is the caller's. LOCK_LOST: a lease of that number does not exist (any more). LOCK_AWAY: no
 * endpoint answered, and the request may have been done. LOCK_REFUSED: etcd says no, or nothing that we understand. */
enum lock_status etcd_call(struct etcd *etcd, struct lock *lock, int64_t deadline_us, const char *path,
                           json_t *request, json_t **ret_reply);
/* Was the last request sent more than once? Then what it wanted to change may have been changed by its first sending. */
bool etcd_was_repeated(const struct etcd *etcd);

/* A lease: the time to live of the keys that are put with it. */
struct etcd_lease {
    int64_t id;
    int64_t length_us; /* as etcd has granted it: whole seconds, and two of them at least */
    int64_t end_us;    /* monotonic: not before this will etcd end it */
};

/* Asks for a lease of lock->lease_ms, rounded up; several endpoints are asked until the deadline. Also revokes what could
 * not be revoked while etcd was away. */
enum lock_status etcd_grant(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                            struct etcd_lease *ret_lease);
/* Renews the lease LEASE->id; LOCK_LOST if it has ended. */
enum lock_status etcd_keep_alive(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                                 struct etcd_lease *lease);
/* As etcd_keep_alive, but only where a tenth of the lease has gone by: so that who has waited gets a whole one. */
enum lock_status etcd_freshen(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                              struct etcd_lease *lease);
/* Pauses, and is true, where STATUS is LOCK_AWAY and the deadline is still to come, so that one may ask again: a waiter
 * while its LEASE, and so its place, lives; who has nothing to lose yet (NULL) where there are several endpoints. A
 * cluster that has lost its leader finds another one within seconds. */
bool etcd_may_come_back(struct lock *lock, int64_t deadline_us, const struct etcd_lease *lease,
                        enum lock_status status);
/* When to keep it alive next: a third of it has gone by. */
int64_t etcd_renewal_due_us(const struct etcd_lease *lease);
/* Ends the lease, which deletes its keys; LOCK_LOST if it had ended before. */
enum lock_status etcd_revoke(struct etcd *etcd, struct lock *lock, int64_t deadline_us, int64_t lease_id);
/* After an acquisition that failed with STATUS: ends the lease. Returns STATUS, or why that could not be done. */
enum lock_status etcd_give_up(struct etcd *etcd, struct lock *lock, int64_t lease_id,
                              enum lock_status status);

/* The number of a grant's lease: its token begins with it, in hex. */
int64_t etcd_lease_of(const struct lock_grant *grant);

/* Waits until KEY (as etcd writes it: base64) is deleted later than at REVISION, and keeps the lease alive meanwhile.
 * LOCK_OK: it is gone, or there may be news: look. LOCK_TIMED_OUT: the deadline has come. LOCK_LOST: the lease has ended. */
enum lock_status etcd_await_deletion(struct etcd *etcd, struct lock *lock, int64_t deadline_us,
                                     const char *key, int64_t revision, struct etcd_lease *lease);

/* TEXT as the gateway wants bytes; a new reference, NULL when out of memory. */
json_t *etcd_bytes(const char *text);
/* A 64-bit number by NAME; 0 where there is none, as etcd means it. */
int64_t etcd_number(const json_t *object, const char *name);
/* A transaction's reply: the first key-value that its request number I found, NULL where it found none … */
const json_t *etcd_found(const json_t *reply, size_t i);
/* … whether its comparisons held … */
bool etcd_succeeded(const json_t *reply);
/* … and the revision of the store that any reply speaks of. */
int64_t etcd_revision(const json_t *reply);

static inline void etcd_clear_json(json_t **json)
{
    json_decref(*json);
}
#define AUTO_JSON __attribute__((cleanup(etcd_clear_json))) json_t *

/* The servers of ETCD_ENDPOINTS. */
extern const struct lock_server etcd_server;

#endif
