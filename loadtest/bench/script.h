/* Makes scripts for pgbench from the service's own statements, so that both run the same SQL. */
#ifndef OVERSELL_LOADTEST_BENCH_SCRIPT_H
#define OVERSELL_LOADTEST_BENCH_SCRIPT_H

#include "db/postgres/connection.h"

#define SCRIPT_STEPS_MAX 5
#define SCRIPT_VALUES_MAX 12

struct script_step {
    const struct statement *statement;
    const char *values[SCRIPT_VALUES_MAX]; /* for $1…: ":product", "NULL"; as many as it has parameters */
    const char *keep;                      /* prefix: its row's columns become variables; NULL: they do not */
    const char *then;                      /* a line of pgbench's own behind it; NULL: none */
};

/* What a client sends for one order, or for several in one transaction; the last step is followed by one without a statement. The variables product,
 * quantity, instance and strategy are set for it. */
struct script {
    const char *strategy;
    int64_t orders; /* that one transaction makes */
    struct script_step steps[SCRIPT_STEPS_MAX + 1];
};

extern const struct script SCRIPT_SELECT_FOR_UPDATE, SCRIPT_ATOMIC_DECREMENT, SCRIPT_ATOMIC_STATEMENT,
    SCRIPT_BATCHED;
/* Without steps: what it does is not SQL alone. */
extern const struct script SCRIPT_REDIS_STOCK;

/* The script in pgbench's language, malloc'ed. It orders a random product of :first to :last. NULL: out of memory,
 * or a statement has not as many parameters as the step has values. */
char *script_text(const struct script *script);

#endif
