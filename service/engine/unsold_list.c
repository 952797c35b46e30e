/* The list of units that are still to be given back, and the thread that gives them back once the database answers. */
#include "base/clock.h"
#include "service/engine/unsold.h"

#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    LEASE_MS = 10000,            /* if the lock has a lease */
    TRY_US = 1000 * 1000,        /* at most for one order; then the thread tries the next one */
    STOPPING_US = 5000 * 1000,   /* at the end of the process, for all */
    REST_NS = 100 * 1000 * 1000, /* after a failure */
    LIFE_S = 24 * 60 * 60        /* of the units of one order: then they are given up */
};

struct unsold_list {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    struct db *db;
    const char *instance;
    bool stopping;
    int reserved;
    int first, count;
    struct unsold units[UNSOLD_MAX]; /* a ring; what the thread works on stays first */
};

/* Waits for units, and copies the first entry. False: the list stops, and it is empty or END has passed. */
static bool next(struct unsold_list *list, int64_t *end_us, struct unsold *ret_unsold)
{
    pthread_mutex_lock(&list->mutex);
    while (list->count == 0 && !list->stopping)
        pthread_cond_wait(&list->changed, &list->mutex);
    if (list->stopping && *end_us == INT64_MAX)
        *end_us = monotonic_us() + STOPPING_US;
    bool goes_on = list->count > 0 && monotonic_us() < *end_us;
    if (goes_on)
        *ret_unsold = list->units[list->first];
    pthread_mutex_unlock(&list->mutex);
    return goes_on;
}

/* Removes the first entry. Appends UNSOLD, unless it is NULL, so that the thread tries it again after the others. */
static void end_turn(struct unsold_list *list, const struct unsold *unsold)
{
    pthread_mutex_lock(&list->mutex);
    list->first = (list->first + 1) % UNSOLD_MAX;
    list->count--;
    if (unsold)
        list->units[(list->first + list->count++) % UNSOLD_MAX] = *unsold;
    pthread_mutex_unlock(&list->mutex);
}

static enum unsold_fate try_once(struct unsold_list *list, struct unsold *unsold)
{
    struct lock *lock = NULL;
    if (unsold->strategy->lock && lock_open(unsold->strategy->lock, &lock) != LOCK_OK)
        return UNSOLD_OPEN;
    if (lock)
        lock->lease_ms = LEASE_MS;
    enum unsold_fate fate = unsold_give_back(unsold, list->db, lock, list->instance, monotonic_us() + TRY_US);
    lock_close(lock);
    return fate;
}

static void log_fate(const struct unsold *unsold, enum unsold_fate fate)
{
    static const char *const texts[] = {
        [UNSOLD_GIVEN_BACK] = "are given back",
        [UNSOLD_NOT_OWED] = "are not given back: they were sold, were never taken, or are back already",
        [UNSOLD_REPLACED] = "are not given back: the stock has been replaced since",
    };
    if (fate != UNSOLD_GIVEN_UP)
        log_line(LOG_INFO, "product %lld: %lld units of a failed order %s", (long long)unsold->product_id,
                 (long long)unsold->quantity, texts[fate]);
}

static void *refresh_until_end(void *context)
{
    struct unsold_list *list = context;
    struct unsold unsold;
    int64_t end_us = INT64_MAX;
    while (next(list, &end_us, &unsold)) {
        enum unsold_fate fate = try_once(list, &unsold);
        bool expired = fate == UNSOLD_OPEN && monotonic_us() >= unsold.until_us;
        end_turn(list, fate == UNSOLD_OPEN && !expired ? &unsold : NULL);
        if (expired)
            log_line(
                LOG_ERROR,
                "product %lld: %lld units of a failed order could not be given back within %d hours; reset "
                "the product",
                (long long)unsold.product_id, (long long)unsold.quantity, LIFE_S / 3600);
        else if (fate != UNSOLD_OPEN)
            log_fate(&unsold, fate);
        else
            nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    return NULL;
}

static void list_free(struct unsold_list *list)
{
    db_free(list->db);
    pthread_cond_destroy(&list->changed);
    pthread_mutex_destroy(&list->mutex);
    free(list);
}

struct unsold_list *unsold_list_start(const char *database_url, const char *instance)
{
    struct unsold_list *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    pthread_mutex_init(&list->mutex, NULL);
    pthread_cond_init(&list->changed, NULL);
    list->instance = instance;
    list->db = db_new(database_url, "oversell unsold");
    if (list->db && pthread_create(&list->thread, NULL, refresh_until_end, list) == 0)
        return list;
    list_free(list);
    return NULL;
}

void unsold_list_stop(struct unsold_list *list)
{
    if (!list)
        return;
    pthread_mutex_lock(&list->mutex);
    list->stopping = true;
    pthread_cond_signal(&list->changed);
    pthread_mutex_unlock(&list->mutex);
    pthread_join(list->thread, NULL);
    if (list->count > 0)
        log_line(
            LOG_ERROR,
            "could not give back the units of %d failed orders, because the database did not answer; reset their products",
            list->count);
    list_free(list);
}

bool unsold_list_reserve(struct unsold_list *list)
{
    pthread_mutex_lock(&list->mutex);
    bool room = list->count + list->reserved < UNSOLD_MAX;
    list->reserved += room;
    pthread_mutex_unlock(&list->mutex);
    return room;
}

void unsold_list_end(struct unsold_list *list, const struct unsold *unsold)
{
    pthread_mutex_lock(&list->mutex);
    list->reserved--;
    if (unsold) {
        struct unsold *entry = &list->units[(list->first + list->count++) % UNSOLD_MAX];
        *entry = *unsold;
        entry->until_us = monotonic_us() + (int64_t)LIFE_S * 1000 * 1000;
        pthread_cond_signal(&list->changed);
    }
    pthread_mutex_unlock(&list->mutex);
}

int unsold_list_count(struct unsold_list *list, int64_t product_id)
{
    int count = 0;
    pthread_mutex_lock(&list->mutex);
    for (int i = 0; i < list->count; i++)
        count += product_id == 0 || list->units[(list->first + i) % UNSOLD_MAX].product_id == product_id;
    pthread_mutex_unlock(&list->mutex);
    return count;
}
