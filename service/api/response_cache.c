/* A cache of response texts that many pages request at the same time: a few texts, each with a time at which it expires. */
#include "service/api/response_cache.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 64,
    KEY_SIZE = 64,
    FRESH_LEAST_US = 150000, /* a person does not notice so short a delay */
    COST_SHARE = 40,         /* the share of the time that goes into making a text is 1 / COST_SHARE */
};

struct response_cache {
    pthread_mutex_t mutex;
    uint64_t generation;
    struct slot {
        char key[KEY_SIZE];
        char *text;
        int64_t until_us;
    } slots[SLOTS];
};

struct response_cache *response_cache_new(void)
{
    struct response_cache *cache = calloc(1, sizeof *cache);
    if (cache)
        pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void response_cache_free(struct response_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < SLOTS; i++)
        free(cache->slots[i].text);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* The slot of KEY, or else the one that expired first. The caller holds the mutex. */
static struct slot *find(struct response_cache *cache, const char *key)
{
    struct slot *stalest = &cache->slots[0];
    for (struct slot *slot = cache->slots; slot < cache->slots + SLOTS; slot++) {
        if (strcmp(slot->key, key) == 0)
            return slot;
        if (slot->until_us < stalest->until_us)
            stalest = slot;
    }
    return stalest;
}

char *response_cache_get(struct response_cache *cache, const char *key)
{
    pthread_mutex_lock(&cache->mutex);
    const struct slot *slot = find(cache, key);
    bool fresh = slot->text && strcmp(slot->key, key) == 0 && monotonic_us() < slot->until_us;
    char *copy = fresh ? strdup(slot->text) : NULL;
    pthread_mutex_unlock(&cache->mutex);
    return copy;
}

uint64_t response_cache_generation(struct response_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    uint64_t generation = cache->generation;
    pthread_mutex_unlock(&cache->mutex);
    return generation;
}

void response_cache_put(struct response_cache *cache, const char *key, const char *text, int64_t cost_us,
                        uint64_t generation)
{
    char *copy = strdup(text);
    int64_t fresh_us = cost_us * COST_SHARE;
    if (fresh_us < FRESH_LEAST_US)
        fresh_us = FRESH_LEAST_US;
    pthread_mutex_lock(&cache->mutex);
    if (generation == cache->generation) {
        struct slot *slot = find(cache, key);
        free(slot->text);
        slot->text = copy;
        slot->until_us = copy ? monotonic_us() + fresh_us : 0;
        snprintf(slot->key, sizeof slot->key, "%s", key);
        copy = NULL;
    }
    pthread_mutex_unlock(&cache->mutex);
    free(copy);
}

void response_cache_forget(struct response_cache *cache, const char *key)
{
    pthread_mutex_lock(&cache->mutex);
    cache->generation++;
    struct slot *slot = find(cache, key);
    if (strcmp(slot->key, key) == 0)
        slot->until_us = 0;
    pthread_mutex_unlock(&cache->mutex);
}
