/* The product queues within the admission queue: a tree of products with their waiting orders, and a list of those with work. */
#include "service/orders/product_queue.h"

#include <search.h>
#include <stdlib.h>

/* ---- products ---------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct product_queue *product_queue_find(struct admission_queue *q, int64_t id)
{
    struct product_queue **found = tfind(&id, &q->products, by_id);
    return found ? *found : NULL;
}

struct product_queue *product_queue_find_or_add(struct admission_queue *q, int64_t id)
{
    struct product_queue *p = product_queue_find(q, id);
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    p->id = id;
    for (int subqueue = 0; subqueue < COMBINE_COUNT; subqueue++)
        p->subqueues[subqueue].end = &p->subqueues[subqueue].first;
    if (tsearch(p, &q->products, by_id))
        return p;
    free(p);
    return NULL;
}

void product_queue_drop_if_unused(struct admission_queue *q, struct product_queue *p)
{
    if (p->own || p->waiting > 0 || p->batches > 0 || p->paused || p->listed)
        return;
    tdelete(p, &q->products, by_id);
    free(p);
}

bool product_is_shut(const struct admission_queue *q, const struct product_queue *p)
{
    return p->paused || (q->switching && !p->own);
}

const struct settings *settings_of_product(const struct admission_queue *q, const struct product_queue *p)
{
    return p && p->own ? p->own : &q->settings;
}

const struct strategy *strategy_of_order(const struct admission_queue *q, const struct product_queue *p,
                                         const struct queued_order *order)
{
    return order->strategy ? order->strategy : settings_of_product(q, p)->strategy;
}

/* A limit, or time to think, asks to see how orders wait for each other in the database: then they are not placed in turn. */
static bool is_combined(const struct admission_queue *q, const struct product_queue *p,
                        enum combining subqueue)
{
    const struct settings *settings = settings_of_product(q, p);
    return subqueue != COMBINE_NONE &&
           (subqueue != COMBINE_IN_TURN ||
            (settings->in_turn && settings->product_limit == 0 && settings->think_ms == 0));
}

int64_t subqueue_limit(const struct admission_queue *q, const struct product_queue *p,
                       enum combining subqueue)
{
    if (p->id == 0)
        return 0;
    return is_combined(q, p, subqueue) ? 1 : settings_of_product(q, p)->product_limit;
}

size_t orders_in_batch(const struct admission_queue *q, const struct product_queue *p,
                       enum combining subqueue)
{
    return p->id != 0 && is_combined(q, p, subqueue) ? ORDER_BATCH_MAX : 1;
}

/* ---- subqueues ------------------------------------------------------------------------------------------------- */

void product_queue_append(struct admission_queue *q, struct product_queue *p, struct queued_order *order)
{
    struct subqueue *subqueue =
        &p->subqueues[p->id == 0 ? COMBINE_NONE : strategy_of_order(q, p, order)->combining];
    order->next = NULL;
    *subqueue->end = order;
    subqueue->end = &order->next;
    subqueue->waiting++;
    p->waiting++;
    q->waiting++;
    q->common_waiting += !p->own;
}

struct queued_order *product_queue_remove_first(struct admission_queue *q, struct product_queue *p,
                                                struct subqueue *subqueue)
{
    struct queued_order *order = subqueue->first;
    subqueue->first = order->next;
    if (!subqueue->first)
        subqueue->end = &subqueue->first;
    order->next = NULL;
    subqueue->waiting--;
    p->waiting--;
    q->waiting--;
    q->common_waiting -= !p->own;
    return order;
}

struct subqueue *product_queue_earliest(struct admission_queue *q, struct product_queue *p, bool of_all)
{
    struct subqueue *found = NULL;
    for (int i = 0; i < COMBINE_COUNT; i++) {
        struct subqueue *subqueue = &p->subqueues[i];
        int64_t limit = subqueue_limit(q, p, (enum combining)i);
        if (subqueue->first && (of_all || limit == 0 || subqueue->batches < limit) &&
            (!found || subqueue->first->deadline_us < found->first->deadline_us))
            found = subqueue;
    }
    return found;
}

static bool has_all_its_workers(const struct admission_queue *q, const struct product_queue *p)
{
    return q->bounds.workers_of_product > 0 && p->id != 0 && p->batches >= q->bounds.workers_of_product;
}

struct subqueue *product_queue_next(struct admission_queue *q, struct product_queue *p)
{
    return product_is_shut(q, p) || has_all_its_workers(q, p) ? NULL : product_queue_earliest(q, p, false);
}

/* ---- the list of products that have work -------------------------------------------------------------------- */

void ready_list_add(struct admission_queue *q, struct product_queue *p)
{
    if (p->listed || !product_queue_next(q, p))
        return;
    p->listed = true;
    p->next_ready = NULL;
    *q->end_ready = p;
    q->end_ready = &p->next_ready;
}

struct product_queue *ready_list_take(struct admission_queue *q)
{
    struct product_queue *p = q->first_ready;
    q->first_ready = p->next_ready;
    if (!q->first_ready)
        q->end_ready = &q->first_ready;
    p->listed = false;
    return p;
}

/* ---- counting ---------------------------------------------------------------------------------------------- */

/* The number of waiting orders of the subqueue that further workers could place now. */
static size_t room_of(const struct admission_queue *q, const struct product_queue *p, enum combining kind)
{
    int64_t limit = subqueue_limit(q, p, kind), most = p->id == 0 ? 0 : q->bounds.workers_of_product;
    int64_t of_subqueue = limit == 0 ? INT32_MAX : limit - p->subqueues[kind].batches;
    int64_t of_product = most == 0 ? INT32_MAX : most - p->batches;
    int64_t batches = of_subqueue < of_product ? of_subqueue : of_product;
    return batches > 0 && !product_is_shut(q, p) ? (size_t)batches * orders_in_batch(q, p, kind) : 0;
}

void product_queue_add_load(struct admission_queue *q, const struct product_queue *p,
                            struct admission_load *load)
{
    load->placing += p->placing;
    for (int i = 0; i < COMBINE_COUNT; i++) {
        const struct subqueue *subqueue = &p->subqueues[i];
        size_t ready = room_of(q, p, (enum combining)i);
        ready = ready < subqueue->waiting ? ready : subqueue->waiting;
        load->ready += ready;
        load->held += subqueue->waiting - ready;
    }
}
