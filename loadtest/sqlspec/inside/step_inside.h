/* Notes the first step inside which another session can act, although no schedule of the search does that, and the first such step in a
 * transaction. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_INSIDE_STEP_INSIDE_H
#define OVERSELL_LOADTEST_SQLSPEC_INSIDE_STEP_INSIDE_H

#include "loadtest/search/statement_inside.h"
#include "loadtest/sqlspec/file/spec_file.h"
#include "loadtest/sqlspec/server/session.h"

/* All zero: none was noted. */
struct step_inside {
    bool found;
    size_t step;
    enum {
        INSIDE_ALONE,  /* it is outside a transaction */
        INSIDE_COMMIT, /* a deferred trigger runs in this COMMIT */
        INSIDE_TRIGGER, /* it reads in a trigger or function, with locks that do not keep out what is not there yet */
    } why;
    /* in a transaction, OPEN_STEP runs several statements, and another session can commit between them */
    bool is_open;
    size_t open_step;
    bool routines_known;
    struct routines routines;
};

/* Before STEP is started, when those of STARTED were: IN_TRANSACTION: its session has a transaction open. The first call reads the functions and
 * triggers by way of CONTROL. False, having said why on stderr: they cannot be read. */
bool step_inside_note(struct step_inside *inside, const struct spec *spec, struct session *control,
                      size_t step, bool in_transaction, const size_t *started, size_t count);
void step_inside_free(struct step_inside *inside);

#endif
