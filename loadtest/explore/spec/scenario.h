/* Scenarios: a story told as a schedule, or a promise about all schedules, with what is expected of it.
 *
 *     # the rest of the line is for people
 *     strategy read-write   stock 1   orders A:1 B:1
 *     schedule A>read B>end A>end
 *     expect   sold 2  oversold 1  A created
 *     schedules all   faults expire
 *     expect   never stuck  sometimes oversold  schedules 24
 *
 * A `strategy` line is for all that follows it; each `expect` is for the schedule above it. On one line the same is
 * `read-write s=1 q=1,1 A>read B>end A>end`. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_SCENARIO_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_SCENARIO_H

#include "loadtest/explore/core/schedule_notation.h"
#include "loadtest/explore/spec/figures.h"

enum { EXPECTATIONS_MAX = 16, SCENARIOS_MAX = 64 };

enum expected { EXPECT_NUMBER, EXPECT_NEVER, EXPECT_SOMETIMES, EXPECT_OUTCOME };

struct expectation {
    enum expected kind;
    const char *figure; /* EXPECT_OUTCOME: NULL; static storage */
    int64_t number;     /* EXPECT_OUTCOME: enum outcome */
    uint8_t actor;
};

struct scenario {
    struct execution_settings settings;
    bool all; /* every schedule, not one */
    struct script script;
    struct expectation expectations[EXPECTATIONS_MAX];
    size_t expectation_count;
    int line; /* where its schedule stands */
};

/* Reads a file's TEXT, which is changed. Returns how many scenarios there are, 0 with RET_ERROR where something is wrong. */
size_t scenarios_parse(char *text, struct scenario *ret_scenarios, size_t most, char *ret_error, size_t size);
/* Reads the short form. */
bool scenario_parse_short(const char *text, struct scenario *ret_scenario, char *ret_error, size_t size);
/* Writes the short form of what was played; BUFFER of SCENARIO_TEXT bytes, returned. */
enum { SCENARIO_TEXT = SCRIPT_TEXT + 200 };
const char *scenario_short(const struct execution_settings *settings, const struct script *script,
                           char *buffer);

/* The faults that NAME means: none, expire, crash or timeout. False: it is none of these. */
bool faults_parse(const char *name, unsigned *ret_faults);
/* The name of one kind of fault, or "none"; static storage. */
const char *faults_name(unsigned faults);

/* Does what one schedule, or all, came to meet the expectations? If not RET_ERROR says which it does not. */
bool scenario_met(const struct scenario *scenario, const struct ending *ending, const struct totals *totals,
                  char *ret_error, size_t size);

#endif
