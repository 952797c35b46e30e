/* Tells what a statement has done to the data and locks of PostgreSQL, from its text and its answer. It looks for words only, so it errs
 * towards "it has changed something". Pure. */
#ifndef OVERSELL_LOADTEST_OWN_POLLS_STATEMENT_EFFECT_H
#define OVERSELL_LOADTEST_OWN_POLLS_STATEMENT_EFFECT_H

#include "loadtest/search/statement_inside.h"

enum statement_effect {
    EFFECT_NONE,    /* it has read, or set a savepoint */
    EFFECT_VAIN,    /* it was to write or lock rows, and did not: 0 rows, or a duplicate key */
    EFFECT_REFUSED, /* the same, because another transaction or session has a lock */
    EFFECT_LOCKS,   /* it has locked rows, and changed none */
    EFFECT_CHANGES, /* it has changed something, or may have */
    EFFECT_ENDS,    /* COMMIT or ROLLBACK */
};

/* TEXT and ANSWER as struct gate_connection has them; SQLSTATE of its error, "" if it had none. ROUTINES: NULL if they are not known. */
enum statement_effect statement_effect(const struct routines *routines, const char *text, const char *answer,
                                       const char *sqlstate);
/* The statement writes the table that follows INSERT INTO, UPDATE or DELETE FROM and, as far as its text tells, nothing else. */
bool statement_writes_one_table(const struct routines *routines, const char *text);

#endif
