/* Finds out whether a transaction was committed whose COMMIT got no reply. */
#ifndef OVERSELL_DB_SETTLE_H
#define OVERSELL_DB_SETTLE_H

#include "db/orders.h"

enum settled {
    SETTLED_COMMITTED,
    SETTLED_ROLLED_BACK,
    SETTLED_UNKNOWN, /* not to be found out before the deadline */
};

/* DB has just returned DB_UNKNOWN for the transaction XID, which inserted ORDER (its id is 0: none, so far). Connects anew,
 * ends the old server process where it still runs, waits until it is gone, then asks PostgreSQL for the transaction's
 * fate. Until UNTIL at most. */
enum settled db_settle(struct db *db, const char *xid, const struct order *order, int64_t until_us);

#endif
