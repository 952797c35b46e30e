/* Runs a scenario: one schedule, narrated as a table, or all schedules, counted. */
#include "loadtest/explore/run/scenario_runner.h"

#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/explore/explain/sent_requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 64 * 1024 };

/* ---- reading -------------------------------------------------------------------------------------------------- */

static bool add(struct scenario_list *list, const struct scenario *scenario, const char *file)
{
    struct scenario_from *longer = realloc(list->item, (list->count + 1) * sizeof *longer);
    char *source = NULL;
    if (longer)
        list->item = longer;
    if (!longer || (file && asprintf(&source, "%s:%d", file, scenario->line) < 0)) {
        complain("out of memory");
        return false;
    }
    list->item[list->count++] = (struct scenario_from){*scenario, source};
    return true;
}

static bool add_file(struct scenario_list *list, const char *path, FILE *file)
{
    static struct scenario parsed[SCENARIOS_MAX];
    char error[600], *text = calloc(1, FILE_MOST + 1);
    if (!text) {
        complain("out of memory");
        return false;
    }
    bool whole = fread(text, 1, FILE_MOST, file) < FILE_MOST && !ferror(file);
    size_t count = whole ? scenarios_parse(text, parsed, SCENARIOS_MAX, error, sizeof error) : 0;
    if (!whole)
        complain("cannot read %s, or it is too long", path);
    else if (count == 0)
        complain("%s: %s", path, error);
    bool added = count > 0;
    for (size_t i = 0; i < count && added; i++)
        added = add(list, &parsed[i], path);
    free(text);
    return added;
}

bool scenario_list_add(struct scenario_list *list, const char *file_or_scenario)
{
    struct scenario scenario;
    char error[600];
    FILE *file = fopen(file_or_scenario, "re");
    if (file) {
        bool added = add_file(list, file_or_scenario, file);
        fclose(file);
        return added;
    }
    if (strchr(file_or_scenario, '/') || !strpbrk(file_or_scenario, " >")) {
        complain("%s: %s", file_or_scenario, strerror(errno));
        return false;
    }
    if (scenario_parse_short(file_or_scenario, &scenario, error, sizeof error))
        return add(list, &scenario, NULL);
    complain("--replay: %s", error);
    return false;
}

void scenario_list_free(struct scenario_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->item[i].source);
    free(list->item);
    *list = (struct scenario_list){0};
}

char *scenario_list_strategies(const struct scenario_list *list)
{
    char *names = NULL;
    size_t size;
    FILE *out = open_memstream(&names, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        fprintf(out, "%s%s", i ? "," : "", list->item[i].scenario.settings.strategy->name);
    if (fclose(out) == 0)
        return names;
    free(names);
    return NULL;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

/* The result of one scenario. */
struct result {
    char error[1800];  /* it could not be run */
    char not_met[300]; /* or not as expected */
    json_t *json;
};

/* The events, with what was sent if that was recorded. */
static json_t *steps_json(const struct execution *execution, const struct replay *replay)
{
    json_t *steps = events_json(execution, replay), *step;
    size_t i;
    json_array_foreach(steps, i, step)
        if (execution->settings.records)
            sent_set(execution, i, step);
    return steps;
}

static void run_one(struct campaign *campaign, const struct scenario *scenario, FILE *out,
                    struct result *result)
{
    struct replay replay;
    struct narration narration;
    char words[SCENARIO_TEXT];
    if (!replay_run(&campaign->execution, &scenario->script, &replay)) {
        snprintf(result->error, sizeof result->error, "%s", replay.error);
        return;
    }
    narrate(&campaign->execution, &replay, &narration);
    if (out) {
        narration_print(&campaign->execution, &narration, out);
        if (scenario->settings.records)
            sent_print(&campaign->execution, out);
        fprintf(out, "%s\n", narration.explanation);
    }
    scenario_met(scenario, &campaign->execution.ending, NULL, result->not_met, sizeof result->not_met);
    result->json = json_pack("{s:s, s:o, s:o, s:s}", "replay",
                             scenario_short(&scenario->settings, &scenario->script, words), "ending",
                             ending_json(&campaign->execution), "steps",
                             steps_json(&campaign->execution, &replay), "explanation", narration.explanation);
}

static void run_all(struct campaign *campaign, const struct scenario *scenario, FILE *out,
                    struct result *result)
{
    const struct totals *t = &campaign->totals;
    const struct campaign_limits everything = {.bound = NO_BOUND};
    if (!campaign_run(campaign, &everything, NULL, NULL) || !campaign->complete) {
        snprintf(result->error, sizeof result->error, "%s",
                 *campaign->error ? campaign->error : "interrupted");
        return;
    }
    if (out)
        fprintf(out,
                "%" PRIu64 " schedules: %" PRIu64 " oversold, %" PRIu64 " with an incorrect stock, %" PRIu64
                " undersold, %" PRIu64 " with a stuck lock\n",
                t->schedules, t->oversold, t->drifted, t->undersold, t->stuck);
    scenario_met(scenario, NULL, t, result->not_met, sizeof result->not_met);
    result->json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "strategy",
                             scenario->settings.strategy->name, "schedules", (json_int_t)t->schedules,
                             "oversold", (json_int_t)t->oversold, "drift", (json_int_t)t->drifted,
                             "undersold", (json_int_t)t->undersold, "stuck_locks", (json_int_t)t->stuck,
                             "witness", campaign_counterexample(campaign, 0));
}

static void print_title(const struct scenario_from *c, FILE *out)
{
    char words[SCENARIO_TEXT];
    if (c->source)
        fprintf(out, "%s\n", c->source);
    fprintf(out, "%s%s\n", scenario_short(&c->scenario.settings, &c->scenario.script, words),
            c->scenario.all ? "(all schedules)" : "");
}

/* Runs one scenario, appends its result, and returns an enum exit_status. */
static int run_scenario(const struct scenario_from *c, struct campaign *campaign,
                        struct product_schema *schema, const char *url, FILE *out, json_t *results)
{
    struct result result = {0};
    if (out)
        print_title(c, out);
    if (!campaign_open(campaign, schema, url, &c->scenario.settings)) {
        complain("%s", campaign->error);
        return ENDED_ENVIRONMENT;
    }
    (c->scenario.all ? run_all : run_one)(campaign, &c->scenario, out, &result);
    campaign_close(campaign);
    const char *wrong = *result.error ? result.error : result.not_met;
    if (out && *wrong)
        fprintf(out, "✗ %s\n\n", wrong);
    else if (out)
        fputs(c->scenario.expectation_count ? "✓ as expected\n\n" : "\n", out);
    if (!result.json)
        result.json = json_object();
    json_object_set_new(result.json, "source", c->source ? json_string(c->source) : json_null());
    json_object_set_new(result.json, "met", json_boolean(!*wrong));
    json_object_set_new(result.json, "error", *wrong ? json_string(wrong) : json_null());
    json_array_append_new(results, result.json);
    return *wrong ? ENDED_BROKEN : ENDED_AS_EXPECTED;
}

json_t *scenario_list_run(const struct scenario_list *list, struct product_schema *schema, const char *url,
                          FILE *out, int *ret_status)
{
    struct campaign *campaign = calloc(1, sizeof *campaign);
    json_t *results = json_array();
    *ret_status = ENDED_AS_EXPECTED;
    for (size_t i = 0; campaign && i < list->count && !interrupted() && !campaign->execution.lost; i++) {
        int status = run_scenario(&list->item[i], campaign, schema, url, out, results);
        if (status > *ret_status)
            *ret_status = status;
    }
    if (!campaign) {
        json_decref(results);
        results = NULL;
    }
    if (campaign && !campaign->execution.lost) /* threads that did not finish still use it */
        free(campaign);
    return results;
}
