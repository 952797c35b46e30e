/* Tracks what the requests do in Redis: which request holds which key, and which one repeats a command without success. */
#include "loadtest/own/schedules/request_runner_impl.h"

#include "loadtest/cli/complain.h"

#include <stdio.h>

enum { TRIES_MOST = 5 }; /* of commands that change nothing, when nothing else can happen */

bool runner_empty_redis(struct request_runner *runner)
{
    struct redis_control *redis = runner->settings.redis;
    runner->held.count = 0;
    runner->repeats = (struct idle_repeats){0};
    runner->tries = 0;
    return !redis || ((!runner->settings.redis_is_ours || redis_control_flush(redis)) &&
                      redis_control_changes(redis, &runner->changes));
}

/* ACTOR's command, of which CONNECTION is a copy, has ended. */
bool runner_note_command(struct request_runner *runner, const struct actor *actor,
                         const struct gate_connection *command)
{
    struct redis_control *redis = runner->settings.redis;
    int64_t before = runner->changes;
    if (!held_keys_update(&runner->held, redis, actor->number, command->keys, command->may_lock,
                          runner->settings.expire_key) ||
        !redis_control_changes(redis, &runner->changes))
        return false;
    idle_repeats_ended(&runner->repeats, actor->number, idle_repeats_command(command->text, command->keys),
                       command->may_lock, before != runner->changes);
    return true;
}

/* It is about to repeat a command in vain. With the gate's lock. */
bool runner_repeats_idly(const struct request_runner *runner, const struct actor *actor)
{
    if (actor->state != REQUEST_HELD || actor->at == NOWHERE)
        return false;
    const struct gate_connection *connection = gate_connection(runner->settings.gate, actor->at);
    return connection->server == RUNS_REDIS &&
           idle_repeats_is(&runner->repeats, actor->number,
                           idle_repeats_command(connection->text, connection->keys));
}

void runner_note_repeats(struct request_runner *runner)
{
    struct run_record *record = &runner->record;
    for (size_t i = 0; i < runner->settings.requests && !*record->repeated; i++)
        if (runner_repeats_idly(runner, &runner->actors[i]))
            snprintf(record->repeated, sizeof record->repeated, "%s",
                     gate_connection(runner->settings.gate, runner->actors[i].at)->text);
}

/* The keys that ACTOR holds in Redis end. With the gate's lock, which is not held while Redis is asked. */
bool runner_end_keys(struct request_runner *runner, const struct actor *actor, char *ret_text)
{
    gate_unlock(runner->settings.gate);
    snprintf(ret_text, MESSAGE_TEXT, "(fault: the key expires) ");
    bool ok = held_keys_end(&runner->held, runner->settings.redis, actor->number, ret_text) &&
              redis_control_changes(runner->settings.redis, &runner->changes);
    idle_repeats_changed(&runner->repeats);
    gate_lock(runner->settings.gate);
    return ok;
}

/* If all that is left repeats commands in vain, time passes: what expires in Redis does so. If nothing does, the requests try again, but
 * not for ever. */
bool runner_pass_time(struct request_runner *runner)
{
    bool repeats = false, polls = false, expired = false;
    for (size_t i = 0; i < runner->settings.requests; i++) {
        const bool repeats_this = runner_repeats_idly(runner, &runner->actors[i]),
                   polls_this = runner_polls(runner, &runner->actors[i]) != 0;
        if (runner->actors[i].state == REQUEST_HELD && !repeats_this && !polls_this)
            return true;
        repeats |= repeats_this;
        polls |= polls_this;
    }
    for (size_t i = 0; i < runner->settings.requests && repeats; i++) {
        struct run_step *step = NULL;
        if (!held_keys_has(&runner->held, (unsigned)i, NULL))
            continue;
        step = runner_add_step(runner, (unsigned)i, TRANSITION_EXPIRE);
        if (!step || !runner_end_keys(runner, &runner->actors[i], step->text))
            return false;
        expired = true;
    }
    if (repeats && !expired && runner->tries++ < TRIES_MOST)
        idle_repeats_changed(&runner->repeats);
    return !polls || repeats || runner_pass_time_sql(runner);
}
