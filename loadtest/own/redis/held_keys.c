/* Which request holds which key in Redis as a lock. */
#include "loadtest/own/redis/held_keys.h"

#include "loadtest/own/gate/message_text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static size_t find(const struct held_keys *held, const char *key)
{
    size_t i = 0;
    while (i < held->count && strcmp(held->item[i].key, key) != 0)
        i++;
    return i;
}

static void remove_item(struct held_keys *held, size_t i)
{
    held->item[i] = held->item[--held->count];
}

bool held_keys_update(struct held_keys *held, struct redis_control *control, unsigned actor, const char *keys,
                      bool may_lock, const char *pattern)
{
    for (const char *key = keys; *key; key += strlen(key) + 1) {
        size_t i = find(held, key);
        bool fits = pattern ? fnmatch(pattern, key, 0) == 0 : may_lock;
        enum redis_key_state state;
        if (i == held->count && !fits)
            continue;
        if (!redis_control_key(control, key, &state))
            return false;
        bool is_lock = pattern ? state != REDIS_KEY_NONE : state == REDIS_KEY_EXPIRES;
        if (i < held->count && state == REDIS_KEY_NONE) {
            remove_item(held, i);
        } else if (i == held->count && is_lock && held->count < HELD_KEYS_MAX) {
            snprintf(held->item[i].key, sizeof held->item[i].key, "%s", key);
            held->item[i].actor = actor;
            held->count++;
        }
    }
    return true;
}

bool held_keys_has(const struct held_keys *held, unsigned actor, const char *keys)
{
    for (size_t i = 0; i < held->count; i++) {
        bool is_named = !keys;
        for (const char *key = keys; !is_named && *key; key += strlen(key) + 1)
            is_named = strcmp(held->item[i].key, key) == 0;
        if (is_named && held->item[i].actor == actor)
            return true;
    }
    return false;
}

bool held_keys_end(struct held_keys *held, struct redis_control *control, unsigned actor, char *ret_names)
{
    for (size_t i = held->count; i-- > 0;) {
        if (held->item[i].actor != actor)
            continue;
        if (!redis_control_delete(control, held->item[i].key))
            return false;
        message_append_text(ret_names, *ret_names ? " " : "");
        message_append_text(ret_names, held->item[i].key);
        remove_item(held, i);
    }
    return true;
}
