/* Turns requests and replies of Redis into short texts. */
#include "lock/redis/client/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = RECORDED_TEXT_MAX + 80 }; /* longer than what is kept, so that a cut is seen */

/* A text that is built up, and cut off when it is full. */
struct text {
    char *bytes;
    size_t size, used;
};

static void append(struct text *text, const char *bytes, size_t size)
{
    if (size > text->size - 1 - text->used)
        size = text->size - 1 - text->used;
    memcpy(text->bytes + text->used, bytes, size);
    text->used += size;
    text->bytes[text->used] = '\0';
}

static void append_text(struct text *text, const char *more)
{
    append(text, more, strlen(more));
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

unsigned redis_record_command(const void *connection, const char *bytes, long long size)
{
    char words[TEXT_SIZE] = "";
    struct text text = {words, sizeof words, 0};
    if (!thread_recorder || size <= 0)
        return 0;
    /* "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" */
    const char *end = bytes + size, *at = memchr(bytes, '\n', (size_t)size);
    while (at && at + 1 < end && at[1] == '$') {
        size_t length = strtoul(at + 2, NULL, 10);
        at = memchr(at + 1, '\n', (size_t)(end - at - 1));
        if (!at || length > (size_t)(end - at - 1))
            break;
        append_text(&text, text.used ? " " : "");
        append(&text, at + 1, length);
        at += 1 + length + 1; /* its last "\n" */
    }
    return record_request("redis", connection, words, NULL, 0);
}

unsigned redis_record_script(const void *connection, const char *command, const char *script, int key_count,
                             const char *const *words, int word_count)
{
    char whole[TEXT_SIZE] = "", named[RECORDED_VALUES_MAX][RECORDED_VALUE_MAX + 16];
    const char *values[RECORDED_VALUES_MAX];
    struct text text = {whole, sizeof whole, 0};
    if (!thread_recorder)
        return 0;
    append_text(&text, command);
    append_text(&text, " ");
    append_text(&text, script);
    if (word_count > RECORDED_VALUES_MAX)
        word_count = RECORDED_VALUES_MAX;
    for (int i = 0; i < word_count; i++) {
        bool is_key = i < key_count;
        snprintf(named[i], sizeof named[i], "%s[%d] = %s", is_key ? "KEYS" : "ARGV",
                 is_key ? i + 1 : i + 1 - key_count, words[i]);
        values[i] = named[i];
    }
    return record_request("redis", connection, whole, values, word_count);
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

static void append_reply(struct text *text, const redisReply *reply)
{
    char number[24];
    switch (reply->type) {
    case REDIS_REPLY_NIL: append_text(text, "nil"); break;
    case REDIS_REPLY_INTEGER:
        snprintf(number, sizeof number, "%lld", reply->integer);
        append_text(text, number);
        break;
    case REDIS_REPLY_ARRAY:
        append_text(text, "[");
        for (size_t i = 0; i < (size_t)reply->elements; i++) {
            append_text(text, i ? ", " : "");
            append_reply(text, reply->element[i]);
        }
        append_text(text, "]");
        break;
    case REDIS_REPLY_STRING:
        append_text(text, "\"");
        append(text, reply->str, (size_t)reply->len);
        append_text(text, "\"");
        break;
    default: append(text, reply->str, (size_t)reply->len);
    }
}

void redis_record_reply(unsigned request, enum lock_status status, const redisReply *reply, const char *error)
{
    char answer[RECORDED_ANSWER_MAX + 80] = "";
    struct text text = {answer, sizeof answer, 0};
    if (!request)
        return;
    if (status == LOCK_OK && reply)
        append_reply(&text, reply);
    else
        append_text(&text, error);
    record_answer(request, answer);
}
