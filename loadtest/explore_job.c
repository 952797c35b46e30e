/* Exploring one strategy: schedule after schedule until there is none left, or as many as were asked for. */
#include "loadtest/explore_job.h"

#include "loadtest/complain.h"
#include "loadtest/interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_AGAIN = 3 }; /* at a schedule that does not begin as it did before */

const char *explore_not_possible(const struct strategy *strategy)
{
    if (strategy->place != place_by_steps && strategy->place != place_in_one_statement)
        return "it places orders in a way of its own, whose steps are not one order's";
    return NULL;
}

struct job {
    const struct explore_plan *plan;
    struct play play;
    struct search search;
    struct tally tally;
    unsigned differed;
    char error[400];
};

/* ---- searching ------------------------------------------------------------------------------------------------ */

static bool is_enough(const struct job *job, int64_t began_us)
{
    const struct explore_plan *plan = job->plan;
    return interrupted() || (plan->limit && job->tally.schedules >= (uint64_t)plan->limit) ||
           (plan->time_ms && monotonic_us() - began_us >= plan->time_ms * 1000);
}

/* False: it cannot go on, and ERROR says why. */
static bool search_all(struct job *job, void (*covered)(void *context, double share), void *context)
{
    const struct world world = {&job->play, play_start, play_enabled, play_make, play_end, play_remaining};
    int64_t began_us = monotonic_us();
    unsigned tries = 0;
    while (!is_enough(job, began_us))
        switch (search_run(&job->search, &world)) {
        case SEARCH_RAN:
            tally_add(&job->tally, &job->play);
            covered(context, search_coverage(&job->search));
            tries = 0;
            break;
        case SEARCH_DONE: return true;
        case SEARCH_DIFFERS:
            job->differed++;
            if (!play_end(&job->play) || ++tries == TRIES_AGAIN) {
                snprintf(job->error, sizeof job->error, "not reproducible: %s", job->search.error);
                return false;
            }
            break;
        case SEARCH_FAILED:
            snprintf(job->error, sizeof job->error, "%s",
                     *job->play.error ? job->play.error : job->search.error);
            return false;
        }
    return true;
}

/* ---- the row -------------------------------------------------------------------------------------------------- */

static json_t *steps_json(const struct play *play)
{
    char list[PROFILE_MAX * 16] = "";
    for (size_t i = 0, used = 0; i < play->profile_length; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "",
                                 step_name(play->profile[i]));
    return json_string(list);
}

static json_t *empty_row(const struct explore_plan *plan, const struct strategy *strategy)
{
    return json_pack("{s:s, s:s, s:I, s:s}", "strategy", strategy->name, "guarantee",
                     guarantee_name(strategy->guarantee), "actors", (json_int_t)plan->actors, "faults",
                     "none");
}

static json_t *unavailable_row(const struct explore_plan *plan, const struct strategy *strategy,
                               const char *reason)
{
    json_t *row = empty_row(plan, strategy);
    json_object_set_new(row, "verdict", json_string(explore_verdict_name(EXPLORE_UNAVAILABLE)));
    json_object_set_new(row, "reason", json_string(reason));
    return row;
}

static json_t *row_of(const struct job *job, const struct strategy *strategy)
{
    const struct tally *t = &job->tally;
    bool complete = job->search.done && !*job->error;
    enum explore_verdict verdict = explore_verdict(strategy, 0, t, complete);
    double share = (double)t->oversold / (double)(t->schedules ? t->schedules : 1);
    json_t *row = empty_row(job->plan, strategy);
    json_t *figures = json_pack(
        "{s:o, s:I, s:f, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:{s:i, s:i, s:i}, s:s, s:n}",
        "step_list", steps_json(&job->play), "schedules", (json_int_t)t->schedules, "coverage",
        search_coverage(&job->search), "complete", complete, "blocked", (json_int_t)t->waited, "sold_rightly",
        (json_int_t)t->rightly, "undersold", (json_int_t)t->undersold, "oversold", (json_int_t)t->oversold,
        "share", complete ? json_real(share) : json_null(), "share_percent",
        complete ? json_real(100 * share) : json_null(), "drift", (json_int_t)t->drifted, "deadlocks",
        (json_int_t)t->deadlocks, "stuck_locks", (json_int_t)t->stuck, "switches", "min",
        tally_switches(t, 0), "median", tally_switches(t, 0.5), "max", tally_switches(t, 1), "verdict",
        explore_verdict_name(verdict), "witness");
    if (!figures || json_object_update(row, figures) != 0) {
        json_decref(row);
        row = NULL;
    }
    json_decref(figures);
    if (row && *job->error)
        json_object_set_new(row, "reason", json_string(job->error));
    return row;
}

json_t *explore_strategy(const struct explore_plan *plan, const struct strategy *strategy,
                         struct explore_shop *shop, const char *url,
                         void (*covered)(void *context, double share), void *context)
{
    struct play_settings settings = {
        .strategy = strategy, .actors = (size_t)plan->actors, .stock = plan->stock};
    memcpy(settings.quantities, plan->quantities, sizeof settings.quantities);
    const char *why_not = explore_not_possible(strategy);
    if (why_not)
        return unavailable_row(plan, strategy, why_not);
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->plan = plan;
    job->search.bound = NO_BOUND;
    json_t *row;
    if (!play_open(&job->play, shop, url, &settings)) {
        row = unavailable_row(plan, strategy, job->play.error);
    } else {
        (void)search_all(job, covered, context);
        row = row_of(job, strategy);
        play_close(&job->play);
    }
    free(job);
    return row;
}
