/* Turns the words of a script into transitions: an actor steps until it has reported the step that the word names. And back. */
#include "loadtest/explore/exec/replay.h"

#include <stdio.h>
#include <string.h>

/* ---- from a script to transitions -------------------------------------------------------------------------------- */

#define fail(replay, ...) text_fail((replay)->error, sizeof(replay)->error, __VA_ARGS__)

bool replay_apply(struct execution *execution, struct transition transition, struct replay *replay)
{
    int64_t stock;
    if (!execution_apply(execution, transition) || !execution_read_stock(execution, &stock))
        return fail(replay, "%s", execution->error);
    replay->stock[execution->transition_count - 1] = stock;
    return true;
}

bool replay_is_enabled(struct execution *execution, struct transition wanted)
{
    struct transition transitions[ENABLED_MAX];
    return transition_is_among(transitions, execution_enabled(execution, transitions), wanted);
}

static bool has_reported(const struct execution *execution, size_t since, unsigned actor, uint8_t what)
{
    return trace_last(&execution->trace, since, actor, what) != NO_EVENT;
}

static const char *last_report(const struct execution *execution, unsigned actor)
{
    for (size_t i = execution->trace.event_count; i > 0; i--)
        if (execution->trace.events[i - 1].actor == actor &&
            execution->trace.events[i - 1].what != EVENT_WAITS)
            return stop_name(execution->trace.events[i - 1].what);
    return "nothing";
}

/* Runs one word. SINCE: the number of events when the actor's last word had been run. */
static bool follow(struct execution *execution, const struct script_part *part, size_t since,
                   struct replay *replay)
{
    char name = actor_name(part->actor);
    struct transition step = {part->actor, part->kind};
    if (part->kind != TRANSITION_STEP)
        return replay_is_enabled(execution, step) ? replay_apply(execution, step, replay)
                                                  : fail(replay, "that cannot happen to %c here", name);
    /* What it waited for may have happened meanwhile: then no step is needed. */
    while (!has_reported(execution, since, part->actor, part->stop)) {
        size_t before = execution->trace.event_count;
        if (has_reported(execution, since, part->actor, EVENT_ENDED))
            return fail(replay, "%c ended (%s) before its '%s'", name,
                        outcome_name(execution->actors[part->actor].placing.result.outcome),
                        stop_name(part->stop));
        if (!replay_is_enabled(execution, step))
            return fail(replay, "%c waits before its '%s', and cannot continue", name, stop_name(part->stop));
        if (!replay_apply(execution, step, replay))
            return false;
        if (part->waits && has_reported(execution, before, part->actor, EVENT_WAITS))
            return true;
    }
    return !part->waits ||
           fail(replay, "%c was to wait before its '%s', and did not", name, stop_name(part->stop));
}

static bool run_to_the_end(struct execution *execution, struct replay *replay)
{
    struct transition transitions[ENABLED_MAX];
    size_t count;
    while ((count = execution_enabled(execution, transitions)) > 0) {
        size_t i = 0;
        while (i < count && transitions[i].kind != TRANSITION_STEP)
            i++;
        if (i == count)
            break;
        if (!replay_apply(execution, transitions[i], replay))
            return false;
    }
    return true;
}

bool replay_follow(struct execution *execution, const struct script *script, struct replay *ret_replay)
{
    size_t since[ACTORS_MAX] = {0};
    *ret_replay = (struct replay){0};
    if (!execution_start(execution))
        return fail(ret_replay, "%s", execution->error);
    bool followed = true;
    for (size_t i = 0; followed && i < script->count; i++) {
        const struct script_part *part = &script->parts[i];
        followed = follow(execution, part, since[part->actor], ret_replay);
        if (followed)
            since[part->actor] = execution->trace.event_count;
        else if (i > 0 || *last_report(execution, part->actor))
            snprintf(ret_replay->error + strlen(ret_replay->error),
                     sizeof ret_replay->error - strlen(ret_replay->error),
                     " (word %zu; its last step was: %s)", i + 1, last_report(execution, part->actor));
    }
    if (!followed && !execution_end(execution))
        return fail(ret_replay, "%s", execution->error);
    return followed;
}

bool replay_run(struct execution *execution, const struct script *script, struct replay *ret_replay)
{
    if (!replay_follow(execution, script, ret_replay))
        return false;
    bool ran = run_to_the_end(execution, ret_replay);
    if (!execution_end(execution))
        return fail(ret_replay, "%s", execution->error);
    return ran;
}

/* ---- from transitions to a script -------------------------------------------------------------------------------- */

/* The word for a transition with the events from BEGIN to END: its actor's last event names the stop. */
static struct script_part part_of_transition(const struct execution *execution, struct transition transition,
                                             size_t begin, size_t end)
{
    struct script_part part = {.actor = transition.actor, .kind = transition.kind, .stop = EVENT_ENDED};
    for (size_t i = begin; i < end; i++) {
        const struct event *event = &execution->trace.events[i];
        if (event->actor != transition.actor)
            continue;
        part.waits = event->what == EVENT_WAITS;
        part.stop = part.waits ? execution_next_step(execution, transition.actor, i) : event->what;
    }
    return part;
}

void script_of_execution(const struct execution *execution, struct script *ret_script)
{
    size_t group = 0; /* the first event of the transitions that the last word stands for */
    *ret_script = (struct script){0};
    for (size_t i = 0; i < execution->transition_count; i++) {
        struct transition transition = execution->transitions[i];
        size_t begin = i ? execution->transition_ends[i - 1] : 0;
        struct script_part part = part_of_transition(execution, transition, begin,
                                                     execution->transition_ends[i]);
        struct script_part *last = ret_script->count ? &ret_script->parts[ret_script->count - 1] : NULL;
        bool goes_on = last && last->kind == TRANSITION_STEP && transition.kind == TRANSITION_STEP &&
                       last->actor == transition.actor && !last->waits;
        /* A word stops at the first step of its name: a second one needs a second word. */
        for (size_t e = group; goes_on && e < begin; e++)
            goes_on = execution->trace.events[e].actor != transition.actor ||
                      execution->trace.events[e].what != part.stop;
        if (goes_on) {
            *last = part;
        } else {
            script_add(ret_script, part);
            group = begin;
        }
    }
}
