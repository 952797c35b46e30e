/* Tells which requests poll PostgreSQL in vain. */
#include "loadtest/own/polls/idle_polls.h"

void idle_polls_changed(struct idle_polls *polls)
{
    for (unsigned i = 0; i < ACTORS_MAX; i++)
        poll_history_clear(&polls->history[i]);
}

/* The changes of the transaction can matter to the poll. */
static bool concerns(const struct poll_transaction *open, const struct poll_history *history)
{
    bool does = open->anything;
    for (size_t i = 0; i < open->count && !does; i++)
        does = poll_history_names(history, open->tables[i]);
    return open->changed && does;
}

static void note_table(struct poll_transaction *open, uint32_t table)
{
    for (size_t i = 0; i < open->count; i++)
        if (open->tables[i] == table)
            return;
    open->anything |= table == 0 || open->count == POLL_TABLES;
    if (!open->anything)
        open->tables[open->count++] = table;
}

void idle_polls_ended(struct idle_polls *polls, unsigned actor, size_t at, const char *text, bool open_before,
                      bool open_after, enum statement_effect effect, bool one_table)
{
    struct poll_transaction *open = &polls->open[at];
    poll_history_add(&polls->history[actor], text, open_before, effect);
    open->changed |= effect == EFFECT_CHANGES;
    open->locked |= effect == EFFECT_LOCKS;
    open->in_vain |= effect == EFFECT_VAIN || effect == EFFECT_REFUSED;
    if (effect == EFFECT_CHANGES)
        note_table(open, one_table && polls->tables_alone ? poll_table(text) : 0);
    /* Other requests see the changes of a transaction when it ends. Before that, a statement that was to write the same rows waits for it: then it sees
     * the new rows as well, unless it has read others. */
    for (unsigned i = 0; i < ACTORS_MAX; i++) {
        struct poll_history *history = &polls->history[i];
        bool is_concerned = concerns(open, history);
        if (i != actor &&
            (open_after
                 ? effect == EFFECT_CHANGES && (history->is_refused || (history->reads_more && is_concerned))
                 : is_concerned || (history->is_refused && (open->changed || open->locked))))
            poll_history_clear(history);
    }
    if (!open_after)
        *open = (struct poll_transaction){0};
}

bool idle_polls_drop(struct idle_polls *polls, size_t at)
{
    const bool did = polls->open[at].changed || polls->open[at].locked;
    polls->open[at] = (struct poll_transaction){0};
    return did;
}

bool idle_polls_ends_nothing(const struct idle_polls *polls, size_t at)
{
    return polls->open[at].in_vain && !polls->open[at].changed && !polls->open[at].locked;
}

static size_t find(const struct known_polls *known, uint64_t poll)
{
    size_t i = 0;
    while (i < known->count && known->item[i].poll != poll)
        i++;
    return i;
}

enum poll_end known_polls_end(const struct known_polls *known, uint64_t poll)
{
    size_t i = find(known, poll);
    return i < known->count ? known->item[i].end : POLL_UNKNOWN;
}

void known_polls_add(struct known_polls *known, uint64_t poll, enum poll_end end)
{
    if (find(known, poll) < known->count || known->count == POLLS_MAX)
        return;
    known->item[known->count].poll = poll;
    known->item[known->count++].end = end;
}
