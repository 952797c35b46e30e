/* Runs one search after another with growing preemption bounds, counts the schedules, and replays counterexamples. */
#include "loadtest/explore/run/campaign.h"
#include "base/clock.h"
#include "base/text.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/explore/spec/explore_verdict.h"
#include "loadtest/explore/spec/scenario.h"
#include "loadtest/search/run_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES_AGAIN = 3, /* runs of a schedule that differs from the run before */
    SAVE_EVERY_US = 5000000,
};

bool campaign_open(struct campaign *campaign, struct product_schema *schema, const char *url,
                   const struct execution_settings *settings)
{
    *campaign = (struct campaign){.search.bound = NO_BOUND};
    if (execution_open(&campaign->execution, schema, url, settings))
        return true;
    return text_fail(campaign->error, sizeof campaign->error, "%s", campaign->execution.error);
}

void campaign_close(struct campaign *campaign)
{
    execution_close(&campaign->execution);
}

/* One call of campaign_run. */
struct run {
    struct campaign *campaign;
    const struct campaign_limits *limits;
    uint64_t earlier; /* schedules that an earlier run had left in the checkpoint */
    int64_t until_us;
    unsigned tries;        /* of a schedule that differs */
    char difference[1500]; /* of the first try: both traces */
    campaign_progress *progress;
    void *context;
};

static bool goes_on(void *self)
{
    const struct run *run = self;
    const struct campaign_limits *limits = run->limits;
    const struct totals *totals = &run->campaign->totals;
    return (!limits->first || totals->bad == 0) &&
           (!limits->schedules || totals->run - run->earlier < (uint64_t)limits->schedules) &&
           (!limits->samples || totals->run < (uint64_t)limits->samples);
}

/* Bound N + 1 repeats the schedules of bound N. Each counts once: with the first bound that allows it. */
static void count(struct campaign *campaign)
{
    if (campaign->search.bound != NO_BOUND &&
        (int)search_preemptions(&campaign->search) < campaign->search.bound)
        return;
    totals_add(&campaign->totals, &campaign->execution, &campaign->search);
    if (campaign->search.bound == NO_BOUND)
        campaign->coverage = search_coverage(&campaign->search);
    else
        campaign->coverage += search_weight(&campaign->search);
}

static bool save_progress(struct campaign *campaign)
{
    if (!*campaign->checkpoint.path)
        return true;
    const struct search_state made = {campaign->search, campaign->totals, campaign->coverage};
    return checkpoint_save(&campaign->checkpoint, &made, campaign->error, sizeof campaign->error);
}

/* *RET_FOUND: the campaign continues where an earlier run has stopped. */
static bool load_progress(struct campaign *campaign, bool *ret_found)
{
    struct search_state made;
    int found = *campaign->checkpoint.path
                    ? checkpoint_load(&campaign->checkpoint, &made, campaign->error, sizeof campaign->error)
                    : 0;
    *ret_found = found > 0;
    if (found > 0) {
        campaign->search = made.search;
        campaign->totals = made.totals;
        campaign->coverage = made.coverage;
    }
    return found >= 0;
}

static bool ran(void *self)
{
    struct run *run = self;
    struct campaign *campaign = run->campaign;
    int64_t samples = run->limits->samples;
    count(campaign);
    run->tries = 0;
    if (run->progress)
        run->progress(run->context,
                      samples ? (double)campaign->totals.run / (double)samples : campaign->coverage);
    return monotonic_us() - campaign->checkpoint.saved_us <= SAVE_EVERY_US || save_progress(campaign);
}

/* Both traces begin with the same transitions. */
static void note_difference(struct run *run)
{
    const struct execution *execution = &run->campaign->execution;
    char before[700], now[700];
    events_text(execution->before, execution->before_count, before, sizeof before);
    events_text(execution->trace.events, execution->trace.event_count, now, sizeof now);
    (void)snprintf(run->difference, sizeof run->difference, "Before: %s. Now: %s", before, now);
}

/* The execution doubts a schedule at most twice. */
static bool again(void *self, enum search_outcome why)
{
    struct run *run = self;
    run->campaign->differed++;
    if (why == SEARCH_DIFFERS && run->tries == 0)
        note_difference(run);
    return why == SEARCH_DOUBTFUL || (execution_end(&run->campaign->execution) && ++run->tries < TRIES_AGAIN);
}

/* One search, to its end or up to a limit. False, with ERROR: it cannot continue. */
static bool search_once(struct run *run)
{
    struct campaign *campaign = run->campaign;
    const struct program program = {.self = &campaign->execution,
                                    .start = execution_start,
                                    .enabled = execution_enabled,
                                    .apply = execution_apply,
                                    .end = execution_end,
                                    .remaining = execution_remaining,
                                    .is_doubtful = execution_is_doubtful,
                                    .fingerprint = execution_fingerprint,
                                    .footprint = run->limits->reduces ? execution_footprint : NULL,
                                    .stop = execution_end};
    const struct search_caller caller = {run, run->until_us, goes_on, ran, again};
    run->tries = 0;
    switch (run_search(&campaign->search, &program, &caller)) {
    case SEARCH_DIFFERS:
        return text_fail(campaign->error, sizeof campaign->error, "not reproducible: %s. %s",
                         campaign->search.error, run->difference);
    case SEARCH_FAILED:
        return text_fail(campaign->error, sizeof campaign->error, "%s",
                         *campaign->execution.error ? campaign->execution.error : campaign->search.error);
    default: return !*campaign->error;
    }
}

bool campaign_run(struct campaign *campaign, const struct campaign_limits *limits,
                  campaign_progress *progress, void *context)
{
    int bound = limits->bound == NO_BOUND || limits->samples ? NO_BOUND : 0;
    bool ok, goes_on;
    if (!load_progress(campaign, &goes_on))
        return false;
    if (goes_on)
        bound = campaign->search.bound;
    struct run run = {campaign, limits, .earlier = campaign->totals.run, .progress = progress,
                      .context = context};
    run.until_us = limits->time_ms ? monotonic_us() + limits->time_ms * 1000 : INT64_MAX;
    campaign->totals.counterexamples.most = (size_t)limits->show;
    do {
        if (!goes_on)
            /* No seed is 0, and close seeds are far apart. */
            campaign->search = (struct search){
                .bound = bound,
                .samples = limits->samples > 0,
                .pct.depth = (unsigned)limits->pct,
                .random = (uint64_t)limits->seed * UINT64_C(0x9E3779B97F4A7C15) | 1};
        goes_on = false;
        ok = search_once(&run) && save_progress(campaign);
        campaign->complete = ok && campaign->search.done && !campaign->search.cut;
    } while (ok && campaign->search.done && campaign->search.cut && bound++ < limits->bound);
    if (campaign->complete)
        campaign->coverage = 1;
    else if (limits->samples)
        campaign->coverage = 0; /* unknown for samples */
    return ok;
}

/* ---- counterexamples ---------------------------------------------------------------------------------------------- */

/* Runs its transitions once more, since their script depends on the events. */
static bool apply_again(struct campaign *campaign, const struct counterexample *counterexample)
{
    bool made = execution_start(&campaign->execution);
    for (size_t i = 0; made && i < counterexample->length; i++)
        made = execution_apply(&campaign->execution, counterexample->transitions[i]);
    return execution_end(&campaign->execution) && made;
}

/* Does the script lead to the same transitions, and these to the same kind of violation? */
static bool is_reproduced(struct campaign *campaign, const struct counterexample *counterexample,
                          const struct script *script, struct replay *ret_replay)
{
    return replay_run(&campaign->execution, script, ret_replay) &&
           campaign->execution.transition_count == counterexample->length &&
           memcmp(campaign->execution.transitions, counterexample->transitions,
                  counterexample->length * sizeof counterexample->transitions[0]) == 0 &&
           (counterexample->badness ? execution_breaks_promise(&campaign->execution)
                                    : ending_breaks_lock(&campaign->execution.ending));
}

/* The narration's table as a text. */
static json_t *tell(const struct execution *execution, const struct narration *narration)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        narration_print(execution, narration, out);
    json_t *told = out && fclose(out) == 0 ? json_string(text) : NULL;
    free(text);
    return told;
}

json_t *campaign_counterexample(struct campaign *campaign, size_t i)
{
    struct script script;
    struct replay replay;
    struct narration narration;
    char words[SCENARIO_TEXT];
    int reproduced = 0;
    const struct counterexample *counterexample = &campaign->totals.counterexamples.item[i];
    if (i >= campaign->totals.counterexamples.count || campaign->execution.lost ||
        !apply_again(campaign, counterexample))
        return json_null();
    script_of_execution(&campaign->execution, &script);
    for (int n = 0; n < REPLAY_RUNS; n++)
        reproduced += is_reproduced(campaign, counterexample, &script, &replay);
    narrate(&campaign->execution, &replay, &narration);
    return json_pack("{s:s, s:i, s:o, s:o, s:s, s:o, s:i}", "replay",
                     scenario_short(&campaign->execution.settings, &script, words), "switches",
                     (int)counterexample->switches, "steps", events_json(&campaign->execution, &replay),
                     "ending", ending_json(&campaign->execution), "explanation", narration.explanation,
                     "told", tell(&campaign->execution, &narration), "reproduced", reproduced);
}
