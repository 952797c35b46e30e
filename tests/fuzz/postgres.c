/* Fuzzes the bytes that a service and PostgreSQL send through the gate. The first byte says where to break the service's bytes in two,
 * which must change nothing; then come its bytes up to 0xff, and those of PostgreSQL. */
#include "loadtest/own/gate/postgres_messages.h"
#include "loadtest/own/gate/wire_protocol.h"
#include "tests/fuzz/fuzz.h"

enum { UNITS_MAX = 64 };

struct run {
    size_t count;
    size_t lengths[UNITS_MAX];
    enum unit_way ways[UNITS_MAX];
    bool wrong;
};

static bool is_text(const char *text)
{
    return strnlen(text, MESSAGE_TEXT) < MESSAGE_TEXT;
}

/* COUNT bytes without one behind them, so that a read beyond their end is seen; to be freed. */
static char *only(const uint8_t *bytes, size_t count)
{
    char *part = malloc(count + (count == 0));
    MUST(part);
    memcpy(part, bytes, count);
    return part;
}

static const char READY[] = "Z\0\0\0\5I";

/* Feeds the COUNT bytes, of which only the first FIRST are there in the beginning. The connection takes statements after the startup. */
static void feed(const uint8_t *data, size_t count, size_t first, struct run *run)
{
    struct gate_connection seen = {.used = true};
    void *state = calloc(1, postgres_protocol.state_size);
    MUST(state);
    size_t at = 0;
    for (size_t there = first;; there = count) {
        while (at < there && run->count < UNITS_MAX && !run->wrong) {
            char *part = only(data + at, there - at);
            const struct wire_unit unit = postgres_protocol.next_unit(state, &seen, part, there - at);
            free(part);
            run->wrong = unit.length == MESSAGE_WRONG;
            if (run->wrong || unit.length == 0)
                break;
            MUST(unit.length <= there - at && is_text(seen.text));
            run->lengths[run->count] = unit.length;
            run->ways[run->count++] = unit.way;
            at += unit.length;
            if (unit.way == UNIT_HELD) /* the next one waits for the answer */
                MUST(postgres_protocol.next_answer(state, &seen, READY, sizeof READY - 1) ==
                     sizeof READY - 1);
        }
        if (there == count)
            break;
    }
    free(state);
}

static void read_answers(const uint8_t *data, size_t count)
{
    struct gate_connection seen = {.used = true, .starts = true};
    void *state = calloc(1, postgres_protocol.state_size);
    MUST(state);
    while (count > 0) {
        char *part = only(data, count);
        size_t length = postgres_protocol.next_answer(state, &seen, part, count);
        free(part);
        MUST(is_text(seen.answer));
        if (length == 0 || length == MESSAGE_WRONG)
            break;
        MUST(length <= count);
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
    MUST(whole.count == parts.count && whole.wrong == parts.wrong);
    MUST(memcmp(whole.lengths, parts.lengths, whole.count * sizeof whole.lengths[0]) == 0);
    MUST(memcmp(whole.ways, parts.ways, whole.count * sizeof whole.ways[0]) == 0);
    read_answers(input.at, input.left);
    return 0;
}
