/* Statements that a request sends at the same time over several connections, and the one of them at which it counts as held. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/sql/statement_words.h"

#include <stdio.h>
#include <string.h>

enum {
    WATCH_US = 50000, /* for another statement of a request that is held */
    NEXT_US =
        30000, /* for the next statement of a request that has got an answer, if it has sent another one before */
};

/* Adds a shape to a group, which can have several of the same. */
static void add_shape(struct statement_group *group, uint64_t shape)
{
    if (group->count < GROUP_MAX)
        group->shapes[group->count++] = shape;
}

void runner_watch_actor(struct request_runner *runner, const struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    int64_t until_us = monotonic_us() + WATCH_US;
    char text[MESSAGE_TEXT]; /* a copy: the program can close the connection meanwhile */
    snprintf(text, sizeof text, "%s", gate_connection(gate, actor->at)->text);
    /* What comes now follows from the answer to another one, and choose_one waits for that. */
    bool is_new = gate_connection(gate, actor->at)->claim == GATE_NO_OWNER;
    struct statement_group group = {.shapes = {sql_shape(0, text)}, .count = 1};
    while (runner->group_count < GROUPS_MAX && monotonic_us() < until_us && !interrupted()) {
        for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
            struct gate_connection *connection = gate_connection(gate, i);
            /* What is claimed has come with an earlier statement. */
            if (i == actor->at || !connection->used || !connection->held ||
                connection->claim != GATE_NO_OWNER)
                continue;
            if (connection->trivial) {
                gate_release(gate, i);
                continue;
            }
            connection->claim = (int)actor->number;
            add_shape(&group, sql_shape(0, connection->text));
            if (!*runner->at_once)
                snprintf(runner->at_once, sizeof runner->at_once, "'%.150s' and '%.150s'", text,
                         connection->text);
        }
        gate_wait(gate, until_us);
    }
    if (group.count > 1 && is_new)
        runner->groups[runner->group_count++] = group;
}

/* Notes that ACTOR has sent a statement of SHAPE, when SAME of this shape are held in addition to it. True if others of its group are to come. */
static bool waits_for_group(const struct request_runner *runner, struct actor *actor, uint64_t shape,
                            unsigned same)
{
    bool waits = false;
    for (size_t g = 0; g < runner->group_count; g++) {
        unsigned nth = 0;
        for (unsigned i = 0; i < runner->groups[g].count; i++)
            if (runner->groups[g].shapes[i] == shape && nth++ == same)
                actor->met[g] |= 1U << i;
        waits |= nth > 0 && actor->met[g] != (1U << runner->groups[g].count) - 1;
    }
    return waits;
}

/* A group whose statements have all come can be sent once more when none of them is held. */
static void forget_groups(const struct request_runner *runner, struct actor *actor)
{
    for (size_t g = 0; g < runner->group_count; g++)
        if (actor->met[g] == (1U << runner->groups[g].count) - 1)
            actor->met[g] = 0;
}

void runner_choose_one(struct request_runner *runner, struct actor *actor)
{
    struct gate *gate = runner->settings.gate;
    int64_t until_us = monotonic_us() + (runner->quiet_us > 0 ? runner->quiet_us : QUIET_LEAST_US);
    int64_t next_us = monotonic_us() + NEXT_US;
    uint64_t shapes[GATE_CONNECTIONS];
    size_t held = 0;
    bool
        is_first = true,
        has_old =
            false; /* HAS_OLD: one that was held already while another one ran, whose answer brings the next one */
    for (bool waits = true; waits && monotonic_us() < until_us && !interrupted();) {
        waits = has_old && monotonic_us() < next_us;
        held = 0;
        for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
            struct gate_connection *connection = gate_connection(gate, i);
            if (!connection->used || !connection->held || runner_is_taken(runner, actor, i) ||
                runner_is_late(runner, connection))
                continue;
            connection->owner = (int)actor->number;
            if (connection->trivial) {
                gate_release(gate, i);
                continue;
            }
            has_old |= is_first && connection->claim == (int)actor->number;
            waits |= is_first && has_old;
            connection->claim = (int)actor->number;
            unsigned same = 0;
            shapes[held] = sql_shape(0, connection->text);
            for (size_t k = 0; k < held; k++)
                same += shapes[k] == shapes[held];
            waits |= waits_for_group(runner, actor, shapes[held++], same);
        }
        is_first = false;
        if (waits)
            gate_wait(gate, monotonic_us() + LOOK_US);
    }
    for (size_t i = 0; i < GATE_CONNECTIONS; i++) {
        const struct gate_connection *connection = gate_connection(gate, i);
        if (connection->used && connection->held && connection->claim == (int)actor->number &&
            strcmp(connection->text, gate_connection(gate, actor->at)->text) < 0)
            actor->at = i;
    }
    if (held <= 1)
        forget_groups(runner, actor);
}
