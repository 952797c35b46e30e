/* A bounded first-in-first-out queue of pointers between threads. */
#ifndef OVERSELL_BASE_QUEUE_H
#define OVERSELL_BASE_QUEUE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

/* NULL when out of memory. */
struct queue *queue_new(size_t bound);
/* Nobody may use it any more; what is left in it is not freed. */
void queue_free(struct queue *queue);

/* False when BOUND items wait already, or the queue is closed. Never blocks. */
bool queue_push(struct queue *queue, void *item);
/* Waits for an item; NULL once the queue is closed and empty. */
void *queue_pop(struct queue *queue);
/* The same, but NULL as well where there is none until DEADLINE (monotonic_us). */
void *queue_pop_until(struct queue *queue, int64_t deadline_us);
/* No more pushes; what waits is still handed out. */
void queue_close(struct queue *queue);

size_t queue_depth(struct queue *queue);

#endif
