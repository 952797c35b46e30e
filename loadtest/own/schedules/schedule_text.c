/* Reads and writes the notation of a schedule of requests. */
#include "loadtest/own/schedules/schedule_text.h"

#include "base/text.h"
#include "loadtest/search/schedule_notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_upto(const char *word, size_t length, unsigned *ret_upto)
{
    *ret_upto = 0;
    if (length == 3 && memcmp(word, "end", 3) == 0)
        *ret_upto = SCHEDULE_END;
    else if (length <= 3 && strspn(word, "0123456789") >= length)
        *ret_upto = (unsigned)strtoul(word, NULL, 10);
    return *ret_upto > 0;
}

static bool read_part(const char *word, size_t length, size_t actors, struct schedule_part *ret_part)
{
    if (length < 3 || word[0] < 'A' || word[0] >= actor_name((unsigned)actors))
        return false;
    *ret_part = (struct schedule_part){.actor = (uint8_t)(word[0] - 'A')};
    if (word[1] == '!')
        return fault_parse(word + 2, length - 2, &ret_part->kind);
    return word[1] == '>' && read_upto(word + 2, length - 2, &ret_part->upto);
}

bool schedule_read(const char *text, size_t actors, struct schedule *ret_schedule, char *ret_error,
                   size_t size)
{
    ret_schedule->count = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (ret_schedule->count == DEPTH_MAX)
            return text_fail(ret_error, size, "a schedule has %d words at most", DEPTH_MAX);
        if (!read_part(text, length, actors, &ret_schedule->parts[ret_schedule->count++]))
            return text_fail(
                ret_error, size,
                "'%.*s' is not valid (a request from A to %c, then '>' and a number of statements or 'end', as "
                "in 'A>1 B>end A>end')",
                (int)(length < 40 ? length : 40), text, actor_name((unsigned)actors - 1));
        text += length;
    }
    return ret_schedule->count > 0 || text_fail(ret_error, size, "the schedule is empty");
}

const char *schedule_write(const struct transition *transitions, size_t count,
                           char buffer[static SCHEDULE_TEXT])
{
    unsigned done[ACTORS_MAX] = {0};
    size_t length = 0, last[ACTORS_MAX] = {0}; /* transition of each request */
    buffer[0] = '\0';
    for (size_t i = 0; i < count; i++)
        last[transitions[i].actor] = i;
    for (size_t i = 0; i < count && length + 16 < SCHEDULE_TEXT; i++) {
        const struct transition *now = &transitions[i], *next = i + 1 < count ? now + 1 : NULL;
        const char *space = length ? " " : "";
        if (now->kind != TRANSITION_STEP) {
            length += (size_t)snprintf(buffer + length, SCHEDULE_TEXT - length, "%s%c!%s", space,
                                       actor_name(now->actor), fault_name(now->kind));
            continue;
        }
        unsigned upto = ++done[now->actor];
        if (next && next->actor == now->actor && next->kind == TRANSITION_STEP)
            continue;
        length += (size_t)snprintf(buffer + length, SCHEDULE_TEXT - length, "%s%c>", space,
                                   actor_name(now->actor));
        length += (size_t)(i == last[now->actor]
                               ? snprintf(buffer + length, SCHEDULE_TEXT - length, "end")
                               : snprintf(buffer + length, SCHEDULE_TEXT - length, "%u", upto));
    }
    return buffer;
}
