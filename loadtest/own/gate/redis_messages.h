/* Reads messages of RESP, the protocol of Redis, in its versions 2 and 3, as redis.io describes it. Pure: no I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_OWN_GATE_REDIS_MESSAGES_H
#define OVERSELL_LOADTEST_OWN_GATE_REDIS_MESSAGES_H

#include "loadtest/own/gate/wire_protocol.h"

enum {
    REDIS_WORDS_KEPT = 64,      /* of a command; it may have more */
    REDIS_WORDS_MOST = 1 << 20, /* what Redis accepts as well */
    REDIS_NESTING_MAX = 32,     /* of a reply */
    REDIS_INLINE_MAX = 65536,   /* bytes of an inline command */
};

struct redis_word {
    const char *bytes; /* in the message */
    size_t length;
};

/* The words of a command, the name first. */
struct redis_command {
    size_t count; /* 0: Redis ignores it, and does not answer */
    struct redis_word words[REDIS_WORDS_KEPT];
};

/* Reads the command that begins at BYTES, of which COUNT are there: an array of bulk strings, or an inline command. Returns its length;
 * 0: it is not complete; MESSAGE_WRONG: it is no command, or longer than MESSAGE_MAX. */
size_t redis_command_read(const char *bytes, size_t count, struct redis_command *ret_command);
/* Word I is NAME, in capital or small letters. */
bool redis_word_is(const struct redis_command *command, size_t i, const char *name);
/* The name is one of NAMES, which NULL ends. */
bool redis_command_is(const struct redis_command *command, const char *const *names);
/* Appends the command to TEXT; long words are shortened. */
void redis_describe_command(const struct redis_command *command, char *text);

/* The keys of a command: those of a script, of DEL, UNLINK, EXISTS, TOUCH, WATCH and the blocking pops; else its first argument. */
struct redis_keys {
    size_t first, count; /* words */
};
struct redis_keys redis_keys_of(const struct redis_command *command);
/* Can the command take a lock? SET with NX, SETNX, a hash, a script, or an expiry for one of them. */
bool redis_may_lock(const struct redis_command *command);

/* The length of the reply that begins at BYTES; 0 and MESSAGE_WRONG as above. */
size_t redis_reply_length(const char *bytes, size_t count);
/* Each takes a complete reply. */
bool redis_is_push(const char *bytes);
/* A confirmation of UNSUBSCRIBE and the like that ends the last subscription of the connection. */
bool redis_ends_subscriptions(const char *bytes, size_t length);
/* Appends the reply on one line: OK, nil, 12, [a, b], error: ERR … */
void redis_describe_reply(const char *bytes, size_t length, char *text);

#endif
