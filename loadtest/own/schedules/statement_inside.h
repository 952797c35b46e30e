/* Tells which statements are not atomic at READ COMMITTED: what runs inside them takes several snapshots, or reads more than it locks. It
 * looks for words only, so it errs towards "not atomic". Pure. Any thread. */
#ifndef OVERSELL_LOADTEST_OWN_SCHEDULES_STATEMENT_INSIDE_H
#define OVERSELL_LOADTEST_OWN_SCHEDULES_STATEMENT_INSIDE_H

#include "loadtest/own/shop_database.h"

struct statement_inside {
    bool splits;    /* outside a transaction, another request can act between its reads and its COMMIT */
    bool can_split; /* and it may run inside a transaction block */
    bool
        several; /* it takes more than one snapshot: a function or trigger with several statements, or several statements in one text */
};

/* TEXT: one statement, or several with semicolons, as the service sent them. */
struct statement_inside statement_inside(const struct shop_routines *routines, const char *text);

#endif
