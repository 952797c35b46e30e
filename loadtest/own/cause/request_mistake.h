/* Finds what one request does wrong by itself: it ignores that it changed no row, it keeps what it wrote although it refused, or it checks
 * each line of an order alone. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_REQUEST_MISTAKE_H
#define OVERSELL_LOADTEST_OWN_CAUSE_REQUEST_MISTAKE_H

#include "loadtest/own/cause/run_shapes.h"

/* The functions write what happened and what to change to RET_TEXT. False: the statements do not show it. */

/* A statement changed no row, where that of another request changed some, and its request committed other changes. */
bool say_ignored_zero(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);
/* A refused request has committed the same write as one that sold. */
bool say_refused_write(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);
/* A request wrote two lines to a table, and read the stock only before. */
bool say_two_lines(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);
/* An answer says sold although the transaction was rolled back or changed nothing. */
bool say_sold_without_write(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);
/* Says which request was refused although units were left, and at which statement. */
void say_turned_away(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);

#endif
