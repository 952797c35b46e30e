/* Names the anomaly of an execution by experiment: it runs the same schedule again without one session. The differences show which
 * session saw the writes of which. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_CLASSIFY_H
#define OVERSELL_LOADTEST_SQLSPEC_CLASSIFY_H

#include "loadtest/sqlspec/serial.h"

/* In the sequence in which a report shows them. */
enum finding_kind {
    FINDING_DIRTY_READ,
    FINDING_LOST_UPDATE,
    FINDING_WRITE_SKEW,
    FINDING_PHANTOM,
    FINDING_NON_REPEATABLE_READ,
    FINDING_READ_SKEW,
    FINDING_NOT_SERIALIZABLE, /* none of these between two sessions */
    FINDING_STUCK,            /* a session waits for one that has no step left */
    FINDING_DEADLOCK,         /* from here on no anomaly: an error, and the other sessions are serial */
    FINDING_SERIALIZATION_FAILURE,
    FINDING_LOCK_NOT_AVAILABLE,
    FINDING_CONSTRAINT,
    FINDING_ERROR, /* any other error, such as an exception with its own SQLSTATE */
    FINDING_SERIAL,
    FINDING_COUNT
};

struct finding {
    enum finding_kind kind;
    uint32_t sessions; /* those between which it happened; 0: not known */
    char text[1400];   /* a few sentences */
};

/* "lost-update"; static storage. */
const char *finding_name(enum finding_kind kind);
bool finding_is_anomaly(enum finding_kind kind);

/* STEPS (COUNT) led to OUTCOME. False: an execution failed, having said why. */
bool classify(struct sql_execution *execution, struct serial *serial, const size_t *steps, size_t count,
              const struct sql_outcome *outcome, struct finding *ret_finding);

#endif
