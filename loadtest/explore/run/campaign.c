/* A hunt: schedule after schedule, and what is made of the plainest that went wrong. */
#include "loadtest/explore/run/campaign.h"
#include "base/clock.h"

#include "loadtest/cli/interrupt.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/explore/spec/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES_AGAIN = 3, /* at a schedule that does not begin as it did before */
    SAVE_EVERY_US = 5000000,
};

bool hunt_open(struct hunt *hunt, struct product_schema *schema, const char *url,
               const struct execution_settings *settings)
{
    *hunt = (struct hunt){.search.bound = NO_BOUND};
    if (execution_open(&hunt->execution, schema, url, settings))
        return true;
    snprintf(hunt->error, sizeof hunt->error, "%s", hunt->execution.error);
    return false;
}

void hunt_close(struct hunt *hunt)
{
    execution_close(&hunt->execution);
}

/* Where and when a run began. */
struct began {
    int64_t at_us;
    uint64_t schedules; /* that an earlier run had left in the checkpoint */
};

static bool is_enough(const struct hunt *hunt, const struct hunt_limits *limits, const struct began *began)
{
    uint64_t schedules = hunt->totals.schedules - began->schedules;
    return interrupted() || (limits->schedules && schedules >= (uint64_t)limits->schedules) ||
           (limits->samples && hunt->totals.schedules >= (uint64_t)limits->samples) ||
           (limits->time_ms && monotonic_us() - began->at_us >= limits->time_ms * 1000);
}

/* Of a search in turns each schedule counts once: in the turn that was the first to allow it. */
static void count(struct hunt *hunt)
{
    if (hunt->search.bound != NO_BOUND && (int)search_preemptions(&hunt->search) < hunt->search.bound)
        return;
    totals_add(&hunt->totals, &hunt->execution);
    if (hunt->search.bound == NO_BOUND)
        hunt->coverage = search_coverage(&hunt->search);
    else
        hunt->coverage += search_weight(&hunt->search);
}

static bool save_progress(struct hunt *hunt)
{
    if (!*hunt->checkpoint.path)
        return true;
    const struct progress_made made = {hunt->search, hunt->totals, hunt->coverage};
    return checkpoint_save(&hunt->checkpoint, &made, hunt->error, sizeof hunt->error);
}

/* RET_FOUND: the hunt stands where an earlier run has left it. */
static bool load_progress(struct hunt *hunt, bool *ret_found)
{
    struct progress_made made;
    int found = *hunt->checkpoint.path
                    ? checkpoint_load(&hunt->checkpoint, &made, hunt->error, sizeof hunt->error)
                    : 0;
    *ret_found = found > 0;
    if (found > 0) {
        hunt->search = made.search;
        hunt->totals = made.totals;
        hunt->coverage = made.coverage;
    }
    return found >= 0;
}

/* One search, to its end or as far as the limits allow. False, with ERROR: it could not go on. */
static bool run_search(struct hunt *hunt, const struct hunt_limits *limits, const struct began *began,
                       hunt_covered *covered, void *context)
{
    const struct program program = {&hunt->execution,      execution_start,      execution_enabled,
                                    execution_apply,       execution_end,        execution_remaining,
                                    execution_is_doubtful, execution_fingerprint};
    unsigned tries = 0;
    while (!is_enough(hunt, limits, began))
        switch (search_run(&hunt->search, &program)) {
        case SEARCH_RAN:
            count(hunt);
            covered(context, limits->samples ? (double)hunt->totals.schedules / (double)limits->samples
                                             : hunt->coverage);
            tries = 0;
            if (monotonic_us() - hunt->checkpoint.saved_us > SAVE_EVERY_US && !save_progress(hunt))
                return false;
            break;
        case SEARCH_DONE: return true;
        case SEARCH_DOUBTFUL: hunt->differed++; break; /* the play doubts a schedule twice at most */
        case SEARCH_DIFFERS:
            hunt->differed++;
            if (!execution_end(&hunt->execution) || ++tries == TRIES_AGAIN) {
                snprintf(hunt->error, sizeof hunt->error, "not reproducible: %s", hunt->search.error);
                return false;
            }
            break;
        case SEARCH_FAILED:
            snprintf(hunt->error, sizeof hunt->error, "%s",
                     *hunt->execution.error ? hunt->execution.error : hunt->search.error);
            return false;
        }
    return true;
}

bool hunt_run(struct hunt *hunt, const struct hunt_limits *limits, hunt_covered *covered, void *context)
{
    int bound = limits->bound == NO_BOUND || limits->samples ? NO_BOUND : 0;
    bool well, goes_on;
    if (!load_progress(hunt, &goes_on))
        return false;
    if (goes_on)
        bound = hunt->search.bound;
    const struct began began = {monotonic_us(), hunt->totals.schedules};
    hunt->totals.counterexamples_wanted = (size_t)limits->show;
    do {
        if (!goes_on)
            /* No seed is 0, and close seeds are far apart. */
            hunt->search = (struct search){.bound = bound,
                                           .samples = limits->samples > 0,
                                           .pct.depth = (unsigned)limits->pct,
                                           .random = (uint64_t)limits->seed * UINT64_C(0x9E3779B97F4A7C15) |
                                                     1};
        goes_on = false;
        well = run_search(hunt, limits, &began, covered, context) && save_progress(hunt);
        hunt->complete = well && hunt->search.done && !hunt->search.cut;
    } while (well && hunt->search.done && hunt->search.cut && bound++ < limits->bound);
    if (hunt->complete)
        hunt->coverage = 1;
    else if (limits->samples)
        hunt->coverage = 0; /* nobody knows */
    return well;
}

/* ---- the witness ---------------------------------------------------------------------------------------------- */

/* Makes its moves once more, to see what script they are. */
static bool apply_again(struct hunt *hunt, const struct counterexample *counterexample)
{
    bool made = execution_start(&hunt->execution);
    for (size_t i = 0; made && i < counterexample->length; i++)
        made = execution_apply(&hunt->execution, counterexample->transitions[i]);
    return execution_end(&hunt->execution) && made;
}

/* Does the script lead to the same moves, and these to the same kind of end? */
static bool is_reproduced(struct hunt *hunt, const struct counterexample *counterexample,
                          const struct script *script, struct replay *ret_replay)
{
    return replay_run(&hunt->execution, script, ret_replay) &&
           hunt->execution.transition_count == counterexample->length &&
           memcmp(hunt->execution.transitions, counterexample->transitions,
                  counterexample->length * sizeof counterexample->transitions[0]) == 0 &&
           (counterexample->is_bad ? execution_breaks_promise(&hunt->execution)
                                   : ending_breaks_lock(&hunt->execution.ending));
}

/* In columns, as a text. */
static json_t *tell(const struct execution *execution, const struct story *story)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        story_print(execution, story, out);
    json_t *told = out && fclose(out) == 0 ? json_string(text) : NULL;
    free(text);
    return told;
}

static json_t *counterexample_json(struct hunt *hunt, const struct counterexample *counterexample)
{
    struct script script;
    struct replay replay;
    struct story story;
    char words[SCENARIO_TEXT];
    int reproduced = 0;
    if (hunt->execution.lost || !apply_again(hunt, counterexample))
        return json_null();
    script_of_execution(&hunt->execution, &script);
    for (int i = 0; i < REPLAY_RUNS; i++)
        reproduced += is_reproduced(hunt, counterexample, &script, &replay);
    story_tell(&hunt->execution, &replay, &story);
    return json_pack("{s:s, s:i, s:o, s:o, s:s, s:o, s:i}", "replay",
                     scenario_short(&hunt->execution.settings, &script, words), "switches",
                     (int)counterexample->switches, "steps", story_steps(&hunt->execution, &replay), "ending",
                     story_ending(&hunt->execution), "explanation", story.explanation, "told",
                     tell(&hunt->execution, &story), "reproduced", reproduced);
}

json_t *hunt_counterexample(struct hunt *hunt)
{
    const struct totals *totals = &hunt->totals;
    return totals->counterexample_count > 0 ? counterexample_json(hunt, &totals->counterexamples[0])
                                            : json_null();
}

json_t *hunt_further_counterexamples(struct hunt *hunt)
{
    json_t *further = json_array();
    for (size_t i = 1; i < hunt->totals.counterexample_count; i++)
        json_array_append_new(further, counterexample_json(hunt, &hunt->totals.counterexamples[i]));
    return further;
}
