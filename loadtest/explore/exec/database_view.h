/* Looks into PostgreSQL during a schedule: which session has locked the product's row, and what each session waits for. */
#ifndef OVERSELL_LOADTEST_EXPLORE_EXEC_DATABASE_VIEW_H
#define OVERSELL_LOADTEST_EXPLORE_EXEC_DATABASE_VIEW_H

#include "loadtest/explore/exec/execution.h"

/* What PostgreSQL knows of the product and of the actors' sessions. */
struct database_view {
    struct product_audit audit; /* as others can see them: what is committed */
    /* bits of the actors that have locked the product's row FOR UPDATE or by changing it */
    unsigned row_holders;
    int64_t row_version; /* of the product's committed row */
    /* the newest fencing token on the product's row, of the strategy's lock service; 0: none */
    int64_t row_fence;
    const char *awaited_lock
        [ACTORS_MAX]; /* "row lock", "table lock", …, of those that wait; else NULL; static storage */
};

/* No actor of EXECUTION may run. Uses the schema's own connection, so it blocks nobody. False, with the execution's error. */
bool database_view_read(struct execution *execution, struct database_view *ret_view);

#endif
