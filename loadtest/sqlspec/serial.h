/* Keeps the outcomes of serial executions, in which one session runs after the other. A search compares its outcomes with them. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SERIAL_H
#define OVERSELL_LOADTEST_SQLSPEC_SERIAL_H

#include "loadtest/sqlspec/sql_execution.h"

enum { SERIAL_SESSIONS_MAX = 5, SERIAL_ORDERS_MAX = 326 /* of up to five sessions */ };

struct serial_outcome {
    uint8_t order[SERIAL_SESSIONS_MAX];
    size_t count;
    struct sql_outcome outcome;
    char *text; /* of the sessions of the order */
};

/* Each order is run when it is first asked for. All zero: none yet. */
struct serial {
    struct serial_outcome item[SERIAL_ORDERS_MAX];
    size_t count;
};

void serial_free(struct serial *serial);
/* The outcome of this order; NULL, having said why. It lives as long as SERIAL. */
const struct serial_outcome *serial_run(struct serial *serial, struct sql_execution *execution,
                                        const uint8_t *order, size_t count);
/* Looks for an order of SESSIONS (bits) whose outcome has this TEXT. False: an order could not be run. *ret_found NULL: no serial
 * order gives it. */
bool serial_find(struct serial *serial, struct sql_execution *execution, uint32_t sessions, const char *text,
                 const struct serial_outcome **ret_found);
/* The same for the tables alone. */
bool serial_find_tables(struct serial *serial, struct sql_execution *execution, uint32_t sessions,
                        const json_t *tables, const struct serial_outcome **ret_found);

#endif
