/* Lets the explorer decide when a waiter sleeps: every lock whose waiters stand in a queue calls this before it waits. */
#include "lock/lab.h"

struct sleeper {
    struct lock *lock;
    const struct lock_grant *place;
};

static bool has_turn(void *context)
{
    const struct sleeper *sleeper = context;
    return sleeper->lock->driver->lab->has_turn(sleeper->lock, sleeper->place);
}

enum lock_sleep lock_sleep(struct lock *lock, const struct lock_grant *place)
{
    const struct lock_lab *lab = lock->driver->lab;
    struct sleeper sleeper = {lock, place};
    if (!lock->observer || !lock->observer->on_sleep || !lab || !lab->has_turn)
        return LOCK_SLEEP;
    return begin_sleep(lock->observer, has_turn, &sleeper) ? LOCK_WOKEN : LOCK_GIVE_UP;
}
