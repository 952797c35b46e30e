/* The verdict on a strategy: what its row promises, compared with what the schedules came to. Pure. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_EXPLORE_VERDICT_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_EXPLORE_VERDICT_H

#include "loadtest/explore/spec/totals.h"
#include "loadtest/stats/verdict.h"

/* Does the schedule that EXECUTION has just ended break what the strategy must keep (or a figure that must be 0)? */
bool execution_breaks_promise(const struct execution *execution);

/* What was found about the strategy; COMPLETE: every schedule was run. One of OK, OVERSOLD_AS_EXPECTED, UNKNOWN, NOT_CAUGHT and
 * BROKEN. */
enum verdict explore_verdict(const struct execution_settings *settings, const struct totals *totals,
                             bool complete);
/* The verdict of a row that was searched twice with different settings. */
enum verdict explore_verdict_of_both(enum verdict one, enum verdict other);

/* Why a row is VERDICT_BROKEN: what went wrong, and in how many schedules. Written to RET_TEXT of SIZE bytes, which is
 * returned. */
const char *explore_verdict_why(const struct execution_settings *settings, const struct totals *totals,
                                char *ret_text, size_t size);

#endif
