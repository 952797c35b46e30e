/* Reads messages of RESP, the protocol of Redis, in its versions 2 and 3, as redis.io describes it. Pure: no I/O. */
#include "loadtest/own/gate/redis_messages.h"

#include "loadtest/own/gate/message_text.h"

#include <string.h>
#include <strings.h>

enum { DIGITS_MOST = 18, WORD_SHOWN = 60, SCRIPT_SHOWN = 200 };

/* ---- numbers and lines ------------------------------------------------------------------------------------------------ */

/* The length of the line at BYTES without its end; 0 bytes are left for CRLF: SIZE_MAX, it is not complete. */
static size_t line_length(const char *bytes, size_t count)
{
    const char *end = count > 0 ? memchr(bytes, '\n', count) : NULL;
    return end ? (size_t)(end - bytes) : SIZE_MAX;
}

/* The digits between BYTES and END. */
static bool read_number(const char *bytes, const char *end, int64_t *ret_number)
{
    bool negative = bytes < end && *bytes == '-';
    int64_t number = 0;
    bytes += negative;
    if (bytes == end || end - bytes > DIGITS_MOST)
        return false;
    for (; bytes < end; bytes++) {
        if (*bytes < '0' || *bytes > '9')
            return false;
        number = number * 10 + (*bytes - '0');
    }
    *ret_number = negative ? -number : number;
    return true;
}

/* A type, what stands behind it in its line, and the content of a bulk. */
struct token {
    char type;
    const char *line;
    size_t line_length;
    const char *bulk; /* NULL: it has none */
    int64_t number;   /* of elements or bytes; -1: null */
};

static bool counts(char type)
{
    return type && strchr("$=!*~>%|", type);
}

/* Returns the token's length, 0 or MESSAGE_WRONG. */
static size_t read_token(const char *bytes, size_t count, struct token *ret_token)
{
    size_t end = line_length(bytes, count);
    if (count > 0 && !(*bytes && strchr("+-:_,#($=!*~>%|", *bytes)))
        return MESSAGE_WRONG;
    if (end == SIZE_MAX)
        return count < MESSAGE_MAX ? 0 : MESSAGE_WRONG;
    if (end < 2 || bytes[end - 1] != '\r')
        return MESSAGE_WRONG;
    *ret_token = (struct token){.type = *bytes, .line = bytes + 1, .line_length = end - 2};
    size_t length = end + 1;
    if (!counts(*bytes))
        return length;
    if (!read_number(bytes + 1, bytes + end - 1, &ret_token->number) || ret_token->number > MESSAGE_MAX ||
        ret_token->number < (strchr("$*", *bytes) ? -1 : 0))
        return MESSAGE_WRONG;
    if (!strchr("$=!", *bytes) || ret_token->number < 0)
        return length;
    size_t size = (size_t)ret_token->number;
    if (count - length < size + 2)
        return length + size + 2 < MESSAGE_MAX ? 0 : MESSAGE_WRONG;
    if (bytes[length + size] != '\r' || bytes[length + size + 1] != '\n')
        return MESSAGE_WRONG;
    ret_token->bulk = bytes + length;
    return length + size + 2;
}

/* ---- commands ---------------------------------------------------------------------------------------------------------- */

static void keep_word(struct redis_command *command, const char *bytes, size_t length)
{
    if (command->count < REDIS_WORDS_KEPT)
        command->words[command->count] = (struct redis_word){bytes, length};
    command->count++;
}

/* Words with blanks between, as one types them. A word in quotes is kept as it is between them. */
static size_t read_inline(const char *bytes, size_t count, struct redis_command *ret_command)
{
    size_t end = line_length(bytes, count);
    if (end == SIZE_MAX || end > REDIS_INLINE_MAX)
        return end == SIZE_MAX && count <= REDIS_INLINE_MAX ? 0 : MESSAGE_WRONG;
    for (size_t at = 0; at < end;) {
        if (strchr(" \t\r", bytes[at]) && bytes[at]) {
            at++;
            continue;
        }
        bool is_quoted = bytes[at] == '"' || bytes[at] == '\'';
        char quote = bytes[at];
        size_t begin = at += is_quoted;
        while (at < end && (is_quoted ? bytes[at] != quote : !(bytes[at] && strchr(" \t\r", bytes[at]))))
            at += is_quoted && bytes[at] == '\\' && at + 1 < end ? 2 : 1;
        at = at < end ? at : end;
        keep_word(ret_command, bytes + begin, at - begin);
        at += is_quoted;
    }
    return end + 1;
}

size_t redis_command_read(const char *bytes, size_t count, struct redis_command *ret_command)
{
    struct token token;
    ret_command->count = 0;
    if (count == 0)
        return 0;
    if (*bytes != '*')
        return read_inline(bytes, count, ret_command);
    size_t length = read_token(bytes, count, &token);
    if (length == 0 || length == MESSAGE_WRONG)
        return length;
    if (token.number > REDIS_WORDS_MOST)
        return MESSAGE_WRONG;
    for (int64_t words = token.number; words > 0; words--) {
        size_t size = read_token(bytes + length, count - length, &token);
        if (size == 0 || size == MESSAGE_WRONG)
            return count < MESSAGE_MAX ? size : MESSAGE_WRONG;
        if (!token.bulk || token.type != '$')
            return MESSAGE_WRONG;
        keep_word(ret_command, token.bulk, (size_t)token.number);
        length += size;
    }
    return length < MESSAGE_MAX ? length : MESSAGE_WRONG;
}

bool redis_word_is(const struct redis_command *command, size_t i, const char *name)
{
    return i < command->count && i < REDIS_WORDS_KEPT && command->words[i].length == strlen(name) &&
           strncasecmp(command->words[i].bytes, name, strlen(name)) == 0;
}

bool redis_command_is(const struct redis_command *command, const char *const *names)
{
    while (*names && !redis_word_is(command, 0, *names))
        names++;
    return *names != NULL;
}

void redis_describe_command(const struct redis_command *command, char *text)
{
    for (size_t i = 0; i < command->count && i < REDIS_WORDS_KEPT; i++) {
        const struct redis_word *word = &command->words[i];
        bool is_script = i == 1 && redis_word_is(command, 0, "EVAL");
        size_t most = is_script ? SCRIPT_SHOWN : WORD_SHOWN;
        size_t shown = word->length < most ? word->length : most;
        bool quoted = shown == 0;
        for (size_t at = 0; at < shown; at++)
            quoted |= strchr(" \t\r\n", word->bytes[at]) != NULL;
        message_append_text(text, i > 0 ? " " : "");
        message_append_text(text, quoted ? "\"" : "");
        message_append(text, word->bytes, shown);
        message_append_text(text, shown < word->length ? "…" : "");
        message_append_text(text, quoted ? "\"" : "");
    }
    if (command->count > REDIS_WORDS_KEPT)
        message_append_text(text, " …");
}

/* ---- keys -------------------------------------------------------------------------------------------------------------------- */

static const char *const SCRIPTS[] = {"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", NULL};

struct redis_keys redis_keys_of(const struct redis_command *command)
{
    static const char *const ALL[] = {"DEL", "UNLINK", "EXISTS", "TOUCH", "WATCH", "MGET", NULL};
    static const char *const ALL_BUT_LAST[] = {"BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", NULL};
    size_t words = command->count < REDIS_WORDS_KEPT ? command->count : REDIS_WORDS_KEPT;
    int64_t count = 0;
    if (words < 2)
        return (struct redis_keys){0};
    if (redis_command_is(command, SCRIPTS)) {
        const struct redis_word *number = &command->words[2];
        if (words < 3 || !read_number(number->bytes, number->bytes + number->length, &count) || count < 0)
            return (struct redis_keys){0};
        return (struct redis_keys){3, (size_t)count < words - 3 ? (size_t)count : words - 3};
    }
    if (redis_command_is(command, ALL))
        return (struct redis_keys){1, words - 1};
    if (redis_command_is(command, ALL_BUT_LAST))
        return (struct redis_keys){1, words - 2};
    return (struct redis_keys){1, 1};
}

bool redis_may_lock(const struct redis_command *command)
{
    static const char *const LOCKS[] = {"SETNX",   "HSETNX",   "HSET",      "HINCRBY", "EXPIRE",
                                        "PEXPIRE", "EXPIREAT", "PEXPIREAT", NULL};
    if (redis_command_is(command, LOCKS) || redis_command_is(command, SCRIPTS))
        return true;
    for (size_t i = 3; redis_word_is(command, 0, "SET") && i < command->count; i++)
        if (redis_word_is(command, i, "NX"))
            return true;
    return false;
}

/* ---- replies ----------------------------------------------------------------------------------------------------------------- */

/* How many values follow a token as its elements. An attribute precedes the value that it belongs to. */
static uint64_t elements_of(const struct token *token)
{
    switch (token->type) {
    case '*': return token->number > 0 ? (uint64_t)token->number : 0;
    case '~':
    case '>': return (uint64_t)token->number;
    case '%': return 2 * (uint64_t)token->number;
    case '|': return 2 * (uint64_t)token->number + 1;
    default: return 0;
    }
}

size_t redis_reply_length(const char *bytes, size_t count)
{
    uint64_t left[REDIS_NESTING_MAX + 1] = {1};
    size_t depth = 0, length = 0;
    for (;;) {
        while (left[depth] == 0) {
            if (depth-- == 0)
                return length < MESSAGE_MAX ? length : MESSAGE_WRONG;
        }
        struct token token;
        size_t size = read_token(bytes + length, count - length, &token);
        if (size == 0 || size == MESSAGE_WRONG)
            return count < MESSAGE_MAX ? size : MESSAGE_WRONG;
        length += size;
        left[depth]--;
        uint64_t elements = elements_of(&token);
        if (elements > 0 && depth == REDIS_NESTING_MAX)
            return MESSAGE_WRONG;
        if (elements > 0)
            left[++depth] = elements;
    }
}

bool redis_is_push(const char *bytes)
{
    return *bytes == '>';
}

bool redis_ends_subscriptions(const char *bytes, size_t length)
{
    static const char *const NAMES[] = {"unsubscribe", "punsubscribe", "sunsubscribe", NULL};
    struct token token;
    size_t at = read_token(bytes, length, &token);
    if (at == 0 || at == MESSAGE_WRONG || token.type != '*' || token.number != 3)
        return false;
    size_t size = read_token(bytes + at, length - at, &token);
    if (size == 0 || size == MESSAGE_WRONG || !token.bulk)
        return false;
    const struct redis_command name = {.count = 1, .words = {{token.bulk, (size_t)token.number}}};
    return redis_command_is(&name, NAMES) && length >= 4 && memcmp(bytes + length - 4, ":0\r\n", 4) == 0;
}

static void describe_token(const struct token *token, char *text)
{
    switch (token->type) {
    case '+':
    case ':':
    case ',':
    case '(': message_append(text, token->line, token->line_length); break;
    case '#':
        message_append_text(text, token->line_length > 0 && *token->line == 't' ? "true" : "false");
        break;
    case '_': message_append_text(text, "nil"); break;
    case '-':
        message_append_text(text, "error: ");
        message_append(text, token->line, token->line_length);
        break;
    case '!':
        message_append_text(text, "error: ");
        message_append(text, token->bulk, (size_t)token->number);
        break;
    case '=': /* "txt:" comes before the text */
        if (token->number >= 4)
            message_append(text, token->bulk + 4, (size_t)token->number - 4);
        break;
    case '$':
    case '*':
        if (token->number < 0)
            message_append_text(text, "nil");
        else if (token->bulk)
            message_append(text, token->bulk, (size_t)token->number);
        break;
    default: break;
    }
}

void redis_describe_reply(const char *bytes, size_t length, char *text)
{
    uint64_t left[REDIS_NESTING_MAX + 1] = {1};
    size_t depth = 0, at = 0;
    bool begins = true;
    while (at < length && strlen(text) + 1 < MESSAGE_TEXT) {
        struct token token;
        size_t size = read_token(bytes + at, length - at, &token);
        if (size == 0 || size == MESSAGE_WRONG)
            return;
        at += size;
        left[depth]--;
        message_append_text(text, begins ? "" : ", ");
        describe_token(&token, text);
        uint64_t elements = elements_of(&token);
        bool is_list = strchr("*~>%|", token.type) && token.number >= 0;
        if (is_list)
            message_append_text(text, "[");
        if (elements > 0 && depth < REDIS_NESTING_MAX)
            left[++depth] = elements;
        else if (is_list)
            message_append_text(text, "]");
        begins = elements > 0;
        while (depth > 0 && left[depth] == 0) {
            message_append_text(text, "]");
            depth--;
        }
    }
}
