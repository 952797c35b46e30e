/* Wakes waiters when a Redis server publishes a message: one connection that subscribes, and one thread that reads it, for
 * each server.
 *
 * Many threads of the process may wait on one channel. A message wakes one of them, the one that has waited longest;
 * whoever is woken must try for the lock, or hand the wake-up on by leaving. After a reconnect everybody is woken,
 * since messages may have been missed. */
#ifndef OVERSELL_LOCK_REDIS_CLIENT_WAKEUP_H
#define OVERSELL_LOCK_REDIS_CLIENT_WAKEUP_H

#include "lock/lock_driver.h"

struct redis_waiter;

/* From LOCK_OK on, no message on CHANNEL of the server at URL (SIZE bytes of it) is missed: try for the lock once
 * more, then wait. An error is noted in LOCK. Answers within LIMIT_MS. */
enum lock_status redis_wakeup_join(struct lock *lock, const char *url, size_t size, const char *channel,
                                   int64_t limit_ms, struct redis_waiter **ret_waiter);

/* Waits until a message has come for this waiter, or until UNTIL. True, and counted in lock->wake_ups, when woken. */
bool redis_wakeup_wait(struct lock *lock, struct redis_waiter *waiter, int64_t until_us);

/* The same at PLACE in the lock's queue, for LIMIT_MS at most. True: it is time to try again. False: DEADLINE has come. */
bool redis_wakeup_wait_for_turn(struct lock *lock, struct redis_waiter *waiter,
                                const struct lock_grant *place, int64_t limit_ms, int64_t deadline_us);

/* Ends the waiting, whose outcome was STATUS: a wake-up that has led to no try, or to one that failed, goes to the
 * next waiter of this process. */
void redis_wakeup_leave(struct redis_waiter *waiter, enum lock_status status);

static inline void redis_wakeup_clear(struct redis_waiter **waiter)
{
    if (*waiter)
        redis_wakeup_leave(*waiter, LOCK_OK);
}
/* A waiter that leaves when its name goes out of scope, also if its thread ends meanwhile. */
#define AUTO_WAITER __attribute__((cleanup(redis_wakeup_clear))) struct redis_waiter *

#endif
