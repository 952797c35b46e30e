/* Turns at a product: a tree of lines, one for each product that has an order under way. */
#include "service/turns.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

struct line {
    int64_t product_id; /* first: the tree's key */
    int going;
    size_t waiting;
    struct waiting *first, **end;
};

struct turns {
    pthread_mutex_t mutex; /* held for a few instructions */
    void *lines;           /* tsearch's tree, by product */
    size_t bound, waiting;
};

struct turns *turns_new(size_t bound)
{
    struct turns *turns = calloc(1, sizeof *turns);
    if (!turns)
        return NULL;
    turns->bound = bound;
    pthread_mutex_init(&turns->mutex, NULL);
    return turns;
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    pthread_mutex_destroy(&turns->mutex);
    free(turns);
}

static int by_product(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static struct line *find_line(struct turns *turns, int64_t product_id)
{
    struct line **found = tfind(&product_id, &turns->lines, by_product);
    return found ? *found : NULL;
}

/* NULL when out of memory. */
static struct line *add_line(struct turns *turns, int64_t product_id)
{
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->product_id = product_id;
    line->end = &line->first;
    if (tsearch(line, &turns->lines, by_product))
        return line;
    free(line);
    return NULL;
}

static enum turn ask(struct turns *turns, int64_t product_id, int limit, struct waiting *who)
{
    who->next = NULL;
    struct line *line = find_line(turns, product_id);
    if (!line && !(line = add_line(turns, product_id)))
        return TURN_NEVER;
    if (line->going < limit) {
        line->going++;
        return TURN_NOW;
    }
    if (turns->waiting == turns->bound)
        return TURN_NEVER;
    turns->waiting++;
    line->waiting++;
    *line->end = who;
    line->end = &who->next;
    return TURN_LATER;
}

enum turn turns_ask(struct turns *turns, int64_t product_id, int limit, struct waiting *who)
{
    pthread_mutex_lock(&turns->mutex);
    enum turn turn = ask(turns, product_id, limit, who);
    pthread_mutex_unlock(&turns->mutex);
    return turn;
}

/* The first MOST of the line, cut off from the rest. */
static struct waiting *take(struct turns *turns, struct line *line, size_t most)
{
    struct waiting *taken = line->first, **end = &line->first;
    size_t count = 0;
    for (; count < most && *end; count++)
        end = &(*end)->next;
    turns->waiting -= count;
    line->waiting -= count;
    line->first = *end;
    *end = NULL;
    if (!line->first)
        line->end = &line->first;
    return taken;
}

struct waiting *turns_next(struct turns *turns, int64_t product_id, size_t most)
{
    pthread_mutex_lock(&turns->mutex);
    struct line *line = find_line(turns, product_id);
    struct waiting *taken = line->first ? take(turns, line, most) : NULL;
    if (!taken && --line->going == 0) {
        tdelete(line, &turns->lines, by_product);
        free(line);
    }
    pthread_mutex_unlock(&turns->mutex);
    return taken;
}

size_t turns_waiting(struct turns *turns, int64_t product_id)
{
    pthread_mutex_lock(&turns->mutex);
    const struct line *line = product_id ? find_line(turns, product_id) : NULL;
    size_t waiting = !product_id ? turns->waiting : line ? line->waiting : 0;
    pthread_mutex_unlock(&turns->mutex);
    return waiting;
}
