/* The ratios that the benchmark measures, one row each: what is held against what, and what it should reach. */
#ifndef OVERSELL_LOADTEST_BENCH_CASES_H
#define OVERSELL_LOADTEST_BENCH_CASES_H

#include "loadtest/bench_stage.h"

#include <jansson.h>

#define FACTS_MAX 3

/* What a case is measured with, as found by trying it: the counts at which each side is at its best. 0: not used. */
struct tuning {
    int64_t clients, workers;
};

/* One round. */
struct sample {
    double value;                  /* the ratio */
    double numerator, denominator; /* a second; 0: it has none */
    double facts[FACTS_MAX];       /* a second; stand beside the ratio */
};

struct bench_case {
    const char *name;
    double goal;
    bool lower_is_better;
    const char *held_against; /* "pgbench", for people */
    bool (*tune)(struct stage *stage, const struct bench_case *row,
                 struct tuning *ret_tuning); /* NULL: nothing to find */
    bool (*measure)(struct stage *stage, const struct bench_case *row, const struct tuning *tuning,
                    struct sample *ret_sample);
    size_t tune_steps, measure_steps; /* measurements in each, for the progress bar */
    const struct script *script;
    int64_t first, products, stock;
    const char *facts[FACTS_MAX]; /* their names in JSON */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

/* PATTERN is a name, a part of one, or has * and ? in it. */
bool bench_case_matches(const struct bench_case *row, const char *pattern);

/* The row's result, from the samples of all rounds; NULL when out of memory. */
json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count);

#endif
