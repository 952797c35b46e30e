/* The explorer's own small shop: one product in a database schema that nobody else uses, set back before each schedule
 * and audited after it; and what PostgreSQL knows of who waits for whom. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H

#include "db/stock/kinds.h"

struct explore_shop {
    struct db *db;
    int64_t product_id; /* unique among all explorers, and with it the names of their locks */
    char schema[40];
    unsigned resets;
    bool lost; /* orders did not finish, so sessions may still use the schema; the next explorer drops it */
    int64_t deadlock_timeout_us; /* after so long a session of an order that waits looks for a deadlock */
    char error[320];
};

/* What a schedule has left behind. */
struct explore_books {
    int64_t left;   /* what the stock shows */
    int64_t sold;   /* units in orders */
    int64_t orders; /* their number */
};

/* Makes a schema in the database at URL, and drops those of explorers that were killed. Adds to PGOPTIONS, so that every
 * connection that this process opens from now on uses the schema. False, with ERROR filled: the database says no, or the
 * connection string hides the schema. */
bool explore_shop_open(const char *url, struct explore_shop *ret_shop);
/* Drops the schema. */
void explore_shop_close(struct explore_shop *shop);

/* No orders, STOCK units of that KIND. */
bool explore_shop_reset(struct explore_shop *shop, enum stock_kind kind, int64_t stock);
bool explore_shop_audit(struct explore_shop *shop, struct explore_books *ret_books);

/* For each of COUNT sessions (server process ids, "" for none): the bits of those among them that it waits for. */
bool explore_shop_waits(struct explore_shop *shop, const char *const *pids, size_t count, unsigned *ret_for);
/* Ends what the session is doing, as a time limit would. */
bool explore_shop_cancel(struct explore_shop *shop, const char *pid);
/* Ends a session, and returns when it is gone. */
bool explore_shop_end_session(struct explore_shop *shop, const char *pid);

#endif
