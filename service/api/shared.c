/* Answers that many pages ask for at the same time, made once for all of them: a few texts, each fresh for a while. */
#include "service/api/shared.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 64,
    KEY_SIZE = 64,
    FRESH_LEAST_US = 150000, /* what an eye does not miss */
    COST_SHARE = 40,         /* one part in so many of the time goes into making it */
};

struct shared {
    pthread_mutex_t mutex;
    struct slot {
        char key[KEY_SIZE];
        char *text;
        int64_t until_us;
    } slots[SLOTS];
};

struct shared *shared_new(void)
{
    struct shared *shared = calloc(1, sizeof *shared);
    if (shared)
        pthread_mutex_init(&shared->mutex, NULL);
    return shared;
}

void shared_free(struct shared *shared)
{
    if (!shared)
        return;
    for (int i = 0; i < SLOTS; i++)
        free(shared->slots[i].text);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
}

/* The slot of KEY, or the one that has been stale for longest; with the mutex held. */
static struct slot *find(struct shared *shared, const char *key)
{
    struct slot *stalest = &shared->slots[0];
    for (struct slot *slot = shared->slots; slot < shared->slots + SLOTS; slot++) {
        if (strcmp(slot->key, key) == 0)
            return slot;
        if (slot->until_us < stalest->until_us)
            stalest = slot;
    }
    return stalest;
}

char *shared_get(struct shared *shared, const char *key)
{
    pthread_mutex_lock(&shared->mutex);
    const struct slot *slot = find(shared, key);
    bool fresh = slot->text && strcmp(slot->key, key) == 0 && monotonic_us() < slot->until_us;
    char *copy = fresh ? strdup(slot->text) : NULL;
    pthread_mutex_unlock(&shared->mutex);
    return copy;
}

void shared_put(struct shared *shared, const char *key, const char *text, int64_t cost_us)
{
    char *copy = strdup(text);
    int64_t fresh_us = cost_us * COST_SHARE;
    if (fresh_us < FRESH_LEAST_US)
        fresh_us = FRESH_LEAST_US;
    pthread_mutex_lock(&shared->mutex);
    struct slot *slot = find(shared, key);
    free(slot->text);
    slot->text = copy;
    slot->until_us = copy ? monotonic_us() + fresh_us : 0;
    snprintf(slot->key, sizeof slot->key, "%s", key);
    pthread_mutex_unlock(&shared->mutex);
}

void shared_forget(struct shared *shared, const char *key)
{
    pthread_mutex_lock(&shared->mutex);
    struct slot *slot = find(shared, key);
    if (strcmp(slot->key, key) == 0)
        slot->until_us = 0;
    pthread_mutex_unlock(&shared->mutex);
}
