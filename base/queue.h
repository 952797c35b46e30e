/* A bounded queue of pointers between threads, which can serve their owners in turn. Any thread may call; the items stay the
 * callers'. */
#ifndef OVERSELL_BASE_QUEUE_H
#define OVERSELL_BASE_QUEUE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

enum { QUEUE_RESERVED = 64 };

/* A queue for at most BOUND items; NULL when out of memory. */
struct queue *queue_new(size_t bound);
/* No other thread may use QUEUE any more. Does not free the items that are left. QUEUE may be NULL. */
void queue_free(struct queue *queue);

/* False when BOUND items wait already, or the queue is closed. Never blocks. */
bool queue_push(struct queue *queue, void *item);
/* The same, but the item lets others go first for ROUNDS rounds: a round has the items that were pushed with the same ROUNDS
 * while the queue was in the same round. If ROUNDS is the number of items that an owner has in the queue already, the owners
 * are served in turn. queue_push is queue_push_turn with 0, so it alone is first in, first out. */
bool queue_push_turn(struct queue *queue, void *item, unsigned rounds);
/* The same, but the item goes before all items that were pushed in another way, and QUEUE_RESERVED places beyond BOUND are
 * reserved for such items. */
bool queue_push_first(struct queue *queue, void *item);
/* Waits for an item; NULL once the queue is closed and empty. */
void *queue_pop(struct queue *queue);
/* As queue_pop, but also returns NULL when DEADLINE (monotonic_us) passes without an item. */
void *queue_pop_until(struct queue *queue, int64_t deadline_us);
/* Rejects further items; queue_pop still returns the waiting ones. */
void queue_close(struct queue *queue);

/* How many items wait now. */
size_t queue_depth(struct queue *queue);

#endif
