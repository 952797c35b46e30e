/* The explorer's own commands to the Redis of a user's service, over a connection that does not pass the gate. */
#ifndef OVERSELL_LOADTEST_OWN_REDIS_REDIS_CONTROL_H
#define OVERSELL_LOADTEST_OWN_REDIS_REDIS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread at a time. */
struct redis_control;

enum redis_key_state {
    REDIS_KEY_NONE,
    REDIS_KEY_STAYS, /* it has no expiry */
    REDIS_KEY_EXPIRES,
};

/* Connects to the server at URL. NULL; then RET_WHY of SIZE bytes says what is wrong, as a part of a sentence. */
struct redis_control *redis_control_open(const char *url, char *ret_why, size_t size);
/* NULL is allowed. */
void redis_control_close(struct redis_control *control);

/* Each of these waits 5 s at most, and returns false having said why on stderr. */

/* Removes all keys of the server. */
bool redis_control_flush(struct redis_control *control);
bool redis_control_key(struct redis_control *control, const char *key, enum redis_key_state *ret_state);
bool redis_control_delete(struct redis_control *control, const char *key);
/* A number that is another one after each command that changes data. */
bool redis_control_changes(struct redis_control *control, int64_t *ret_changes);
/* Does the command of the connection that comes from PORT of this machine wait for another command, as BLPOP does? */
bool redis_control_waits(struct redis_control *control, unsigned port, bool *ret_waits);

#endif
