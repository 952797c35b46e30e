/* The functions of redis-lock, the correct lock on one Redis server. redis-fenced and the flawed locks use those of them
 * that they do not do differently. One thread at a time for each handle. */
#ifndef OVERSELL_LOCK_REDIS_LOCK_H
#define OVERSELL_LOCK_REDIS_LOCK_H

#include "lock/redis/string_lock.h"

/* As in struct lock_driver. */
enum lock_status redis_lock_release(struct lock *lock, struct lock_grant *grant);
enum lock_status redis_lock_still_held(struct lock *lock, const struct lock_grant *grant);
enum lock_status redis_lock_renew(struct lock *lock, const struct lock_grant *grant);

/* Is SERVER_KEY's value TOKEN? LOCK_OK, LOCK_LOST, or why there is no answer. */
enum lock_status redis_lock_compare(struct lock *lock, const char *server_key, const char *token);
/* If SERVER_KEY's value is TOKEN, lets it live for lock->lease_ms from now on; else LOCK_LOST, or why there is no answer. */
enum lock_status redis_lock_prolong(struct lock *lock, const char *server_key, const char *token);

/* After a lost reply: deletes SERVER_KEY if its value is TOKEN, within LOCK_TRY_MS and on a new connection, and keeps
 * lock->error. True if it was there. */
bool redis_lock_give_back(struct lock *lock, const char *server_key, const char *token);

/* After a request that should have set SERVER_KEY to TOKEN and failed with STATUS: gives the lock back if the request may have
 * been done, and returns the status for the caller. */
enum lock_status redis_lock_not_got(struct lock *lock, const char *server_key, const char *token,
                                    enum lock_status status);

#endif
