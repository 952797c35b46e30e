/* The history of a fault run: what the clients wanted to order, and which answers they got. */
#include "loadtest/faults/testbed/history.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUST_ACCEPTED_US 3000 /* then it is probably not written yet */

void fault_history_open(const char *tag, struct fault_history *ret_history)
{
    *ret_history = (struct fault_history){.mutex = PTHREAD_MUTEX_INITIALIZER, .quantity = 1};
    snprintf(ret_history->tag, sizeof ret_history->tag, "%s", tag);
}

void fault_history_close(struct fault_history *history)
{
    free(history->intents);
    history->intents = NULL;
    history->count = history->room = 0;
}

void fault_history_begin_cycle(struct fault_history *history)
{
    pthread_mutex_lock(&history->mutex);
    history->from = history->count;
    history->quantity = 1;
    history->cycle_began_us = monotonic_us();
    history->strike = (struct fault_strike){0};
    memset(history->open, 0, sizeof history->open);
    memset(history->served_us, 0, sizeof history->served_us);
    memset(history->changes, 0, sizeof history->changes);
    pthread_mutex_unlock(&history->mutex);
}

bool fault_history_intend(struct fault_history *history, size_t strategy, int instance, size_t *ret_number)
{
    pthread_mutex_lock(&history->mutex);
    bool fits = history->count < history->room;
    if (!fits) {
        size_t room = history->room > 0 ? history->room * 2 : 4096;
        struct intent *longer = realloc(history->intents, room * sizeof *longer);
        if (longer) {
            history->intents = longer;
            history->room = room;
            fits = true;
        }
    }
    if (fits) {
        *ret_number = history->count++;
        history->intents[*ret_number] = (struct intent){
            .strategy = strategy, .instance = instance, .began_us = monotonic_us()};
        history->open[strategy][instance]++;
    }
    pthread_mutex_unlock(&history->mutex);
    return fits;
}

void fault_history_told(struct fault_history *history, size_t number, const struct intent *end)
{
    pthread_mutex_lock(&history->mutex);
    struct intent *intent = &history->intents[number];
    int64_t began_us = intent->began_us;
    int instance = intent->instance;
    *intent = *end;
    intent->began_us = began_us;
    intent->instance = instance;
    history->open[end->strategy][instance]--;
    if (end->told == TOLD_CREATED || end->told == TOLD_SOLD_OUT)
        history->served_us[end->strategy] = end->ended_us;
    pthread_mutex_unlock(&history->mutex);
}

void fault_history_oddity(struct fault_history *history, const char *text)
{
    pthread_mutex_lock(&history->mutex);
    if (!history->oddity[0])
        snprintf(history->oddity, sizeof history->oddity, "%s", text);
    pthread_mutex_unlock(&history->mutex);
}

size_t fault_history_size(struct fault_history *history)
{
    pthread_mutex_lock(&history->mutex);
    size_t count = history->count;
    pthread_mutex_unlock(&history->mutex);
    return count;
}

int64_t fault_history_served(struct fault_history *history, size_t strategy)
{
    pthread_mutex_lock(&history->mutex);
    int64_t served_us = history->served_us[strategy];
    pthread_mutex_unlock(&history->mutex);
    return served_us;
}

bool fault_history_is_exposed(struct fault_history *history, size_t strategy, int instance)
{
    int64_t open = 0;
    pthread_mutex_lock(&history->mutex);
    for (int i = 0; i < FAULT_INSTANCES; i++)
        open += instance < 0 || i == instance ? history->open[strategy][i] : 0;
    bool accepted = monotonic_us() - history->served_us[strategy] < JUST_ACCEPTED_US;
    bool exposed = history->writes_later[strategy] ? accepted : open > 0;
    pthread_mutex_unlock(&history->mutex);
    return exposed;
}

bool fault_history_was_met(const struct fault_history *history, const struct intent *intent,
                           int64_t committed_us)
{
    const struct fault_strike *strike = &history->strike;
    if (strike->from_us == 0 || (strike->instance >= 0 && intent->instance != strike->instance))
        return false;
    if (history->writes_later[intent->strategy])
        return intent->told == TOLD_CREATED && intent->ended_us <= strike->until_us &&
               (committed_us == 0 || committed_us > strike->from_wall_us);
    return intent->began_us <= strike->until_us && intent->ended_us >= strike->from_us;
}

enum sale_of fault_history_sale(const struct fault_history *history, const struct intent *intent)
{
    const struct sale_change *change = &history->changes[intent->strategy];
    if (intent->began_us > change->ended_us)
        return SALE_LAST;
    /* An order without a definite answer may be created at any later time. */
    return intent->ended_us < change->began_us && intent->told != TOLD_NOTHING ? SALE_BEFORE : SALE_EITHER;
}

bool fault_history_stands(const struct fault_history *history, const struct intent *intent)
{
    return intent->told == TOLD_CREATED && (history->changes[intent->strategy].keeps_orders ||
                                            fault_history_sale(history, intent) == SALE_LAST);
}

bool fault_history_is_deleted(const struct fault_history *history, const struct intent *intent)
{
    return intent->told == TOLD_CREATED && !history->changes[intent->strategy].keeps_orders &&
           fault_history_sale(history, intent) == SALE_BEFORE;
}

const char *fault_history_key(const struct fault_history *history, size_t number, char *buffer)
{
    snprintf(buffer, 64, "%s-%zu", history->tag, number);
    return buffer;
}

bool fault_history_find(const struct fault_history *history, const char *key, size_t *ret_number)
{
    size_t length = strlen(history->tag);
    if (strncmp(key, history->tag, length) != 0 || key[length] != '-')
        return false;
    char *end;
    unsigned long long number = strtoull(key + length + 1, &end, 10);
    if (end == key + length + 1 || *end || number >= history->count)
        return false;
    *ret_number = (size_t)number;
    return true;
}
