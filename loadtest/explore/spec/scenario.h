/* Scenarios: one schedule, or all schedules of some orders, with the result that is expected. Files of them (schedules/, --replay)
 * are regression tests. Pure functions.
 *
 *     # the rest of the line is for people
 *     strategy read-write   stock 1   orders A:1 B:1
 *     schedule A>read B>end A>end
 *     expect   sold 2  oversold 1  A created
 *     schedules all   faults expire
 *     expect   never stuck  sometimes oversold  schedules 24
 *
 * A `strategy` line applies to all schedules after it; an `expect` line to the schedule above it. The short form is one line:
 * `read-write s=1 q=1,1 A>read B>end A>end`. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_SCENARIO_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_SCENARIO_H

#include "loadtest/explore/spec/figures.h"
#include "loadtest/search/schedule_notation.h"

enum { EXPECTATIONS_MAX = 16, SCENARIOS_MAX = 64 };

enum expected { EXPECT_NUMBER, EXPECT_NEVER, EXPECT_SOMETIMES, EXPECT_OUTCOME };

struct expectation {
    enum expected kind;
    const char *figure; /* static storage; NULL for EXPECT_OUTCOME */
    int64_t number;     /* for EXPECT_OUTCOME: enum outcome */
    uint8_t actor;
};

struct scenario {
    struct execution_settings settings;
    bool all; /* every schedule, not the one of SCRIPT */
    struct script script;
    struct expectation expectations[EXPECTATIONS_MAX];
    size_t expectation_count;
    int line; /* of the file */
};

/* Reads the TEXT of a file, which it changes. Returns the number of scenarios, up to MOST; 0, with RET_ERROR: it is not valid. */
size_t scenarios_parse(char *text, struct scenario *ret_scenarios, size_t most, char *ret_error, size_t size);
/* Reads the short form. False, with RET_ERROR (SIZE bytes). */
bool scenario_parse_short(const char *text, struct scenario *ret_scenario, char *ret_error, size_t size);
/* Writes the short form to BUFFER, of SCENARIO_TEXT bytes, and returns it. */
enum { SCENARIO_TEXT = SCRIPT_TEXT + 200 };
const char *scenario_short(const struct execution_settings *settings, const struct script *script,
                           char *buffer);

/* The faults that NAME means: none, expire, crash or timeout. False: it is none of these. */
bool faults_parse(const char *name, unsigned *ret_faults);
/* The name of one kind of fault, or "none"; static storage. */
const char *faults_name(unsigned faults);

/* Does the result meet every expectation? ENDING is for one schedule, TOTALS for all; the other may be NULL. If not, RET_ERROR
 * (SIZE bytes) names the first that is not met. */
bool scenario_met(const struct scenario *scenario, const struct ending *ending, const struct totals *totals,
                  char *ret_error, size_t size);

#endif
