/* What a step of a specification has read and written, with what the end of a transaction publishes and unlocks. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_INSIDE_STEP_FOOTPRINTS_H
#define OVERSELL_LOADTEST_SQLSPEC_INSIDE_STEP_FOOTPRINTS_H

#include "loadtest/search/statement_footprint.h"
#include "loadtest/sqlspec/file/spec_file.h"
#include "loadtest/sqlspec/server/session.h"

/* All zero: none is known. */
struct step_footprints {
    bool known,
        usable; /* USABLE: all transactions are READ COMMITTED on PostgreSQL, as far as the texts and the server say */
    const struct routines *routines;
    struct known_tables tables;
    struct footprint steps[SPEC_STEPS_MAX];
    /* Of the current execution: what the open transaction of each session has touched, and which sessions ran a step or had a transaction. */
    struct footprint transactions[SPEC_SESSIONS_MAX];
    uint32_t running, in_transaction;
    struct footprint last; /* of the step that was started last */
};

/* Once, after the setup: asks the server for its tables over CONTROL. ROUTINES must outlive FOOTPRINTS; NULL: they are not known. False, having
 * said why. */
bool step_footprints_learn(struct step_footprints *footprints, const struct spec *spec,
                           struct session *control, const struct routines *routines);
/* An execution has begun. OPEN: bits of the sessions that have a transaction open. */
void step_footprints_begin(struct step_footprints *footprints, const struct spec *spec, uint32_t open);
/* STEP was started, and all has come to rest: fills in LAST. RUNNING: bits of the sessions whose step waits. */
void step_footprints_note(struct step_footprints *footprints, const struct spec *spec, size_t step,
                          uint32_t running, uint32_t open);
void step_footprints_free(struct step_footprints *footprints);

#endif
