/* Looking into the servers in the middle of a play: who has the product's row, what a session waits for. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_DATABASE_VIEW_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_DATABASE_VIEW_H

#include "loadtest/explore/exec/execution.h"

/* What PostgreSQL knows of the orders' sessions. */
struct database_view {
    struct product_audit audit; /* as others can see them: what is committed */
    unsigned
        row_holders; /* bits of the orders that have locked the product's row, to change it or for update */
    int64_t
        row_fence; /* the newest fencing token on the product's row, of the strategy's lock service; 0: none */
    const char *awaited_lock
        [ACTORS_MAX]; /* "row lock", "table lock", …, of those that wait; else NULL; static storage */
};

/* All orders of EXECUTION must be still. False, with the play's error: the database says no. */
bool database_view_read(struct execution *execution, struct database_view *ret_view);

#endif
