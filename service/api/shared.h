/* Answers that many pages ask for at the same time, made once for all of them. */
#ifndef OVERSELL_SERVICE_API_SHARED_H
#define OVERSELL_SERVICE_API_SHARED_H

#include <stdbool.h>
#include <stdint.h>

struct shared;

struct shared *shared_new(void);
void shared_free(struct shared *shared);

/* A copy of the text under KEY (to be freed) while it is fresh, else NULL: then make it anew and put it. Any thread. */
char *shared_get(struct shared *shared, const char *key);
/* Keeps a copy of TEXT, which took COST_US to make. It stays fresh for so long that making it again and again takes a
 * fortieth of the time at most. */
void shared_put(struct shared *shared, const char *key, const char *text, int64_t cost_us);

/* What is under KEY is not so any more. */
void shared_forget(struct shared *shared, const char *key);

#endif
