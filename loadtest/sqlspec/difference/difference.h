/* Finds where two outcomes differ, and says it with the names of table, column or step and both values. Pure. Any thread. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_DIFFERENCE_DIFFERENCE_H
#define OVERSELL_LOADTEST_SQLSPEC_DIFFERENCE_DIFFERENCE_H

#include "loadtest/sqlspec/numbers/numbers.h"

struct difference {
    char where[160];           /* "table stock, column units", "step r1, column units" */
    char one[200], other[200]; /* the values: "9", "no such row", "a row with id = 2", "UPDATE 0" */
};

/* An outcome: STEPS {step: results}, as session.h has them, and TABLES [[table, row]…]. Borrowed. COLUMNS {table: [name…]}. */
struct difference_side {
    const json_t *steps, *tables;
};

/* In how many steps and rows two outcomes differ, up to a renaming of generated numbers in each step and row. *ret_first is the first one, tables
 * before steps; if there is none by that measure, a number in a row that differs, or empty texts. */
size_t difference_find(const struct numbers *numbers, const struct difference_side *one,
                       const struct difference_side *other, const json_t *columns,
                       struct difference *ret_first);

#endif
