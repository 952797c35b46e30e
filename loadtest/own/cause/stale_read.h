/* Finds a request that decides by what it has read before another request's change of it was visible. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_CAUSE_STALE_READ_H
#define OVERSELL_LOADTEST_OWN_CAUSE_STALE_READ_H

#include "loadtest/own/cause/run_shapes.h"

/* Writes what happened and what to change to RET_TEXT. False: the statements do not show such a read. */
bool say_stale_read(const struct run_shapes *run, char ret_text[static CAUSE_TEXT]);

#endif
