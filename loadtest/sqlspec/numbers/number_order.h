/* Whether SQL may compare or sort generated numbers, as far as its words show it: for a server whose counters cannot count down. Pure. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_NUMBERS_NUMBER_ORDER_H
#define OVERSELL_LOADTEST_SQLSPEC_NUMBERS_NUMBER_ORDER_H

#include <stdbool.h>

/* True for max, min, ORDER BY and the like, for a comparison by size whose right side is no literal, and for SQL with a part that is not
 * understood. */
bool number_order_matters(const char *sql);

#endif
