/* One question of the step-through page: runs the schedule from a fresh state, adds one transition, and reports the state. So a
 * step back is a shorter schedule, and no order is held while people think. */
#include "loadtest/explore/serve/step_through.h"
#include "base/clock.h"
#include "base/text.h"

#include "loadtest/explore/exec/invariants.h"
#include "loadtest/explore/explain/explanation.h"
#include "loadtest/explore/explain/narration.h"
#include "loadtest/explore/run/explore_strategy.h"
#include "loadtest/explore/serve/state_json.h"
#include "loadtest/explore/spec/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    UNITS_MAX = 1000,
    SHORT_SEARCH_MS = 1500, /* all schedules of most strategies take less … */
    LONG_SEARCH_MS = 10000, /* … and of the others so much, where nothing bad was found by then */
    PING_US = 1000000,
};

/* ---- problems ------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static json_t *invalid(const char *format, ...)
{
    char detail[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return json_pack("{s:s, s:s}", "problem", "invalid-schedule", "detail", detail);
}

static json_t *unavailable(const char *backend, const char *detail)
{
    return json_pack("{s:s, s:s, s:s}", "problem", "backend-unavailable", "backend", backend, "detail",
                     detail);
}

/* A schedule could not run: is a server unavailable, or is the question wrong? */
static json_t *blame(struct stepper *stepper, const struct strategy *strategy, const char *error)
{
    struct product_audit audit;
    char why[200];
    if (!stepper->has_schema || !product_schema_audit(&stepper->schema, &audit))
        return unavailable("postgresql", *stepper->schema.error ? stepper->schema.error : error);
    const struct lock_server *server = strategy->lock ? strategy->lock->server : NULL;
    if (server && lock_ping(server, monotonic_us() + PING_US, why, sizeof why) != LOCK_OK)
        return unavailable(server->name, error);
    return invalid("%s", error);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static bool same_settings(const struct execution_settings *a, const struct execution_settings *b)
{
    return a->strategy == b->strategy && a->actors == b->actors && a->stock == b->stock &&
           memcmp(a->quantities, b->quantities, sizeof a->quantities) == 0;
}

static void close_execution(struct stepper *stepper)
{
    if (stepper->has_execution)
        execution_close(&stepper->execution);
    stepper->has_execution = false;
}

static bool open_schema(struct stepper *stepper)
{
    stepper->has_schema = stepper->has_schema || product_schema_open(stepper->url, &stepper->schema);
    return stepper->has_schema;
}

static bool open_execution(struct stepper *stepper, const struct execution_settings *settings)
{
    if (stepper->has_execution && same_settings(&stepper->execution.settings, settings))
        return true;
    close_execution(stepper);
    stepper->has_execution = open_schema(stepper) &&
                             execution_open(&stepper->execution, &stepper->schema, stepper->url, settings);
    return stepper->has_execution;
}

void stepper_close(struct stepper *stepper)
{
    close_execution(stepper);
    if (stepper->has_schema)
        product_schema_close(&stepper->schema);
    stepper->has_schema = false;
}

/* Reads the schedule, and refuses large ones. NULL, or the problem. */
static json_t *read_scenario(const json_t *question, struct scenario *ret_scenario)
{
    const char *text = json_string_value(json_object_get(question, "schedule"));
    char error[600];
    if (!text || !scenario_parse_short(text, ret_scenario, error, sizeof error))
        return invalid("%s", text ? error : "there is no schedule");
    struct execution_settings *settings = &ret_scenario->settings;
    bool too_many = settings->stock > UNITS_MAX;
    for (size_t i = 0; i < settings->actors; i++)
        too_many |= settings->quantities[i] > UNITS_MAX;
    if (too_many)
        return invalid("s= and q= are %d at most", UNITS_MAX);
    const char *why_not = explore_not_possible(settings->strategy);
    if (why_not)
        return invalid("%s: %s", settings->strategy->name, why_not);
    settings->faults = SHOWN_BY_EXPIRY | SHOWN_BY_CRASH; /* the page offers them as buttons */
    settings->follows_script = settings->records = true;
    return NULL;
}

/* ---- the next transition ----------------------------------------------------------------------------------------- */

/* Between a write and the insert of the order that follows, other orders see no difference: both count as one step. */
static bool goes_on(const struct execution *execution, unsigned actor)
{
    return execution_next_step(execution, actor, execution->trace.event_count) == STEP_INSERT;
}

/* Runs one step of the actor, or all that it can make. False, with REPLAY's error. */
static bool make_steps(struct execution *execution, uint8_t actor, bool to_end, bool every_step,
                       struct replay *replay)
{
    const struct transition step = {actor, TRANSITION_STEP};
    if (!replay_is_enabled(execution, step))
        return text_fail(replay->error, sizeof replay->error, "%c cannot continue here", actor_name(actor));
    do
        if (!replay_apply(execution, step, replay))
            return false;
    while ((to_end || (!every_step && goes_on(execution, actor))) && replay_is_enabled(execution, step));
    return true;
}

/* "A": one step; "A>end": as far as it gets; "A!expire" and the like: a fault. False, with REPLAY's error. */
static bool apply_transition(struct execution *execution, const char *word, bool every_step,
                             struct replay *replay)
{
    struct script script;
    char part[32], error[600];
    bool is_step = strlen(word) == 1, to_end = false;
    snprintf(part, sizeof part, is_step ? "%s>end" : "%s", word);
    if (strlen(word) >= sizeof part ||
        !script_parse(part, execution->settings.actors, &script, error, sizeof error) || script.count != 1 ||
        (script.parts[0].kind == TRANSITION_STEP && script.parts[0].stop != EVENT_ENDED) ||
        script.parts[0].waits)
        return text_fail(
            replay->error, sizeof replay->error,
            "'%.20s' is no move (an order, as A; or A>end, A!expire, A!crash, A!restart, A!cut, A!timeout)",
            word);
    to_end = !is_step;
    struct transition fault = {script.parts[0].actor, script.parts[0].kind};
    if (fault.kind == TRANSITION_STEP)
        return make_steps(execution, fault.actor, to_end, every_step, replay);
    if (replay_is_enabled(execution, fault))
        return replay_apply(execution, fault, replay);
    return text_fail(replay->error, sizeof replay->error, "that cannot happen to %c here",
                     actor_name(fault.actor));
}

/* ---- the state ------------------------------------------------------------------------------------------------ */

/* The result so far: an order that is committed counts as sold, whatever it does next. */
static void judge_so_far(struct execution *execution, const struct product_audit *audit)
{
    struct ending *ending = &execution->ending;
    int64_t stock = execution->settings.stock;
    *ending = (struct ending){.audit = *audit};
    ending->oversold = audit->sold > stock ? audit->sold - stock : 0;
    ending->drift = ending->oversold > 0 ? audit->sold - (stock - audit->left) : 0;
    for (size_t i = 0; i < execution->settings.actors; i++)
        ending->outcomes[i] = execution_has_reported(execution, i, STEP_COMMIT) ||
                                      execution_has_reported(execution, i, STEP_COMMIT_ORDER)
                                  ? ORDER_CREATED
                                  : ORDER_UNKNOWN;
}

/* Adds the result, or the result so far if not OVER. The execution has ended. */
static void add_ending(struct execution *execution, const struct database_view *view, bool over,
                       json_t *state)
{
    char why[700] = "";
    if (!over)
        judge_so_far(execution, &view->audit);
    bool bad = over ? ending_is_bad(&execution->ending) : execution->ending.oversold > 0;
    if (over || bad)
        explain_execution(execution, why, sizeof why);
    json_object_set_new(state, "oversold", json_integer((json_int_t)execution->ending.oversold));
    json_object_set_new(state, "bad", json_boolean(bad));
    json_object_set_new(state, "ending", over ? ending_json(execution) : json_null());
    json_object_set_new(state, "explanation", *why ? json_string(why) : json_null());
}

static json_t *answer_state(struct stepper *stepper, const struct scenario *scenario, const json_t *question,
                            bool *ret_broken)
{
    static struct replay replay;
    struct database_view view;
    struct execution *execution = &stepper->execution;
    const char *word = json_string_value(json_object_get(question, "move"));
    bool every_step = json_is_true(json_object_get(question, "every_step")), over = false;
    const struct strategy *strategy = scenario->settings.strategy;
    *ret_broken = true;
    if (!open_execution(stepper, &scenario->settings))
        return blame(stepper, strategy, execution->error);
    if (!replay_follow(execution, &scenario->script, &replay)) {
        *ret_broken = *execution->error;
        return *execution->error ? blame(stepper, strategy, execution->error) : invalid("%s", replay.error);
    }
    bool moved = !word || apply_transition(execution, word, every_step, &replay);
    json_t *state = moved && database_view_read(execution, &view)
                        ? state_json(execution, &replay, &view, &over)
                        : NULL;
    *ret_broken = !execution_end(execution) || *execution->error;
    if (state && !*ret_broken) {
        add_ending(execution, &view, over, state);
        return state;
    }
    json_decref(state);
    return *ret_broken ? blame(stepper, strategy, execution->error)
           : moved     ? NULL
                       : invalid("%s", replay.error);
}

/* ---- the search ----------------------------------------------------------------------------------------------- */

static bool settles_it(const json_t *row)
{
    return !row || json_is_true(json_object_get(row, "complete")) ||
           json_is_object(json_object_get(row, "witness")) || json_object_get(row, "reason");
}

static json_t *answer_search(struct stepper *stepper, const struct execution_settings *settings,
                             const char *faults, bool *ret_broken)
{
    struct explore_plan plan = {.actors = (int64_t)settings->actors,
                                .stock = settings->stock,
                                .faults = strcmp(faults, "expire") == 0  ? SHOWN_BY_EXPIRY
                                          : strcmp(faults, "crash") == 0 ? SHOWN_BY_CRASH
                                                                         : 0,
                                .limits = {.bound = NO_BOUND, .time_ms = SHORT_SEARCH_MS, .seed = 1}};
    memcpy(plan.quantities, settings->quantities, sizeof plan.quantities);
    if (plan.actors > 2 || plan.faults)
        plan.limits.bound = DEPTH_MAX; /* there may be too many for all, so the simplest first */
    *ret_broken = true;
    close_execution(stepper);
    if (!open_schema(stepper))
        return blame(stepper, settings->strategy, stepper->schema.error);
    json_t *row = explore_strategy(&plan, settings->strategy, &stepper->schema, stepper->url, NULL, NULL);
    if (!settles_it(row)) {
        json_decref(row);
        plan.limits.time_ms = LONG_SEARCH_MS;
        row = explore_strategy(&plan, settings->strategy, &stepper->schema, stepper->url, NULL, NULL);
    }
    const char *reason = json_string_value(json_object_get(row, "reason"));
    *ret_broken = !row || reason;
    json_t *problem = reason ? blame(stepper, settings->strategy, reason) : NULL;
    if (!problem)
        return row;
    json_decref(row);
    return problem;
}

json_t *stepper_answer(struct stepper *stepper, const json_t *question, bool *ret_broken)
{
    static struct scenario scenario;
    const char *faults = json_string_value(json_object_get(question, "faults"));
    *ret_broken = false;
    json_t *problem = read_scenario(question, &scenario);
    if (problem)
        return problem;
    return faults ? answer_search(stepper, &scenario.settings, faults, ret_broken)
                  : answer_state(stepper, &scenario, question, ret_broken);
}
