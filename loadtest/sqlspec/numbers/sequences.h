/* Lets the sequences and AUTO_INCREMENT counters that the setup of a specification makes count from numbers that nothing else has, so that generated
 * numbers are recognised wherever they occur. Those that existed before stay as they are. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_NUMBERS_SEQUENCES_H
#define OVERSELL_LOADTEST_SQLSPEC_NUMBERS_SEQUENCES_H

#include "loadtest/sqlspec/numbers/numbers.h"
#include "loadtest/sqlspec/server/session.h"

#include <stdbool.h>

/* All zero: nothing is known yet. */
struct sequences {
    struct numbers numbers; /* COUNT 0: the sequences count as they are */
    json_t *before;         /* those before the first setup: {identity: true} */
    bool known, off;        /* OFF: they are not moved */
    bool reversed;          /* they count down, if the server can do that */
    const char *why;        /* one of the setup is not moved, a sentence; NULL: all are */
    char *move_sql, *reverse_sql;
};

/* Call before and after each setup, with an idle CONTROL session. False, having said why. */
bool sequences_before_setup(struct sequences *sequences, struct session *control);
bool sequences_after_setup(struct sequences *sequences, struct session *control);
void sequences_free(struct sequences *sequences);

#endif
