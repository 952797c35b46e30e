/* Measures with pgbench how fast PostgreSQL executes the service's SQL without the service. */
#ifndef OVERSELL_LOADTEST_BENCH_PGBENCH_H
#define OVERSELL_LOADTEST_BENCH_PGBENCH_H

#include "loadtest/bench/script.h"

#include <stdbool.h>
#include <stdint.h>

struct pgbench_run {
    const struct script *script;
    const char *database_url;
    const char *dir;      /* where its script may be written */
    const char *instance; /* recorded with the orders */
    int64_t first, products;
    int64_t clients;
    int64_t seconds; /* longer if no transaction ends within this time */
};

struct pgbench_result {
    double per_s;         /* transactions, connecting not counted */
    int64_t transactions; /* that were carried out */
};

/* Runs it to its end. False, having said why on stderr unless it was an interrupt. */
bool pgbench_run(const struct pgbench_run *run, struct pgbench_result *ret_result);
/* Reads pgbench's report; false unless it has all figures and tells of no failure. */
bool pgbench_parse(const char *report, struct pgbench_result *ret_result);

#endif
