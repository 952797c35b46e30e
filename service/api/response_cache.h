/* A cache of response texts that many pages request at the same time. */
#ifndef OVERSELL_SERVICE_API_RESPONSE_CACHE_H
#define OVERSELL_SERVICE_API_RESPONSE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct response_cache;

/* NULL: out of memory. */
struct response_cache *response_cache_new(void);
/* CACHE may be NULL. */
void response_cache_free(struct response_cache *cache);

/* A copy of the text of KEY, which the caller frees. NULL: there is none, or it has expired; then make it, and put it. Any
 * thread. */
char *response_cache_get(struct response_cache *cache, const char *key);
/* The number of times that a text has been dropped. Read it before you read what a text is made of. Any thread. */
uint64_t response_cache_generation(struct response_cache *cache);
/* Keeps a copy of TEXT, which took COST_US to make, for 40 times as long, but for at least 150 ms. So the service spends at
 * most a fortieth of its time on it. Keeps nothing if a text has been dropped since GENERATION, because this text may be as old. A
 * full cache drops the text that expired first. Any thread. */
void response_cache_put(struct response_cache *cache, const char *key, const char *text, int64_t cost_us,
                        uint64_t generation);

/* Drops the text of KEY, because it is no longer true, and every text that is being made. Any thread. */
void response_cache_forget(struct response_cache *cache, const char *key);

#endif
