/* Recognizes a request that repeats a command to Redis which changes nothing. */
#include "loadtest/own/redis/idle_repeats.h"

#include "base/hash.h"

#include <string.h>

enum { READS_MOST = 3 };

static uint64_t others_changes(const struct idle_repeats *repeats, unsigned actor)
{
    return repeats->changes - repeats->own[actor];
}

uint64_t idle_repeats_command(const char *text, const char *keys)
{
    uint64_t hash = hash_add(HASH_OF_NOTHING, text, strcspn(text, " "));
    for (const char *key = keys; *key; key += strlen(key) + 1)
        hash = hash_add(hash, key, strlen(key) + 1);
    return hash ? hash : 1;
}

void idle_repeats_ended(struct idle_repeats *repeats, unsigned actor, uint64_t command, bool may_lock,
                        bool changed)
{
    bool is_current = repeats->last[actor].others == others_changes(repeats, actor);
    bool is_same = is_current && repeats->last[actor].command == command;
    if (changed) {
        repeats->changes++;
        repeats->own[actor]++;
        if (repeats->last[actor].command == command)
            repeats->last[actor].command = 0;
        return;
    }
    /* What reads does not hide an earlier try to take a lock. */
    if (!may_lock && !is_same && is_current && repeats->last[actor].times >= READS_MOST)
        return;
    repeats->last[actor].times = may_lock ? READS_MOST : is_same ? repeats->last[actor].times + 1 : 1;
    repeats->last[actor].command = command;
    repeats->last[actor].others = others_changes(repeats, actor);
}

void idle_repeats_changed(struct idle_repeats *repeats)
{
    repeats->changes++;
}

bool idle_repeats_is(const struct idle_repeats *repeats, unsigned actor, uint64_t command)
{
    return repeats->last[actor].command == command && repeats->last[actor].times >= READS_MOST &&
           repeats->last[actor].others == others_changes(repeats, actor);
}
