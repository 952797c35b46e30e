/* Which request holds which key in Redis as a lock. A key is a lock if a command that can take one made it, and it expires; or if its name
 * fits a pattern. The request whose command made it holds it until it is gone. */
#ifndef OVERSELL_LOADTEST_OWN_REDIS_HELD_KEYS_H
#define OVERSELL_LOADTEST_OWN_REDIS_HELD_KEYS_H

#include "loadtest/own/gate/wire_protocol.h"
#include "loadtest/own/redis/redis_control.h"

enum { HELD_KEYS_MAX = 16 }; /* more locks are not noticed */

struct held_keys {
    struct {
        char key[MESSAGE_KEYS];
        unsigned actor;
    } item[HELD_KEYS_MAX];
    size_t count;
};

/* ACTOR's command with KEYS, as struct gate_connection has them, has ended. MAY_LOCK: it can take a lock. PATTERN, as fnmatch has it, or
 * NULL. False, having said why on stderr. */
bool held_keys_update(struct held_keys *held, struct redis_control *control, unsigned actor, const char *keys,
                      bool may_lock, const char *pattern);
/* ACTOR holds one of KEYS; NULL: any. */
bool held_keys_has(const struct held_keys *held, unsigned actor, const char *keys);
/* The keys of ACTOR end, and their names, with blanks between, are appended to RET_NAMES of MESSAGE_TEXT bytes. */
bool held_keys_end(struct held_keys *held, struct redis_control *control, unsigned actor, char *ret_names);

#endif
