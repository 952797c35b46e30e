/* The admission queue: takes in orders, and hands them to the workers in batches, product by product in turn. */
#include "service/orders/product_queue.h"

#include "base/clock.h"

#include <search.h>
#include <stdlib.h>

enum { EXPIRY_CHECK_US = 100 * 1000 };

struct admission_queue *admission_new(const struct settings *settings, const struct admission_bounds *bounds)
{
    struct admission_queue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    pthread_mutex_init(&q->mutex, NULL);
    SLIST_INIT(&q->idle);
    pthread_cond_init(&q->changed, NULL);
    q->end_ready = &q->first_ready;
    q->settings = *settings;
    q->bounds = *bounds;
    return q;
}

static void free_product(void *product)
{
    struct product_queue *p = product;
    free(p->own);
    free(p);
}

void admission_free(struct admission_queue *q)
{
    if (!q)
        return;
    tdestroy(q->products, free_product);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->mutex);
    free(q);
}

static void wake(struct admission_queue *q, struct idle_worker *worker)
{
    SLIST_REMOVE(&q->idle, worker, idle_worker, next);
    worker->woken = true;
    pthread_cond_signal(&worker->work);
}

/* Wakes a worker if orders are ready. At most one is on its way to its first order. That one wakes the next if orders are still
 * ready when it arrives. So workers that are running take most orders of a burst, without a thread switch for each order. The
 * worker that became idle last is woken first, because the caches still have what it and its database server need. */
void admission_wake_one(struct admission_queue *q)
{
    if (!q->first_ready || SLIST_EMPTY(&q->idle) || q->waking)
        return;
    q->waking = true;
    wake(q, SLIST_FIRST(&q->idle));
}

void admission_wake_all(struct admission_queue *q)
{
    while (!SLIST_EMPTY(&q->idle))
        wake(q, SLIST_FIRST(&q->idle));
}

static bool is_full(const struct admission_queue *q, const struct product_queue *p)
{
    return q->bounds.orders_of_product > 0 && p->waiting >= q->bounds.orders_of_product;
}

enum admission admission_add(struct admission_queue *q, struct queued_order *order)
{
    enum admission admission = QUEUE_FULL;
    order->since_us = monotonic_us();
    pthread_mutex_lock(&q->mutex);
    bool room = !q->closed && q->waiting < q->bounds.orders;
    struct product_queue *p = room ? product_queue_find_or_add(q, order->product_id) : NULL;
    if (p && is_full(q, p)) {
        admission = PRODUCT_FULL;
    } else if (p) {
        product_queue_append(q, p, order);
        ready_list_add(q, p);
        admission = ADMITTED;
    }
    admission_wake_one(q);
    pthread_mutex_unlock(&q->mutex);
    return admission;
}

static bool has_expired(const struct queued_order *order, int64_t now_us)
{
    return order->deadline_us <= now_us;
}

/* A second change waits until an order was handed out after the first one, so that changes cannot starve the orders. */
static void note_hand_out(struct admission_queue *q, struct product_queue *p)
{
    bool awaited = p->resumed || (q->switched && !p->own);
    p->resumed = false;
    q->switched = q->switched && p->own;
    if (awaited)
        pthread_cond_broadcast(&q->changed);
}

static void hand_out_expired(struct admission_queue *q, struct product_queue *p, struct subqueue *subqueue,
                             struct order_batch *ret_batch)
{
    *ret_batch = (struct order_batch){.settings = *settings_of_product(q, p),
                                      .orders = product_queue_remove_first(q, p, subqueue),
                                      .count = 1,
                                      .expired = true};
    ret_batch->settings.strategy = strategy_of_order(q, p, ret_batch->orders);
    note_hand_out(q, p);
}

/* Hands out the first orders of a subqueue, which is not empty and below its limit. */
static void hand_out(struct admission_queue *q, struct product_queue *p, struct subqueue *subqueue,
                     int64_t now_us, struct order_batch *ret_batch)
{
    enum combining kind = (enum combining)(subqueue - p->subqueues);
    *ret_batch = (struct order_batch){.settings = *settings_of_product(q, p),
                                      .limited = subqueue_limit(q, p, kind) > 0,
                                      .product = p,
                                      .subqueue = kind};
    ret_batch->settings.strategy = strategy_of_order(q, p, subqueue->first);
    struct queued_order **end = &ret_batch->orders;
    size_t most = orders_in_batch(q, p, kind);
    while (ret_batch->count < most && subqueue->first && !has_expired(subqueue->first, now_us) &&
           strategy_of_order(q, p, subqueue->first) == ret_batch->settings.strategy) {
        *end = product_queue_remove_first(q, p, subqueue);
        end = &(*end)->next;
        ret_batch->count++;
    }
    subqueue->batches++;
    p->batches++;
    q->batches++;
    q->common_batches += !p->own;
    p->placing += ret_batch->count;
    note_hand_out(q, p);
}

static void end_batch(struct admission_queue *q, struct order_batch *batch)
{
    struct product_queue *p = batch->product;
    batch->product = NULL;
    p->subqueues[batch->subqueue].batches--;
    p->batches--;
    q->batches--;
    q->common_batches -= !p->own;
    p->placing -= batch->count;
    if ((p->paused && p->batches == 0) || (q->switching && q->common_batches == 0))
        pthread_cond_broadcast(&q->changed);
    ready_list_add(q, p);
    product_queue_drop_if_unused(q, p);
}

/* Finds orders whose deadline has passed at products that are shut, because such products are not in the list. */
struct expiry {
    struct admission_queue *queue;
    int64_t now_us;
    struct product_queue *found;
};

static void look_for_expired(const void *node, VISIT visit, void *arg)
{
    struct expiry *expiry = arg;
    struct product_queue *p = *(struct product_queue *const *)node;
    if ((visit != preorder && visit != leaf) || expiry->found || !product_is_shut(expiry->queue, p))
        return;
    const struct subqueue *subqueue = product_queue_earliest(expiry->queue, p, true);
    if (subqueue && has_expired(subqueue->first, expiry->now_us))
        expiry->found = p;
}

static bool some_are_shut(const struct admission_queue *q)
{
    return q->pauses > 0 || q->switching;
}

/* Walks over all products at most once in EXPIRY_CHECK_US, except after it found an order. */
static bool take_expired(struct admission_queue *q, int64_t now_us, struct order_batch *ret_batch)
{
    struct expiry expiry = {q, now_us, NULL};
    if (!some_are_shut(q) || now_us < q->expiry_checked_us + EXPIRY_CHECK_US)
        return false;
    twalk_r(q->products, look_for_expired, &expiry);
    if (!expiry.found) {
        q->expiry_checked_us = now_us;
        return false;
    }
    hand_out_expired(q, expiry.found, product_queue_earliest(q, expiry.found, true), ret_batch);
    product_queue_drop_if_unused(q, expiry.found);
    return true;
}

/* False: no order can be handed out now. */
static bool take(struct admission_queue *q, struct order_batch *ret_batch)
{
    int64_t now_us = monotonic_us();
    if (take_expired(q, now_us, ret_batch))
        return true;
    while (q->first_ready) {
        struct product_queue *p = ready_list_take(q);
        struct subqueue *subqueue = product_queue_next(q, p);
        if (subqueue && has_expired(subqueue->first, now_us))
            hand_out_expired(q, p, subqueue, ret_batch);
        else if (subqueue)
            hand_out(q, p, subqueue, now_us, ret_batch);
        ready_list_add(q, p);
        product_queue_drop_if_unused(q, p);
        if (subqueue)
            return true;
    }
    return false;
}

static void wait_for_work(struct admission_queue *q)
{
    struct idle_worker self = {.work = PTHREAD_COND_INITIALIZER};
    SLIST_INSERT_HEAD(&q->idle, &self, next);
    bool in_time = true;
    while (!self.woken && in_time) {
        if (some_are_shut(q))
            in_time = wait_until(&self.work, &q->mutex, q->expiry_checked_us + EXPIRY_CHECK_US);
        else
            pthread_cond_wait(&self.work, &q->mutex);
    }
    if (!self.woken)
        SLIST_REMOVE(&q->idle, &self, idle_worker, next);
    pthread_cond_destroy(&self.work);
    q->waking = false; /* this worker looks for work now, and wakes the next one if there is more */
}

void admission_end(struct admission_queue *q, struct order_batch *batch)
{
    if (!batch->product)
        return;
    pthread_mutex_lock(&q->mutex);
    end_batch(q, batch);
    admission_wake_one(q);
    pthread_mutex_unlock(&q->mutex);
}

void admission_end_one(struct admission_queue *q, struct order_batch *batch)
{
    if (batch->count == 1) {
        admission_end(q, batch);
        return;
    }
    pthread_mutex_lock(&q->mutex);
    batch->count--;
    if (batch->product)
        batch->product->placing--;
    pthread_mutex_unlock(&q->mutex);
}

bool admission_next(struct admission_queue *q, struct order_batch *batch)
{
    bool taken;
    pthread_mutex_lock(&q->mutex);
    while (!(taken = take(q, batch)) && !(q->closed && q->waiting == 0))
        wait_for_work(q);
    if (taken)
        admission_wake_one(q);
    else
        admission_wake_all(q); /* the other workers can end too */
    pthread_mutex_unlock(&q->mutex);
    return taken;
}

void admission_close(struct admission_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->closed = true;
    admission_wake_all(q);
    pthread_mutex_unlock(&q->mutex);
}

/* ---- what is going on -------------------------------------------------------------------------------------- */

struct load_sum {
    struct admission_queue *queue;
    struct admission_load load;
};

static void add_load_of(const void *node, VISIT visit, void *arg)
{
    struct load_sum *sum = arg;
    if (visit == preorder || visit == leaf)
        product_queue_add_load(sum->queue, *(struct product_queue *const *)node, &sum->load);
}

struct admission_load admission_load(struct admission_queue *q, int64_t product_id)
{
    struct load_sum sum = {.queue = q};
    pthread_mutex_lock(&q->mutex);
    const struct product_queue *p = product_id ? product_queue_find(q, product_id) : NULL;
    if (p)
        product_queue_add_load(q, p, &sum.load);
    else if (product_id == 0)
        twalk_r(q->products, add_load_of, &sum);
    pthread_mutex_unlock(&q->mutex);
    return sum.load;
}

int admission_busy(struct admission_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    int batches = q->batches;
    pthread_mutex_unlock(&q->mutex);
    return batches;
}
