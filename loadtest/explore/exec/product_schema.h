/* The explorer's own small shop: one product in a database schema that nobody else uses, set back before each schedule
 * and audited after it; and what PostgreSQL knows of who waits for whom. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H

#include "db/stock/kinds.h"

struct product_schema {
    struct db *db;
    int64_t product_id; /* unique among all explorers, and with it the names of their locks */
    char name[40];
    unsigned resets;
    bool lost; /* orders did not finish, so sessions may still use the schema; the next explorer drops it */
    int64_t deadlock_timeout_us; /* after so long a session of an order that waits looks for a deadlock */
    char error[320];
};

/* What a schedule has left behind. */
struct product_audit {
    int64_t left;   /* what the stock shows */
    int64_t sold;   /* units in orders */
    int64_t orders; /* their number */
};

/* Makes a schema in the database at URL, and drops those of explorers that were killed. Adds to PGOPTIONS, so that every
 * connection that this process opens from now on uses the schema. False, with ERROR filled: the database says no, or the
 * connection string hides the schema. */
bool product_schema_open(const char *url, struct product_schema *ret_schema);
/* Drops the schema. */
void product_schema_close(struct product_schema *schema);

/* No orders, STOCK units of that KIND. */
bool product_schema_reset(struct product_schema *schema, enum stock_kind kind, int64_t stock);
bool product_schema_audit(struct product_schema *schema, struct product_audit *ret_audit);

/* For each of COUNT sessions (server process ids, "" for none): the bits of those among them that it waits for. */
bool product_schema_blocked_sessions(struct product_schema *schema, const char *const *pids, size_t count,
                                     unsigned *ret_for);
/* Ends what the session is doing, as a time limit would. */
bool product_schema_cancel(struct product_schema *schema, const char *pid);
/* Ends a session, and returns when it is gone. */
bool product_schema_end_session(struct product_schema *schema, const char *pid);

#endif
