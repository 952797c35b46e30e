/* Fuzzes the bytes that a service and Redis send through the gate. The first byte says where to break the service's bytes in two, which
 * must change nothing; then come its bytes up to 0xff, and those of Redis. */
#include "loadtest/own/gate/redis_messages.h"
#include "tests/fuzz/fuzz.h"

#include <strings.h>

enum { UNITS_MAX = 64 };

struct run {
    size_t count;
    size_t lengths[UNITS_MAX];
    enum unit_way ways[UNITS_MAX];
    bool wrong;
};

static bool is_text(const char *text)
{
    size_t length = strnlen(text, MESSAGE_TEXT);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ')
            return false;
    return length < MESSAGE_TEXT;
}

static bool are_keys(const char *keys)
{
    size_t used = 0;
    while (used < MESSAGE_KEYS && keys[used])
        used += strnlen(keys + used, MESSAGE_KEYS - used) + 1;
    return used < MESSAGE_KEYS;
}

/* COUNT bytes without one behind them, so that a read beyond their end is seen; to be freed. */
static char *only(const uint8_t *bytes, size_t count)
{
    char *part = malloc(count + (count == 0));
    MUST(part);
    memcpy(part, bytes, count);
    return part;
}

/* Feeds the COUNT bytes, of which only the first FIRST are there in the beginning. Each held unit is answered at once. */
static void feed(const uint8_t *data, size_t count, size_t first, struct run *run)
{
    struct gate_connection seen = {.used = true};
    void *state = calloc(1, redis_protocol.state_size);
    MUST(state);
    size_t at = 0;
    for (size_t there = first;; there = count) {
        bool goes_on = true;
        while (goes_on && at < there && run->count < UNITS_MAX && !run->wrong) {
            char *part = only(data + at, there - at);
            const struct wire_unit unit = redis_protocol.next_unit(state, &seen, part, there - at);
            free(part);
            run->wrong = unit.length == MESSAGE_WRONG;
            goes_on = unit.length > 0 && !run->wrong;
            if (!goes_on)
                break;
            MUST(unit.length <= there - at && is_text(seen.text) && is_text(seen.shape) &&
                 are_keys(seen.keys));
            run->lengths[run->count] = unit.length;
            run->ways[run->count++] = unit.way;
            at += unit.length;
            seen.running = unit.way == UNIT_HELD;
            for (int i = 0; i < 2; i++)
                MUST(redis_protocol.next_answer(state, &seen, "+OK\r\n", 5) == 5);
            MUST(!seen.running);
        }
        if (there == count)
            break;
    }
    free(state);
}

/* A connection that listens passes whatever has come, so its units depend on where the bytes break. */
static bool listens(const uint8_t *data, size_t count)
{
    static const char *const NAMES[] = {"subscribe", "monitor", "sync"};
    for (size_t i = 0; i + 4 <= count; i++)
        for (size_t name = 0; name < 3; name++)
            if (i + strlen(NAMES[name]) <= count &&
                strncasecmp((const char *)data + i, NAMES[name], strlen(NAMES[name])) == 0)
                return true;
    return false;
}

static void read_replies(const uint8_t *data, size_t count)
{
    struct gate_connection seen = {.used = true};
    void *state = calloc(1, redis_protocol.state_size);
    MUST(state);
    while (count > 0) {
        char *part = only(data, count);
        (void)redis_protocol.next_unit(state, &seen, "GET a\r\n", 7);
        seen.running = true;
        size_t length = redis_protocol.next_answer(state, &seen, part, count);
        MUST(is_text(seen.answer));
        if (length > 0 && length != MESSAGE_WRONG) {
            MUST(length <= count);
            (void)redis_ends_subscriptions(part, length);
            if (length > 1)
                MUST(redis_reply_length(part, length - 1) == 0); /* none is complete before its end */
        }
        free(part);
        if (length == 0 || length == MESSAGE_WRONG)
            break;
        data += length;
        count -= length;
    }
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct run whole = {0}, parts = {0};
    size_t first = fuzz_byte(&input), count;
    const uint8_t *sent = fuzz_piece(&input, 0xff, &count);
    first = first < count ? first : count;
    feed(sent, count, count, &whole);
    feed(sent, count, first, &parts);
    if (!listens(sent, count)) {
        MUST(whole.count == parts.count && whole.wrong == parts.wrong);
        MUST(memcmp(whole.lengths, parts.lengths, whole.count * sizeof whole.lengths[0]) == 0);
        MUST(memcmp(whole.ways, parts.ways, whole.count * sizeof whole.ways[0]) == 0);
    }
    read_replies(input.at, input.left);
    return 0;
}
