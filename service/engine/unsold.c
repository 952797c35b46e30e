/* Gives back the units that one order took but could not sell. */
#include "service/engine/unsold.h"
#include "base/clock.h"

#include "base/log.h"

#include <stdio.h>
#include <time.h>

enum { TRY_AGAIN_US = 10 * 1000 };

/* Finds out the result of the open transaction. UNSOLD_OPEN with open = OPEN_NONE: the units belong to the stock. */
static enum unsold_fate settle(struct unsold *unsold, struct db *db, int64_t until_us)
{
    if (unsold->open == OPEN_NONE)
        return UNSOLD_OPEN;
    enum commit_fate settled = commit_recovery(db, &unsold->lost, until_us);
    if (settled == COMMIT_UNKNOWN)
        return UNSOLD_OPEN;
    if (settled == COMMIT_FORGOTTEN)
        return UNSOLD_GIVEN_UP;
    bool owed = (settled == COMMIT_COMMITTED) == (unsold->open == OPEN_TAKE);
    unsold->open = OPEN_NONE;
    return owed ? UNSOLD_OPEN : UNSOLD_NOT_OWED;
}

/* The caller holds the strategy's lock, if there is one. */
static enum unsold_fate give_back(struct unsold *unsold, struct db *db, const char *instance,
                                  int64_t until_us)
{
    do {
        enum unsold_fate fate = settle(unsold, db, until_us);
        if (fate != UNSOLD_OPEN || unsold->open != OPEN_NONE)
            return fate;
        if (unsold->epoch == 0) /* no stock has it, so no UPDATE would match */
            return UNSOLD_GIVEN_UP;
        db_set_deadline(db, until_us, until_us);
        enum db_status status = stock_give_back(db, unsold->product_id, unsold->epoch, unsold->quantity,
                                                instance, unsold->lost.xid);
        if (status == DB_OK)
            return unsold->lost.xid[0] ? UNSOLD_GIVEN_BACK : UNSOLD_REPLACED;
        if (status == DB_UNKNOWN) {
            unsold->open = OPEN_GIVE;
            unsold->lost.session = *db_session(db);
            unsold->lost.order = (struct order){0};
        }
        nanosleep(&(struct timespec){.tv_nsec = TRY_AGAIN_US * 1000L}, NULL);
    } while (monotonic_us() < until_us);
    return UNSOLD_OPEN;
}

static void log_given_up(const struct unsold *unsold)
{
    static const char *const reasons[] = {
        [OPEN_NONE] = "the stock that they were taken from is not known",
        [OPEN_TAKE] = "PostgreSQL can no longer tell whether they were taken",
        [OPEN_ORDER] = "PostgreSQL can no longer tell whether they were sold",
        [OPEN_GIVE] = "PostgreSQL can no longer tell whether they were given back",
    };
    log_line(
        LOG_ERROR,
        "product %lld: %lld units of a failed order may be missing from the stock, because %s; compare its "
        "audit, and reset the product if drift is negative",
        (long long)unsold->product_id, (long long)unsold->quantity, reasons[unsold->open]);
}

enum unsold_fate unsold_give_back(struct unsold *unsold, struct db *db, struct lock *lock,
                                  const char *instance, int64_t until_us)
{
    char key[LOCK_NAME_MAX + 1];
    struct lock_grant grant;
    snprintf(key, sizeof key, "product:%lld", (long long)unsold->product_id);
    if (lock && lock_acquire(lock, key, until_us, &grant) != LOCK_OK)
        return UNSOLD_OPEN;
    enum unsold_fate fate = give_back(unsold, db, instance, until_us);
    if (lock)
        (void)lock_release(lock, &grant); /* a failure does not matter: the give-back is committed */
    if (fate == UNSOLD_GIVEN_UP)
        log_given_up(unsold);
    return fate;
}
