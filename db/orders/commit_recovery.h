/* Finds out whether a transaction was committed after its COMMIT got no reply. */
#ifndef OVERSELL_DB_ORDERS_COMMIT_RECOVERY_H
#define OVERSELL_DB_ORDERS_COMMIT_RECOVERY_H

#include "db/orders/orders.h"

enum commit_fate {
    COMMIT_COMMITTED,
    COMMIT_ROLLED_BACK,
    COMMIT_UNKNOWN, /* could not be found out before the deadline: ask again */
    COMMIT_FORGOTTEN, /* cannot be found out any more: PostgreSQL has forgotten it, or may mean another transaction */
};

/* A transaction whose COMMIT got no reply. */
struct lost_commit {
    struct db_session session; /* the server process that had it: db_session, when DB_UNKNOWN was returned */
    char xid[24];
    struct order order; /* that it inserted; its id is 0: none, or … */
    /* … one whose INSERT travelled with COMMIT, so that its id was lost too: the service process that placed it; else NULL */
    const char *unseen_order_of;
};

/* Connects DB, terminates the old server process where it still runs, waits until it is gone, then asks PostgreSQL for the
 * transaction's fate. Returns at UNTIL (monotonic_us()) at the latest. With COMMIT_COMMITTED an unseen order is found, and LOST has it. On the
 * thread that uses DB. */
enum commit_fate commit_recovery(struct db *db, struct lost_commit *lost, int64_t until_us);

#endif
