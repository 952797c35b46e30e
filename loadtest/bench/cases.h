/* The table of the ratios that the benchmark measures: the two sides of each, and its goal. */
#ifndef OVERSELL_LOADTEST_BENCH_CASES_H
#define OVERSELL_LOADTEST_BENCH_CASES_H

#include "loadtest/bench/bench_testbed.h"
#include "loadtest/report/table.h"

#include <jansson.h>

#define FACTS_MAX 4
#define CASES_MAX 64

/* What the speed of one side of a ratio depends on. */
enum tuned {
    TUNED_NOTHING,
    TUNED_WORKERS, /* of the service, which is measured with its defaults as well */
    TUNED_CLIENTS, /* of pgbench */
    TUNED_THREADS, /* that take a lock */
    TUNED_COUNT
};

/* The counts with which a case is measured, by enum tuned; 0: not used. Without workers the service has only its defaults. */
struct tuning {
    int64_t counts[TUNED_COUNT];
};

/* One round. */
struct sample {
    double value;                  /* what is measured; of two sides, their ratio */
    double numerator, denominator; /* a second; 0: it has none */
    double tuned_value, tuned;     /* value and numerator with the best number of workers; 0: not measured */
    double facts[FACTS_MAX];       /* stand beside the ratio */
};

struct bench_case {
    char name[64];
    double goal; /* 0: none */
    bool lower_is_better;
    const char *held_against; /* "pgbench", for people; NULL: describe tells */
    void (*describe)(const double *facts, char *ret_text,
                     size_t size); /* NULL: counts and held_against tell */
    enum tuned sides[2];           /* what the numerator and the denominator depend on */
    /* Fills a zeroed sample, without the ratios. False as the functions of bench_testbed.h. */
    bool (*measure)(struct bench_testbed *bench, const struct bench_case *row, const struct tuning *tuning,
                    struct sample *ret_sample);
    size_t measure_steps;                /* measurements in it without the tuned one, for the progress bar */
    bool profiled;                       /* with --profile */
    const struct script *script, *rival; /* the rival's: another strategy, which the service runs as well */
    int64_t first, products, stock;
    int64_t connections; /* of wrk; 0: as many as the command line says */
    const struct lock_driver
        *lock; /* what is measured, if it is no order: needs its own server, and no shop */
    enum lock_rivalry rivalry;
    reference_fn *reference;
    int64_t threads;              /* 0: as many as the command line says */
    const char *facts[FACTS_MAX]; /* their names in JSON */
};

/* All there are; returns how many. */
size_t bench_cases(struct bench_case ret_cases[static CASES_MAX]);

/* Marks the cases that are wanted: all if ONLY is empty, else those that match a pattern. Each of ONLY is a list of patterns with
 * commas between. A pattern is a name, a part of a name, or has * and ? as wildcards. False, having said on stderr which cases
 * there are, if a pattern matches none. */
bool bench_cases_choose(const struct bench_case *cases, size_t count, const struct texts *only,
                        bool ret_wanted[static CASES_MAX]);

/* How many counts of this kind bench_tune tries: measurements, for the progress bar. */
size_t bench_tune_steps(enum tuned tuned);
/* Finds the count with which the side is fastest, by short measurements. False as the functions of bench_testbed.h. */
bool bench_tune(struct bench_testbed *bench, const struct bench_case *row, enum tuned tuned,
                int64_t *ret_best);

/* The row's result, from the samples of all rounds; NULL when out of memory. */
json_t *bench_case_json(const struct bench_case *row, const struct tuning *tuning,
                        const struct sample *samples, size_t count);
/* The result of one that cannot be measured here. */
json_t *bench_case_unavailable_json(const struct bench_case *row, const char *reason);

/* How the result is printed. */
extern const struct result_kind bench_result;

#endif
