/* One execution of a specification, a step at a time under the control of a search, and its outcome. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SQL_EXECUTION_H
#define OVERSELL_LOADTEST_SQLSPEC_SQL_EXECUTION_H

#include "loadtest/sqlspec/connections.h"
#include "loadtest/sqlspec/difference/difference.h"
#include "loadtest/sqlspec/inside/step_inside.h"
#include "loadtest/sqlspec/numbers/sequences.h"

#define NO_STEP SIZE_MAX

/* What an execution led to. Bits stand for sessions. */
struct sql_outcome {
    json_t *sessions[SPEC_SESSIONS_MAX]; /* {step: results}; the session's teardown is the step "" */
    json_t *tables;                      /* the contents of the tables at the end: [[table, row]…] */
    uint32_t aborted; /* an error ended a transaction: a deadlock, a constraint, an exception… */
    char code[6];     /* SQLSTATE of the first such error; "" */
    bool stuck;       /* a session waited at the end for one that had no step left */
    char waits[600];  /* STUCK: "Step x of b waits for advisory lock 1, which is held by a" */
    const struct numbers *numbers; /* of the execution */
    /* the SQL of an invariant that was not true; NULL: none. It belongs to the specification. */
    const char *broken;
};

/* Texts and comparisons treat numbers that sequences have generated as numbers.h says. */
void sql_outcome_free(struct sql_outcome *outcome);
/* The results of SESSIONS (bits) and the tables, as one text to compare; the caller frees it. NULL: no memory. */
char *sql_outcome_text(const struct sql_outcome *outcome, uint32_t sessions);
/* All of it, with the numbers that there would have been without us; as above. */
char *sql_outcome_small_text(const struct sql_outcome *outcome);
/* Are the results of one step, or the contents of all tables, the same? NULL is the same as NULL only. */
bool sql_results_equal(const struct numbers *numbers, const json_t *one, const json_t *other);
bool sql_tables_equal(const struct numbers *numbers, json_t *one, json_t *other);

struct sql_execution {
    struct connections *connections;
    bool tables_known, tables_too_large;
    struct sequences sequences;
    bool said; /* that a step takes long */
    struct step_inside inside;
    json_t *columns;  /* {table: [name…]} of the tables that are compared */
    char *tables_sql; /* reads the tables; NULL: there are none */
    /* Of the current execution: */
    size_t running
        [SPEC_SESSIONS_MAX]; /* a step that was started and has not ended; NO_STEP: the session is idle */
    uint32_t holders[SPEC_SESSIONS_MAX]; /* of a blocked session: whom it waits for */
    size_t began_at
        [SPEC_SESSIONS_MAX]; /* length when the open transaction of the session began; SIZE_MAX: none is open */
    struct sql_outcome outcome;
    size_t started[SPEC_STEPS_MAX], length; /* the steps in the sequence of their starts */
    size_t position[SPEC_SESSIONS_MAX];     /* of the running step, in STARTED */
    uint32_t open[SPEC_STEPS_MAX]; /* of each step: the sessions with an open transaction when it ended */
    size_t open_since[SPEC_STEPS_MAX][SPEC_SESSIONS_MAX]; /* and for these BEGAN_AT */
    uint64_t new_results; /* a hash of the results since the last step was started */
    uint32_t given_up; /* sessions that run no further step, because an error has ended their transactions */
    bool has_deadlock; /* which of the transactions the server ends depends on time */
    uint64_t fingerprint; /* of results and waits up to a deadlock: equal in every run of the same steps */
    bool failed, began;   /* BEGAN: the setup of the file has run, and not its teardown */
};

/* Where two outcomes of EXECUTION differ: as difference_find. */
size_t sql_outcome_difference(const struct sql_execution *execution, const struct sql_outcome *one,
                              const struct sql_outcome *other, struct difference *ret_first);

/* Prepares for executions on CONNECTIONS, which must outlive it. */
void sql_execution_open(struct sql_execution *execution, struct connections *connections);
void sql_execution_close(struct sql_execution *execution);

/* Each returns false having said why on stderr, unless it was an interrupt. */
/* Runs the setup of the file; SESSIONS: and that of each session. */
bool sql_execution_begin(struct sql_execution *execution, bool sessions);
/* Lists the tables again in the next execution. */
void sql_execution_forget_tables(struct sql_execution *execution);
/* Starts STEP on its session, which has to be idle, and waits until every session is idle or blocked. */
bool sql_execution_step(struct sql_execution *execution, size_t step);
/* Ends the execution: teardown, invariants, the tables. RET_OUTCOME is the caller's to sql_outcome_free. */
bool sql_execution_end(struct sql_execution *execution, struct sql_outcome *ret_outcome);

/* For sql_execution.c: reads the contents of the tables into the outcome. */
bool execution_read_tables(struct sql_execution *execution);

/* Cleans up after a function that returned false: cancels, rolls back, and runs the teardown of the file. */
void sql_execution_abandon(struct sql_execution *execution);

/* Runs the sessions of ORDER one after the other. */
bool sql_execution_run_serial(struct sql_execution *execution, const uint8_t *order, size_t count,
                              struct sql_outcome *ret_outcome);
/* Runs the COUNT steps in this sequence, without those that SKIP has. A step whose session is blocked starts later. */
bool sql_execution_run_steps(struct sql_execution *execution, const size_t *steps, size_t count,
                             const bool skip[SPEC_STEPS_MAX], struct sql_outcome *ret_outcome);

#endif
