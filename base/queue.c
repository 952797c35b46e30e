/* A bounded queue of pointers between threads: a ring sorted by rounds, a mutex, a condition. */
#include "base/queue.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    bool closed;
    size_t bound, size, depth, first; /* SIZE slots: BOUND, and those for queue_push_first */
    uint64_t round;                   /* of the item that was handed out last */
    struct slot {
        void *item;
        uint64_t round;
    } slots[];
};

struct queue *queue_new(size_t bound)
{
    size_t size = bound + QUEUE_RESERVED;
    struct queue *queue = calloc(1, sizeof *queue + size * sizeof queue->slots[0]);
    if (!queue)
        return NULL;
    queue->bound = bound;
    queue->size = size;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->filled, NULL);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

/* With the mutex held, and room. */
static void insert(struct queue *queue, struct slot slot)
{
    size_t at = queue->depth++;
    for (; at > 0; at--) {
        struct slot *before = &queue->slots[(queue->first + at - 1) % queue->size];
        if (before->round <= slot.round)
            break;
        queue->slots[(queue->first + at) % queue->size] = *before;
    }
    queue->slots[(queue->first + at) % queue->size] = slot;
}

bool queue_push(struct queue *queue, void *item)
{
    return queue_push_turn(queue, item, 0);
}

bool queue_push_turn(struct queue *queue, void *item, unsigned rounds)
{
    pthread_mutex_lock(&queue->mutex);
    bool room = !queue->closed && queue->depth < queue->bound;
    if (room)
        insert(queue, (struct slot){item, queue->round + 1 + rounds});
    pthread_mutex_unlock(&queue->mutex);
    if (room)
        pthread_cond_signal(&queue->filled);
    return room;
}

bool queue_push_first(struct queue *queue, void *item)
{
    pthread_mutex_lock(&queue->mutex);
    bool room = !queue->closed && queue->depth < queue->size;
    if (room)
        insert(queue, (struct slot){item, 0}); /* the rounds of the others begin at 1 */
    pthread_mutex_unlock(&queue->mutex);
    if (room)
        pthread_cond_signal(&queue->filled);
    return room;
}

void *queue_pop(struct queue *queue)
{
    return queue_pop_until(queue, INT64_MAX);
}

void *queue_pop_until(struct queue *queue, int64_t deadline_us)
{
    void *item = NULL;
    bool in_time = true;
    pthread_mutex_lock(&queue->mutex);
    while (queue->depth == 0 && !queue->closed && in_time)
        if (deadline_us == INT64_MAX)
            pthread_cond_wait(&queue->filled, &queue->mutex);
        else
            in_time = wait_until(&queue->filled, &queue->mutex, deadline_us);
    if (queue->depth > 0) {
        item = queue->slots[queue->first].item;
        if (queue->slots[queue->first].round > queue->round)
            queue->round = queue->slots[queue->first].round;
        queue->first = (queue->first + 1) % queue->size;
        queue->depth--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return item;
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_broadcast(&queue->filled);
}

size_t queue_depth(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    size_t depth = queue->depth;
    pthread_mutex_unlock(&queue->mutex);
    return depth;
}
