/* Explores one strategy and writes its row: the counts, the verdict and the counterexamples of its campaigns. */
#include "loadtest/explore/run/explore_strategy.h"

#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/explore/spec/scenario.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *explore_not_possible(const struct strategy *strategy)
{
    return strategy_has_steps(strategy)
               ? NULL
               : "its orders do not run step by step, so the explorer cannot interleave them";
}

static json_t *steps_json(const struct execution *execution)
{
    char list[PROFILE_MAX * 16] = "";
    for (size_t i = 0, used = 0; i < execution->profile_length; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "",
                                 step_name(execution->profile[i]));
    return json_string(list);
}

static json_t *empty_row(const struct explore_plan *plan, const struct strategy *strategy)
{
    return json_pack("{s:s, s:s, s:I, s:s}", "strategy", strategy->name, "guarantee",
                     guarantee_name(strategy->guarantee), "actors", (json_int_t)plan->actors, "faults",
                     faults_name(plan->faults));
}

static json_t *row_without_figures(const struct explore_plan *plan, const struct strategy *strategy,
                                   enum verdict verdict, const char *reason)
{
    json_t *row = empty_row(plan, strategy);
    json_object_set_new(row, "verdict", json_string(verdict_name(verdict)));
    json_object_set_new(row, "reason", json_string(reason));
    return row;
}

static json_t *count_json(uint64_t count)
{
    return json_integer((json_int_t)count);
}

/* The row of a search that has run. NULL: out of memory. */
static json_t *row_of(const struct explore_plan *plan, struct campaign *campaign,
                      const struct strategy *strategy)
{
    const struct totals *t = &campaign->totals;
    const struct execution_settings *settings = &campaign->execution.settings;
    enum verdict verdict = explore_verdict(settings, t, campaign->complete);
    if (plan->three && verdict == VERDICT_UNKNOWN && campaign->search.done)
        verdict = VERDICT_OK; /* this search is of the schedules within the bound */
    if (plan->enough && verdict == VERDICT_UNKNOWN && campaign->complete)
        verdict = VERDICT_OK; /* some flaws show only where there is not enough */
    double share = (double)t->oversold / (double)(t->schedules ? t->schedules : 1);
    json_t *first = campaign_counterexample(campaign, 0), *further = json_array();
    for (size_t i = 1; i < t->counterexamples.count; i++)
        json_array_append_new(further, campaign_counterexample(campaign, i));
    char why[600];
    const struct {
        const char *name;
        json_t *value;
    } members[] = {
        {"step_list", steps_json(&campaign->execution)},
        {"schedules", count_json(t->schedules)},
        {"run", count_json(t->run)},
        {"pruned", count_json(campaign->search.pruned)},
        {"coverage", json_real(campaign->coverage)},
        {"complete", json_boolean(campaign->complete)},
        {"blocked", count_json(t->waited)},
        {"sold_rightly", count_json(t->sold_rightly)},
        {"undersold", count_json(t->undersold)},
        {"oversold", count_json(t->oversold)},
        {"share", campaign->complete ? json_real(share) : json_null()},
        {"share_percent", campaign->complete ? json_real(100 * share) : json_null()},
        {"drift", count_json(t->drifted)},
        {"deadlocks", count_json(t->deadlocks)},
        {"stuck_locks", count_json(t->stuck)},
        {"robbed", count_json(t->lock_stolen)},
        {"two_holders", count_json(t->two_holders + t->unbacked_grant)},
        {"false_refusals", count_json(t->false_refusals)},
        {"leaked_locks", count_json(t->leaked)},
        {"failed", count_json(t->failed)},
        {"answers_wrong", count_json(t->answers_wrong)},
        {"switches", json_pack("{s:i, s:i, s:i}", "min", totals_switches(t, 0), "median",
                               totals_switches(t, 0.5), "max", totals_switches(t, 1))},
        {"verdict", json_string(verdict_name(verdict))},
        {"witness", first},
        {"further_witnesses", further},
    };
    json_t *row = empty_row(plan, strategy);
    bool made = row;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        made &= json_object_set_new(row, members[i].name, members[i].value) == 0;
    if (!made) {
        json_decref(row);
        return NULL;
    }
    if (verdict == VERDICT_BROKEN)
        json_object_set_new(row, "broken_by", json_string(explore_verdict_why(settings, t, why, sizeof why)));
    if (*campaign->error)
        json_object_set_new(row, "reason", json_string(campaign->error));
    return row;
}

/* Sets the checkpoint's path and identity; everything that changes the course of the search is part of the identity. */
static bool name_checkpoint(const struct explore_plan *plan, struct campaign *campaign,
                            const struct strategy *strategy)
{
    const struct campaign_limits *l = &plan->limits;
    const struct execution_settings *s = &campaign->execution.settings;
    struct checkpoint *c = &campaign->checkpoint;
    json_auto_t *steps = steps_json(&campaign->execution);
    bool larger = plan->twice && plan->faults == WAITS_END &&
                  !plan->enough; /* the second search of the strategy */
    int length = snprintf(c->path, sizeof c->path, "%s/%s%s.checkpoint", plan->checkpoints, strategy->name,
                          plan->three    ? "-three-orders"
                          : plan->enough ? "-enough"
                          : larger       ? "-larger-orders"
                                         : "");
    size_t used = (size_t)snprintf(c->identity, sizeof c->identity,
                                   "%s, faults %u, never %u, stock %" PRId64 ", bound %" PRId64
                                   ", reduces %d, sample %" PRId64 ", pct %" PRId64 ", seed %" PRId64
                                   ", show %" PRId64 ", steps %s, quantities",
                                   strategy->name, s->faults, s->never, s->stock, l->bound, l->reduces,
                                   l->samples, l->pct, l->seed, l->show, json_string_value(steps));
    for (size_t i = 0; i < s->actors && used < sizeof c->identity; i++)
        used += (size_t)snprintf(c->identity + used, sizeof c->identity - used, " %" PRId64,
                                 s->quantities[i]);
    return length < (int)sizeof c->path && used < sizeof c->identity;
}

/* Runs one search with the settings of PLAN. */
static json_t *search(const struct explore_plan *plan, const struct strategy *strategy,
                      struct product_schema *schema, const char *url, campaign_progress *progress,
                      void *context)
{
    struct execution_settings settings = {.strategy = strategy,
                                          .actors = (size_t)plan->actors,
                                          .stock = plan->stock,
                                          .faults = plan->faults,
                                          .alike = plan->three,
                                          .never = plan->never};
    memcpy(settings.quantities, plan->quantities, sizeof settings.quantities);
    if (!strategy->lock && plan->faults == SHOWN_BY_EXPIRY)
        settings.faults = 0; /* nothing that could end */
    struct campaign *campaign = malloc(sizeof *campaign);
    if (!campaign)
        return NULL;
    json_t *row;
    if (!campaign_open(campaign, schema, url, &settings)) {
        row = row_without_figures(plan, strategy,
                                  campaign->execution.fails_alone && !plan->never ? VERDICT_BROKEN
                                                                                  : VERDICT_UNAVAILABLE,
                                  campaign->error);
    } else if (plan->checkpoints && !name_checkpoint(plan, campaign, strategy)) {
        row = row_without_figures(plan, strategy, VERDICT_UNAVAILABLE,
                                  "the name of its checkpoint is too long");
        campaign_close(campaign);
    } else {
        (void)campaign_run(campaign, &plan->limits, progress, context); /* if it failed the row says so */
        if (campaign->differed > 0)
            complain(
                "%s: %u schedules were repeated, because an order failed or the events differed from the run before",
                strategy->name, campaign->differed);
        row = row_of(plan, campaign, strategy);
        campaign_close(campaign);
    }
    if (!campaign->execution.lost) /* threads that did not finish still use it */
        free(campaign);
    return row;
}

/* The progress of several searches as that of one. */
struct part {
    campaign_progress *progress;
    void *context;
    double done, share; /* of all searches: done before this one, and this one's */
};

static void report_part(void *context, double share)
{
    const struct part *part = context;
    if (part->progress)
        part->progress(part->context, part->done + share * part->share);
}

/* Adds a further search to the row as NAME. The counts stay those of the first; the counterexample is the further one's if none was there
 * before. */
static bool add_further(json_t *row, const char *name, const struct explore_plan *plan, json_t *further)
{
    static const char *const TAKEN_OVER[] = {"witness", "broken_by", "reason"};
    enum verdict verdict = explore_verdict_of_both(result_verdict(row), result_verdict(further));
    json_t *quantities = json_array();
    bool added = true;
    for (int64_t i = 0; i < plan->actors; i++)
        added &= json_array_append_new(quantities, json_integer(plan->quantities[i])) == 0;
    added &= json_object_set_new(further, "stock", json_integer(plan->stock)) == 0;
    added &= json_object_set_new(further, "quantities", quantities) == 0;
    if (plan->three && plan->limits.bound != NO_BOUND)
        added &= json_object_set_new(further, "bound", json_integer(plan->limits.bound)) == 0;
    added &= json_object_set_new(row, "verdict", json_string(verdict_name(verdict))) == 0;
    for (size_t i = 0; i < sizeof TAKEN_OVER / sizeof TAKEN_OVER[0] && added; i++) {
        json_t *member = json_object_get(further, TAKEN_OVER[i]);
        const json_t *own = json_object_get(row, TAKEN_OVER[i]);
        if (member && !json_is_null(member) && (!own || json_is_null(own)))
            added = json_object_set(row, TAKEN_OVER[i], member) == 0;
    }
    return added && json_object_set(row, name, further) == 0;
}

static struct explore_plan with_larger_orders(const struct explore_plan *plan)
{
    struct explore_plan larger = *plan;
    larger.stock = LARGER_STOCK;
    larger.faults = WAITS_END;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        larger.quantities[i] = LARGER_QUANTITY;
    return larger;
}

static struct explore_plan with_enough(const struct explore_plan *plan)
{
    struct explore_plan enough = *plan;
    enough.enough = true;
    enough.stock = ENOUGH_STOCK;
    return enough;
}

/* Without a reduction all schedules of three orders would take hours. A stuck waiter needs two preemptions: one lets it join the queue, and one
 * lets the holder release between its look and its watch. */
enum { WHOLE_THREE_BOUND = 2 };

static struct explore_plan with_three_orders(const struct explore_plan *plan)
{
    struct explore_plan three = *plan;
    three.three = true;
    three.actors = THREE_ORDERS;
    if (!plan->limits.reduces && plan->limits.bound == NO_BOUND)
        three.limits.bound = WHOLE_THREE_BOUND;
    return three;
}

json_t *explore_strategy(const struct explore_plan *plan, const struct strategy *strategy,
                         struct product_schema *schema, const char *url, campaign_progress *progress,
                         void *context)
{
    const char *why_not = explore_not_possible(strategy);
    if (why_not)
        return row_without_figures(plan, strategy, VERDICT_UNAVAILABLE, why_not);
    bool fair = strategy->lock && strategy->lock->properties.fair && plan->limits.samples == 0;
    const struct {
        const char *name;
        struct explore_plan plan;
        bool runs;
    } FURTHER[] = {
        {"larger_orders", with_larger_orders(plan), plan->twice},
        {"enough", with_enough(plan), plan->twice},
        {"three_orders", with_three_orders(plan), plan->twice && fair},
    };
    double share = plan->twice ? 1.0 / (3 + fair) : 1;
    struct part part = {progress, context, 0, share};
    json_t *row = search(plan, strategy, schema, url, report_part, &part);
    for (size_t i = 0; i < sizeof FURTHER / sizeof FURTHER[0]; i++) {
        if (!row || !FURTHER[i].runs || json_object_get(row, "reason"))
            continue;
        if (interrupted()) { /* without its further searches the row has no verdict */
            const char *verdict = verdict_name(explore_verdict_of_both(result_verdict(row), VERDICT_UNKNOWN));
            json_object_set_new(row, "verdict", json_string(verdict));
            return row;
        }
        part.done += share;
        json_auto_t *further = search(&FURTHER[i].plan, strategy, schema, url, report_part, &part);
        if (!further || !add_further(row, FURTHER[i].name, &FURTHER[i].plan, further)) {
            json_decref(row);
            row = NULL;
        }
    }
    return row;
}
