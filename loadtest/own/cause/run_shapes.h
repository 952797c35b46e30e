/* The statements of a schedule that ran, as cause.c looks at them. Steps are indexes in the record; the number of steps stands for none. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_RUN_SHAPES_H
#define OVERSELL_LOADTEST_OWN_CAUSE_RUN_SHAPES_H

#include "loadtest/own/cause/run_record.h"
#include "loadtest/sql/statement_shape.h"

enum { CAUSE_TEXT = 1200 };

struct run_shapes {
    const struct run_record *record;
    size_t count; /* of its steps */
    struct statement_shape shape[RUN_STEPS_MAX];
};

/* A large struct, which points to RECORD. */
void run_shapes_of(const struct run_record *record, struct run_shapes *ret_run);

/* 'A' of request 0. */
char run_name(const struct run_shapes *run, size_t step);
/* The two steps are of one request. */
bool run_same_request(const struct run_shapes *run, size_t one, size_t other);
/* The answer says that the request was refused, or that it has its units. Both false: neither is known. */
bool run_was_refused(const struct run_shapes *run, size_t step);
bool run_was_sold(const struct run_shapes *run, size_t step);

/* The answer of the one statement of STEP says that it found or changed no row. */
bool run_found_nothing(const struct run_shapes *run, size_t step);
bool run_failed(const struct run_shapes *run, size_t step);
/* STEP ends the transaction of its request. RET_FAILED: it was rolled back. */
bool run_ends_transaction(const struct run_shapes *run, size_t step, bool *ret_failed);
/* The step from which others see the change of step WRITE: where its transaction ends. None: it was rolled back. */
size_t run_visible_from(const struct run_shapes *run, size_t write);
/* STEP wrote to TABLE (NULL: to any), as far as its answer shows it, and that was committed. */
bool run_wrote(const struct run_shapes *run, size_t step, const char *table);

#endif
