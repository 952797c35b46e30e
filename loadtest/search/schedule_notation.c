/* Reads and writes the notation of schedules. */
#include "loadtest/search/schedule_notation.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const FAULTS[TRANSITION_KIND_COUNT] = {[TRANSITION_EXPIRE] = "expire",
                                                          [TRANSITION_CRASH] = "crash",
                                                          [TRANSITION_RESTART] = "restart",
                                                          [TRANSITION_CUT] = "cut",
                                                          [TRANSITION_TIMEOUT] = "timeout"};

char actor_name(unsigned actor)
{
    return (char)('A' + actor);
}

const char *fault_name(uint8_t kind)
{
    return FAULTS[kind];
}

const char *stop_name(uint8_t stop)
{
    if (stop < STEP_COUNT)
        return step_name((enum step)stop);
    return stop == EVENT_RETRY ? "retry" : "end";
}

void script_add(struct script *script, struct script_part part)
{
    if (script->count < SCRIPT_MAX)
        script->parts[script->count++] = part;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

/* EVENT_WAITS is no stop, since '~' says that an actor waits. */
static bool is_stop(int stop)
{
    return stop != EVENT_WAITS;
}

static bool parse_stop(const char *word, size_t length, uint8_t *ret_stop)
{
    for (int stop = 0; stop <= EVENT_ENDED; stop++)
        if (is_stop(stop) && is_word(word, length, stop_name((uint8_t)stop))) {
            *ret_stop = (uint8_t)stop;
            return true;
        }
    return false;
}

bool fault_parse(const char *word, size_t length, uint8_t *ret_kind)
{
    for (int kind = TRANSITION_STEP + 1; kind < TRANSITION_KIND_COUNT; kind++)
        if (is_word(word, length, FAULTS[kind])) {
            *ret_kind = (uint8_t)kind;
            return true;
        }
    return false;
}

static bool parse_part(const char *word, size_t length, size_t actors, struct script_part *ret_part)
{
    if (length < 3 || word[0] < 'A' || word[0] >= actor_name((unsigned)actors))
        return false;
    *ret_part = (struct script_part){.actor = (uint8_t)(word[0] - 'A')};
    if (word[1] == '!')
        return fault_parse(word + 2, length - 2, &ret_part->kind);
    ret_part->waits = word[length - 1] == '~';
    return word[1] == '>' && parse_stop(word + 2, length - 2 - ret_part->waits, &ret_part->stop);
}

static void say_what_is_valid(const char *word, size_t length, size_t actors, char *ret_error, size_t size)
{
    size_t used = (size_t)snprintf(ret_error, size,
                                   "'%.*s' is not valid (an order from A to %c, then '>' and one of",
                                   (int)(length < 40 ? length : 40), word, actor_name((unsigned)actors - 1));
    for (int stop = 0; stop <= EVENT_ENDED && used < size; stop++)
        if (is_stop(stop))
            used += (size_t)snprintf(ret_error + used, size - used, " %s", stop_name((uint8_t)stop));
    if (used < size)
        snprintf(ret_error + used, size - used,
                 ", with '~' where it waits; or '!' and expire, crash, restart, cut or timeout)");
}

bool script_parse(const char *text, size_t actors, struct script *ret_script, char *ret_error, size_t size)
{
    static const char SPACE[] = " \t\r\n";
    *ret_script = (struct script){0};
    for (const char *word = text + strspn(text, SPACE); *word; word += strspn(word, SPACE)) {
        size_t length = strcspn(word, SPACE);
        struct script_part part;
        if (!parse_part(word, length, actors, &part)) {
            say_what_is_valid(word, length, actors, ret_error, size);
            return false;
        }
        if (ret_script->count == SCRIPT_MAX)
            return text_fail(ret_error, size, "a schedule has more than %d words", SCRIPT_MAX);
        script_add(ret_script, part);
        word += length;
    }
    return true;
}

const char *script_words(const struct script *script, char *buffer)
{
    size_t used = 0;
    *buffer = '\0';
    for (size_t i = 0; i < script->count; i++) {
        const struct script_part *part = &script->parts[i];
        bool steps = part->kind == TRANSITION_STEP;
        used += (size_t)snprintf(buffer + used, SCRIPT_TEXT - used, "%s%c%c%s%s", i ? " " : "",
                                 actor_name(part->actor), steps ? '>' : '!',
                                 steps ? stop_name(part->stop) : FAULTS[part->kind], part->waits ? "~" : "");
    }
    return buffer;
}
