/* Gives back the units that one order took but could not sell. */
#include "service/unsold.h"

#include <stdio.h>
#include <time.h>

enum { TRY_AGAIN_US = 10 * 1000 };

/* Finds out the result of the open transaction. False: impossible before UNTIL. *ret_owed: the units are to be given back. */
static bool settle(struct unsold *unsold, struct db *db, int64_t until_us, bool *ret_owed)
{
    *ret_owed = true;
    if (unsold->open == OPEN_NONE)
        return true;
    enum settled settled = db_settle(db, &unsold->lost, until_us);
    if (settled == SETTLED_UNKNOWN)
        return false;
    *ret_owed = (settled == SETTLED_COMMITTED) == (unsold->open == OPEN_TAKE);
    unsold->open = OPEN_NONE;
    return true;
}

/* The caller holds the strategy's lock, if there is one. */
static bool give_back(struct unsold *unsold, struct db *db, const char *instance, int64_t until_us)
{
    bool owed;
    while (settle(unsold, db, until_us, &owed)) {
        if (!owed)
            return true;
        db_set_deadline(db, until_us, until_us);
        enum db_status status = stock_give_back(db, unsold->product_id, unsold->epoch, unsold->quantity,
                                                instance, unsold->lost.xid);
        if (status == DB_OK)
            return true;
        if (status == DB_UNKNOWN) {
            unsold->open = OPEN_GIVE;
            unsold->lost.session = *db_session(db);
            unsold->lost.order = (struct order){0};
        }
        nanosleep(&(struct timespec){.tv_nsec = TRY_AGAIN_US * 1000L}, NULL);
        if (monotonic_us() >= until_us)
            return false;
    }
    return false;
}

bool unsold_give_back(struct unsold *unsold, struct db *db, struct lock *lock, const char *instance,
                      int64_t until_us)
{
    char key[LOCK_NAME_MAX + 1];
    struct lock_grant grant;
    snprintf(key, sizeof key, "product:%lld", (long long)unsold->product_id);
    if (lock && lock_acquire(lock, key, until_us, &grant) != LOCK_OK)
        return false;
    bool done = give_back(unsold, db, instance, until_us);
    if (lock)
        (void)lock_release(lock, &grant); /* a failure does not matter: the give-back is committed */
    return done;
}
