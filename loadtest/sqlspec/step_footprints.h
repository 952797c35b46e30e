/* What a step of a specification has read and written, with what the end of a transaction publishes and unlocks. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_STEP_FOOTPRINTS_H
#define OVERSELL_LOADTEST_SQLSPEC_STEP_FOOTPRINTS_H

#include "loadtest/search/statement_footprint.h"
#include "loadtest/sqlspec/sql_execution.h"

/* All zero: none is known. */
struct step_footprints {
    bool known,
        usable; /* USABLE: all transactions are READ COMMITTED on PostgreSQL, as far as the texts and the server say */
    struct known_tables tables;
    struct footprint steps[SPEC_STEPS_MAX];
    /* Of the current execution: what the open transaction of each session has touched, and which sessions ran a step or had a transaction. */
    struct footprint transactions[SPEC_SESSIONS_MAX];
    uint32_t running, in_transaction;
    struct footprint last; /* of the step that was started last */
};

/* Once, after the setup: asks the server for its tables. False, having said why. */
bool step_footprints_learn(struct step_footprints *footprints, struct sql_execution *execution);
/* An execution has begun. */
void step_footprints_begin(struct step_footprints *footprints, const struct sql_execution *execution);
/* STEP was started, and all has come to rest: fills in LAST. */
void step_footprints_note(struct step_footprints *footprints, const struct sql_execution *execution,
                          size_t step);
void step_footprints_free(struct step_footprints *footprints);

#endif
