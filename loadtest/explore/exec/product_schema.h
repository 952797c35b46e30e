/* A private database schema with one product, which each explorer process creates and drops. It is reset before every schedule
 * and audited after it. Also asks PostgreSQL which sessions block each other, and ends sessions. For one thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_PRODUCT_SCHEMA_H

#include "db/postgres/connection.h"
#include "db/stock/kinds.h"

struct product_schema {
    struct db *db;
    int64_t product_id; /* unique among all explorers, so that the names of their locks differ */
    char name[40];
    unsigned resets;
    bool lost; /* orders did not finish and may still use the schema; the next explorer drops it */
    int64_t deadlock_timeout_us; /* a blocked session checks for a deadlock once, after this time */
    char error[320];
};

/* What the database says about the product: committed stock and orders. */
struct product_audit {
    int64_t left;   /* units in stock */
    int64_t sold;   /* units in orders */
    int64_t orders; /* number of orders */
};

/* Creates the schema in the database at URL, and drops those of explorers that were killed. Adds to PGOPTIONS, so that every
 * connection that this process opens from now on uses the schema. False, with ERROR: the database refuses, or options in
 * the connection string hide the schema. */
bool product_schema_open(const char *url, struct product_schema *ret_schema);
/* Connects DB, which is the schema's or an order's, unless it is connected. Tries three times, because a busy server may not answer in
 * the time that db_ready() gives it. */
enum db_status product_schema_connect(struct db *db);
/* Drops the schema, unless it is LOST. */
void product_schema_close(struct product_schema *schema);

/* Deletes all orders and sets the stock to STOCK units of this KIND. This and the following return false with ERROR. */
bool product_schema_reset(struct product_schema *schema, enum stock_kind kind, int64_t stock);
bool product_schema_audit(struct product_schema *schema, struct product_audit *ret_audit);

/* Writes COUNT process ids ("" for none) as a PostgreSQL array to LIST, and returns it: "{12,0,13}". */
enum { SESSION_LIST = 120 };
const char *product_schema_list_sessions(const char *const *pids, size_t count,
                                         char list[static SESSION_LIST]);

/* For each of COUNT sessions (process ids, "" for none): RET_FOR gets the bits of those among them that block it. */
bool product_schema_blocked_sessions(struct product_schema *schema, const char *const *pids, size_t count,
                                     unsigned *ret_for);
/* Cancels the session's statement, as a time limit would. */
bool product_schema_cancel(struct product_schema *schema, const char *pid);
/* Terminates a session, and returns when it is gone. */
bool product_schema_end_session(struct product_schema *schema, const char *pid);

#endif
