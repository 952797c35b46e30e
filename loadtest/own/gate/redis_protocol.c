/* RESP for the gate: each command that reads or writes data is a unit, and its reply ends it. Commands that set up a connection pass, and so
 * does what MULTI queues: EXEC is the unit. A connection that listens to channels passes as a whole. */
#include "loadtest/own/gate/message_text.h"
#include "loadtest/own/gate/redis_messages.h"

#include <ctype.h>
#include <string.h>

enum { TLS_HANDSHAKE = 0x16 };

struct redis_state {
    uint64_t sent, answered; /* units whose replies are counted */
    uint64_t held;           /* number of the last unit that was held, from 1 */
    bool listens;            /* RESP2: the connection gets messages, not replies */
    bool resp3;              /* messages differ from replies, so both can come */
    bool queues;             /* between MULTI and EXEC */
    bool remembers;          /* Redis keeps a MULTI or WATCH once it has answered the held unit */
    /* Of what is queued. */
    char text[MESSAGE_TEXT], shape[MESSAGE_TEXT], keys[MESSAGE_KEYS];
    bool may_lock;
};

/* ---- what a command is ---------------------------------------------------------------------------------------------------- */

static const char *const SET_UP[] = {"AUTH",     "HELLO",     "CLIENT",   "SELECT",  "PING",    "ECHO",
                                     "QUIT",     "RESET",     "INFO",     "COMMAND", "CONFIG",  "CLUSTER",
                                     "ROLE",     "TIME",      "LASTSAVE", "SCRIPT",  "DISCARD", "UNWATCH",
                                     "READONLY", "READWRITE", "ASKING",   "ACL",     "LATENCY", "SLOWLOG",
                                     "MODULE",   "FUNCTION",  "LOLWUT",   "MEMORY",  "MULTI",   NULL};
static const char *const LISTENS[] = {"SUBSCRIBE",    "PSUBSCRIBE",   "SSUBSCRIBE", "UNSUBSCRIBE",
                                      "PUNSUBSCRIBE", "SUNSUBSCRIBE", NULL};
static const char *const MONITORS[] = {"MONITOR", "SYNC", "PSYNC", NULL};
static const char *const WAITS[] = {"BLPOP",    "BRPOP",  "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN",
                                    "BZPOPMAX", "BZMPOP", "WAIT",   "WAITAOF",    NULL};
static const char *const READS_STREAM[] = {"XREAD", "XREADGROUP", NULL};

static bool may_wait(const struct redis_command *command)
{
    if (redis_command_is(command, WAITS))
        return true;
    for (size_t i = 1; redis_command_is(command, READS_STREAM) && i < command->count; i++)
        if (redis_word_is(command, i, "BLOCK"))
            return true;
    return false;
}

/* ---- describing -------------------------------------------------------------------------------------------------------------- */

static void add_key(char *keys, const struct redis_word *word)
{
    size_t used = 0;
    while (keys[used])
        used += strlen(keys + used) + 1;
    if (word->length == 0 || memchr(word->bytes, '\0', word->length) ||
        used + word->length + 2 > MESSAGE_KEYS)
        return;
    memcpy(keys + used, word->bytes, word->length);
    keys[used + word->length] = keys[used + word->length + 1] = '\0';
}

static bool is_part_of_identifier(char byte)
{
    return isalnum((unsigned char)byte) || byte == '-' || byte == '_';
}

/* Leaves out what has a digit between the marks of a key: a number, a UUID or a token. */
static void add_shape_of_key(char *shape, const struct redis_word *word)
{
    message_append_text(shape, " ");
    for (size_t at = 0, size; at < word->length; at += size) {
        bool has_digit = false;
        for (size = 0; at + size < word->length && is_part_of_identifier(word->bytes[at + size]); size++)
            has_digit |= isdigit((unsigned char)word->bytes[at + size]) != 0;
        size = size ? size : 1;
        if (!has_digit)
            message_append(shape, word->bytes + at, size);
    }
}

static void add_command(const struct redis_command *command, char *text, char *shape, char *keys)
{
    const struct redis_keys which = redis_keys_of(command);
    redis_describe_command(command, text);
    message_append(shape, command->words[0].bytes, command->words[0].length);
    for (size_t i = 0; i < which.count; i++) {
        add_key(keys, &command->words[which.first + i]);
        add_shape_of_key(shape, &command->words[which.first + i]);
    }
}

static void queue(struct redis_state *state, const struct redis_command *command)
{
    add_command(command, state->text, state->shape, state->keys);
    message_append_text(state->text, "; ");
    message_append_text(state->shape, "; ");
    state->may_lock |= redis_may_lock(command);
}

static void begin_queue(struct redis_state *state, bool queues)
{
    state->queues = queues;
    state->text[0] = state->shape[0] = state->keys[0] = state->keys[1] = '\0';
    state->may_lock = false;
    if (queues)
        message_append_text(state->text, "MULTI; ");
}

static void describe(struct redis_state *state, const struct redis_command *command,
                     struct gate_connection *seen)
{
    if (!state->queues)
        begin_queue(state, false);
    add_command(command, state->text, state->shape, state->keys);
    memcpy(seen->text, state->text, sizeof seen->text);
    memcpy(seen->shape, state->shape, sizeof seen->shape);
    memcpy(seen->keys, state->keys, sizeof seen->keys);
    seen->may_lock = state->may_lock || redis_may_lock(command);
    seen->may_wait = !state->queues && may_wait(command);
    state->remembers = redis_word_is(command, 0, "WATCH") ||
                       (seen->remembers && !redis_word_is(command, 0, "EXEC"));
    begin_queue(state, false);
}

/* ---- the service's commands ------------------------------------------------------------------------------------------------------ */

/* The connection changes how it works: then what was sent before must have its replies. */
static bool changes_mode(const struct redis_state *state, const struct redis_command *command)
{
    return redis_command_is(command, MONITORS) || (!state->resp3 && redis_command_is(command, LISTENS));
}

/* A command that is not held. True: Redis replies to it. */
static bool pass(struct redis_state *state, struct gate_connection *seen, const struct redis_command *command)
{
    if (changes_mode(state, command)) {
        state->listens = true;
        return false;
    }
    if (redis_command_is(command, LISTENS))
        return false;
    if (redis_word_is(command, 0, "MULTI")) {
        begin_queue(state, true);
        seen->remembers = true;
    } else if (redis_word_is(command, 0, "DISCARD")) {
        begin_queue(state, false);
        seen->remembers = false;
    } else if (redis_word_is(command, 0, "RESET")) {
        *state = (struct redis_state){.sent = state->sent, .answered = state->answered, .held = state->held};
        seen->remembers = false;
    } else if (state->queues) {
        queue(state, command);
    } else if (redis_word_is(command, 0, "UNWATCH")) {
        seen->remembers = false;
    }
    return true;
}

static const char *problem_of(const struct redis_state *state, const char *bytes,
                              const struct redis_command *command)
{
    if (state->sent == 0 && *bytes == TLS_HANDSHAKE)
        return "the service uses TLS to connect to the gate in front of Redis, and the gate has no TLS. Connect to "
               "{redis} as redis://, without TLS";
    if (redis_word_is(command, 0, "CLIENT") && redis_word_is(command, 1, "REPLY") &&
        !redis_word_is(command, 2, "ON"))
        return "the service sends CLIENT REPLY to Redis, so the gate cannot see when a command has ended. Turn it off";
    return NULL;
}

static struct wire_unit next_unit(void *context, struct gate_connection *seen, const char *bytes,
                                  size_t count)
{
    struct redis_state *state = context;
    struct redis_command command = {0};
    if (state->listens)
        return (struct wire_unit){.length = count, .way = UNIT_PASSES};
    bool is_tls = state->sent == 0 && *bytes == TLS_HANDSHAKE;
    size_t length = is_tls ? count : redis_command_read(bytes, count, &command);
    if (length == 0 || length == MESSAGE_WRONG)
        return (struct wire_unit){.length = length};
    seen->problem = problem_of(state, bytes, &command);
    if (seen->problem)
        return (struct wire_unit){.length = MESSAGE_WRONG};
    if (command.count == 0)
        return (struct wire_unit){.length = length, .way = UNIT_PASSES};
    bool ends_queue = state->queues && redis_word_is(&command, 0, "EXEC");
    bool passes = (state->queues && !ends_queue) || redis_command_is(&command, SET_UP) ||
                  redis_command_is(&command, LISTENS) || redis_command_is(&command, MONITORS);
    if (state->answered < state->sent && (!passes || changes_mode(state, &command)))
        return (struct wire_unit){0};
    if (passes) {
        if (pass(state, seen, &command))
            state->sent++;
        return (struct wire_unit){.length = length, .way = UNIT_PASSES};
    }
    state->held = ++state->sent;
    describe(state, &command, seen);
    return (struct wire_unit){.length = length, .way = UNIT_HELD};
}

/* ---- the replies of Redis -------------------------------------------------------------------------------------------------------- */

static bool is_redirect(const char *bytes)
{
    return strncmp(bytes, "-MOVED ", 7) == 0 || strncmp(bytes, "-ASK ", 5) == 0;
}

static size_t next_answer(void *context, struct gate_connection *seen, const char *bytes, size_t count)
{
    struct redis_state *state = context;
    size_t length = redis_reply_length(bytes, count);
    if (length == 0 || length == MESSAGE_WRONG)
        return length;
    state->resp3 |= *bytes == '%' || redis_is_push(bytes);
    if (redis_is_push(bytes))
        return length;
    if (state->listens) {
        state->listens = !redis_ends_subscriptions(bytes, length);
        return length;
    }
    state->answered += state->answered < state->sent;
    if (state->answered == state->held && seen->running) {
        seen->running = false;
        seen->remembers = state->remembers;
        seen->answer[0] = '\0';
        redis_describe_reply(bytes, length, seen->answer);
    }
    if (is_redirect(bytes))
        seen->problem =
            "Redis redirects commands to another server (MOVED or ASK). The gate supports one server only. Use a "
            "Redis that is not a cluster";
    return length;
}

static const char *refuse(void *context)
{
    struct redis_state *state = context;
    state->answered = state->sent;
    return "-ERR this request has crashed: loadtest explore --faults crash\r\n";
}

static const char TOO_MANY[] = "-ERR max number of clients of the gate reached\r\n";

const struct wire_protocol redis_protocol = {
    .server = "Redis",
    .port = "6379",
    .too_many = {TOO_MANY, sizeof TOO_MANY - 1},
    .state_size = sizeof(struct redis_state),
    .next_unit = next_unit,
    .next_answer = next_answer,
    .refuse = refuse,
};
