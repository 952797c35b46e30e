/* Gives back units that an order took in its first transaction and could not sell in its second. The order itself tries
 * first; then a thread retries until the database answers again. Units that are left when the process exits are lost to the
 * stock. */
#ifndef OVERSELL_SERVICE_ENGINE_UNSOLD_H
#define OVERSELL_SERVICE_ENGINE_UNSOLD_H

#include "db/orders/commit_recovery.h"
#include "service/engine/strategy.h"

enum { UNSOLD_MAX = 1024 }; /* orders with units to give back; when the list is full, no more orders start */

/* The transaction whose result decides whether the units must be given back. */
enum open_transaction {
    OPEN_NONE,  /* none: they must */
    OPEN_TAKE,  /* it took the units: they must, if it was committed */
    OPEN_ORDER, /* it inserted the order: they must, if it was rolled back */
    OPEN_GIVE,  /* it gave the units back: they must again, if it was rolled back */
};

/* The units of one order. */
struct unsold {
    const struct strategy *strategy;
    int64_t product_id, epoch, quantity;
    enum open_transaction open;
    struct lost_commit lost; /* of the open transaction */
    int64_t until_us;        /* set by the list: it gives up then */
};

/* The result of an attempt to give units back. */
enum unsold_fate {
    UNSOLD_OPEN,       /* not done yet; struct unsold says what is open */
    UNSOLD_GIVEN_BACK, /* the stock has them again */
    UNSOLD_NOT_OWED,   /* they were sold, were never taken, or had been given back before */
    UNSOLD_REPLACED,   /* the stock that they were taken from has been replaced since */
    UNSOLD_GIVEN_UP,   /* whether they are owed is unknown for good, so they stay out of the stock; logged */
};

/* Gives the units back under the strategy's LOCK (NULL: it has none), unless it finds that they must not be. UNSOLD_OPEN: not
 * done by UNTIL (monotonic_us). In doubt it gives nothing back: units that are missing from the stock cannot be oversold. Sets
 * DB's deadlines. On the thread that uses DB. */
enum unsold_fate unsold_give_back(struct unsold *unsold, struct db *db, struct lock *lock,
                                  const char *instance, int64_t until_us);

/* The unsold units of a process. Any thread may call. */
struct unsold_list;

/* NULL: out of memory or threads. Strings are borrowed. */
struct unsold_list *unsold_list_start(const char *database_url, const char *instance);
/* Tries for a few seconds more, then logs what is lost. LIST may be NULL. */
void unsold_list_stop(struct unsold_list *list);

/* Reserves a place before an order takes units. False: the list is full. */
bool unsold_list_reserve(struct unsold_list *list);
/* Ends a reservation. UNSOLD (copied) is to be given back; NULL: nothing is. */
void unsold_list_end(struct unsold_list *list, const struct unsold *unsold);
/* The orders whose units of this product are still to be given back; of all products with 0. */
int unsold_list_count(struct unsold_list *list, int64_t product_id);

#endif
