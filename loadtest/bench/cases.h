/* The table of the ratios that the benchmark measures: the two sides of each, and its goal. */
#ifndef OVERSELL_LOADTEST_BENCH_CASES_H
#define OVERSELL_LOADTEST_BENCH_CASES_H

#include "loadtest/bench/bench_testbed.h"
#include "loadtest/report/table.h"

#include <jansson.h>

#define FACTS_MAX 4
#define CASES_MAX 64

/* What a case is measured with: the counts at which each side is at its best, as found by trying; or how many threads
 * take a lock. 0: not used. */
struct tuning {
    int64_t clients, workers, rival_workers, product_limit, threads;
};

/* One round. */
struct sample {
    double value;                  /* the ratio */
    double numerator, denominator; /* a second; 0: it has none */
    double facts[FACTS_MAX];       /* stand beside the ratio */
};

struct bench_case {
    char name[64];
    double goal; /* 0: none */
    bool lower_is_better;
    const char *held_against; /* "pgbench", for people; NULL: the facts tell */
    bool (*tune)(struct bench_testbed *bench, const struct bench_case *row,
                 struct tuning *ret_tuning); /* NULL: nothing to find */
    bool (*measure)(struct bench_testbed *bench, const struct bench_case *row, const struct tuning *tuning,
                    struct sample *ret_sample);
    size_t tune_steps, measure_steps;    /* measurements in each, for the progress bar */
    const struct script *script, *rival; /* the rival's: another strategy, which the service runs as well */
    int64_t first, products, stock;
    int64_t connections;  /* of wrk; 0: as many as the command line says */
    bool default_workers; /* the service has its default number of workers; the command line's is ignored */
    const struct lock_driver
        *lock; /* what is measured, if it is no order: needs its own server, and no shop */
    enum lock_rivalry rivalry;
    reference_fn *reference;
    int64_t threads;              /* 0: as many as the command line says */
    const char *facts[FACTS_MAX]; /* their names in JSON */
};

/* All there are; returns how many. */
size_t bench_cases(struct bench_case ret_cases[static CASES_MAX]);

/* LIST: patterns separated by commas. A pattern is a name, a part of a name, or has * and ? as wildcards. An empty pattern
 * matches nothing. */
bool bench_case_matches(const struct bench_case *row, const char *list);

/* The row's result, from the samples of all rounds; NULL when out of memory. */
json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count);
/* The result of one that cannot be measured here. */
json_t *bench_case_unavailable_json(const struct bench_case *row, const char *reason);

/* How the result is printed. */
extern const struct result_kind bench_result;

#endif
