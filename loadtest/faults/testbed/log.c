/* What the clients of a fault experiment meant to order and what they were told: the intent log that they are judged by. */
#include "loadtest/faults/testbed/log.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fault_log_open(const char *tag, struct fault_log *ret_log)
{
    *ret_log = (struct fault_log){.mutex = PTHREAD_MUTEX_INITIALIZER, .quantity = 1};
    snprintf(ret_log->tag, sizeof ret_log->tag, "%s", tag);
}

void fault_log_close(struct fault_log *log)
{
    free(log->intents);
    log->intents = NULL;
    log->count = log->room = 0;
}

void fault_log_turn(struct fault_log *log)
{
    pthread_mutex_lock(&log->mutex);
    log->from = log->count;
    log->quantity = 1;
    log->turned_us = monotonic_us();
    memset(log->served_us, 0, sizeof log->served_us);
    memset(log->changes, 0, sizeof log->changes);
    pthread_mutex_unlock(&log->mutex);
}

bool fault_log_intend(struct fault_log *log, size_t strategy, size_t *ret_number)
{
    pthread_mutex_lock(&log->mutex);
    bool fits = log->count < log->room;
    if (!fits) {
        size_t room = log->room > 0 ? log->room * 2 : 4096;
        struct intent *longer = realloc(log->intents, room * sizeof *longer);
        if (longer) {
            log->intents = longer;
            log->room = room;
            fits = true;
        }
    }
    if (fits) {
        *ret_number = log->count++;
        log->intents[*ret_number] = (struct intent){.strategy = strategy, .began_us = monotonic_us()};
    }
    pthread_mutex_unlock(&log->mutex);
    return fits;
}

void fault_log_told(struct fault_log *log, size_t number, const struct intent *end)
{
    pthread_mutex_lock(&log->mutex);
    struct intent *intent = &log->intents[number];
    int64_t began_us = intent->began_us;
    *intent = *end;
    intent->began_us = began_us;
    if (end->told == TOLD_CREATED || end->told == TOLD_SOLD_OUT)
        log->served_us[end->strategy] = end->ended_us;
    pthread_mutex_unlock(&log->mutex);
}

void fault_log_oddity(struct fault_log *log, const char *text)
{
    pthread_mutex_lock(&log->mutex);
    if (!log->oddity[0])
        snprintf(log->oddity, sizeof log->oddity, "%s", text);
    pthread_mutex_unlock(&log->mutex);
}

int64_t fault_log_served(struct fault_log *log, size_t strategy)
{
    pthread_mutex_lock(&log->mutex);
    int64_t served_us = log->served_us[strategy];
    pthread_mutex_unlock(&log->mutex);
    return served_us;
}

enum sale_of fault_log_sale(const struct fault_log *log, const struct intent *intent)
{
    const struct sale_change *change = &log->changes[intent->strategy];
    if (intent->began_us > change->ended_us)
        return SALE_LAST;
    /* An order without a definite answer may be created at any later time. */
    return intent->ended_us < change->began_us && intent->told != TOLD_NOTHING ? SALE_BEFORE : SALE_EITHER;
}

bool fault_log_stands(const struct fault_log *log, const struct intent *intent)
{
    return intent->told == TOLD_CREATED &&
           (log->changes[intent->strategy].keeps_orders || fault_log_sale(log, intent) == SALE_LAST);
}

bool fault_log_is_deleted(const struct fault_log *log, const struct intent *intent)
{
    return intent->told == TOLD_CREATED && !log->changes[intent->strategy].keeps_orders &&
           fault_log_sale(log, intent) == SALE_BEFORE;
}

const char *fault_log_key(const struct fault_log *log, size_t number, char *buffer)
{
    snprintf(buffer, 64, "%s-%zu", log->tag, number);
    return buffer;
}

bool fault_log_find(const struct fault_log *log, const char *key, size_t *ret_number)
{
    size_t length = strlen(log->tag);
    if (strncmp(key, log->tag, length) != 0 || key[length] != '-')
        return false;
    char *end;
    unsigned long long number = strtoull(key + length + 1, &end, 10);
    if (end == key + length + 1 || *end || number >= log->count)
        return false;
    *ret_number = (size_t)number;
    return true;
}
