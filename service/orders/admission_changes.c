/* Changes while orders arrive: the pause of a product for a reset, and the switch of the settings, for one product or all. */
#include "service/orders/product_queue.h"

#include "base/clock.h"

#include <search.h>
#include <stdlib.h>

/* Admits the product's waiting orders after a pause or a switch. The strategy may be a different one now, so the orders
 * may belong in other subqueues. */
static void reopen(struct admission_queue *q, struct product_queue *p)
{
    struct queued_order *first = NULL, **end = &first;
    int64_t now_us = monotonic_us();
    for (struct subqueue *subqueue; (subqueue = product_queue_earliest(q, p, true)) != NULL;) {
        *end = product_queue_remove_first(q, p, subqueue);
        end = &(*end)->next;
    }
    for (struct queued_order *order = first, *next; order; order = next) {
        next = order->next;
        order->since_us = now_us;
        product_queue_append(q, p, order);
    }
    ready_list_add(q, p);
}

/* Waits until a batch or a pause ends. False: DEADLINE has passed. */
static bool wait_for_change(struct admission_queue *q, int64_t deadline_us)
{
    return wait_until(&q->changed, &q->mutex, deadline_us);
}

/* Wakes the idle workers: while a product is shut they check for expired orders (wait_for_work). */
static void shut(struct admission_queue *q)
{
    admission_wake_all(q);
}

static void end_pause(struct admission_queue *q, struct product_queue *p)
{
    p->paused = false;
    p->resumed = true;
    q->pauses--;
    if (!product_is_shut(q, p))
        reopen(q, p);
    product_queue_drop_if_unused(q, p);
    pthread_cond_broadcast(&q->changed);
    admission_wake_one(q);
}

/* Waits until no other thread changes the product, and an order of it was handed out since the last change. NULL: DEADLINE
 * has passed, or memory is out. */
static struct product_queue *wait_for_product(struct admission_queue *q, int64_t id, int64_t deadline_us)
{
    struct product_queue *p;
    while ((p = product_queue_find_or_add(q, id)) != NULL && (p->paused || (p->resumed && p->waiting > 0)))
        if (!wait_for_change(q, deadline_us))
            return NULL;
    return p;
}

static enum pausing pause_product(struct admission_queue *q, int64_t product_id, bool waits,
                                  int64_t deadline_us)
{
    pthread_mutex_lock(&q->mutex);
    const struct product_queue *now = product_queue_find(q, product_id);
    bool others = now && now->paused && !waits;
    struct product_queue *p = others ? NULL : wait_for_product(q, product_id, deadline_us);
    bool in_time = p != NULL;
    if (p) {
        p->paused = true;
        q->pauses++;
        shut(q);
        while (p->batches > 0 && in_time)
            in_time = wait_for_change(q, deadline_us);
        if (!in_time)
            end_pause(q, p);
    }
    pthread_mutex_unlock(&q->mutex);
    return in_time ? PAUSED : others ? PAUSE_OF_ANOTHER : PAUSE_TOO_LATE;
}

bool product_pause(struct admission_queue *q, int64_t product_id, int64_t deadline_us)
{
    return pause_product(q, product_id, true, deadline_us) == PAUSED;
}

enum pausing product_pause_first(struct admission_queue *q, int64_t product_id, int64_t deadline_us)
{
    return pause_product(q, product_id, false, deadline_us);
}

void product_resume(struct admission_queue *q, int64_t product_id)
{
    pthread_mutex_lock(&q->mutex);
    end_pause(q, product_queue_find(q, product_id));
    pthread_mutex_unlock(&q->mutex);
}

static void change(struct settings *settings, const struct settings *changes)
{
    if (changes->strategy)
        settings->strategy = changes->strategy;
    if (changes->lock_ttl_ms >= 0)
        settings->lock_ttl_ms = changes->lock_ttl_ms;
    if (changes->lock_wait_ms >= 0)
        settings->lock_wait_ms = changes->lock_wait_ms;
    if (changes->think_ms >= 0)
        settings->think_ms = changes->think_ms;
    if (changes->product_limit >= 0)
        settings->product_limit = changes->product_limit;
    if (changes->in_turn >= 0)
        settings->in_turn = changes->in_turn;
}

static void reopen_common(const void *node, VISIT visit, void *arg)
{
    struct admission_queue *q = arg;
    struct product_queue *p = *(struct product_queue *const *)node;
    if ((visit == preorder || visit == leaf) && !p->own && !product_is_shut(q, p))
        reopen(q, p);
}

bool admission_switch(struct admission_queue *q, const struct settings *changes, int64_t deadline_us,
                      struct settings *ret_settings)
{
    bool in_time = true;
    pthread_mutex_lock(&q->mutex);
    while ((q->switching || (q->switched && q->common_waiting > 0)) && in_time)
        in_time = wait_for_change(q, deadline_us);
    if (in_time) {
        q->switching = true;
        shut(q);
        while (q->common_batches > 0 && in_time)
            in_time = wait_for_change(q, deadline_us);
        if (in_time) {
            change(&q->settings, changes);
            *ret_settings = q->settings;
        }
        q->switching = false;
        q->switched = true;
        twalk_r(q->products, reopen_common, q);
        pthread_cond_broadcast(&q->changed);
        admission_wake_one(q);
    }
    pthread_mutex_unlock(&q->mutex);
    return in_time;
}

bool product_set_own(struct admission_queue *q, int64_t product_id, const struct settings *changes,
                     struct settings *ret_settings)
{
    pthread_mutex_lock(&q->mutex);
    struct product_queue *p = product_queue_find(q, product_id);
    if (!p->own && q->own_count < OWN_SETTINGS_MAX && (p->own = malloc(sizeof *p->own)) != NULL) {
        *p->own = q->settings;
        q->own_count++;
        q->common_waiting -= p->waiting;
    }
    bool has = p->own != NULL;
    if (has) {
        change(p->own, changes);
        *ret_settings = *p->own;
    }
    pthread_mutex_unlock(&q->mutex);
    return has;
}

struct settings product_settings(struct admission_queue *q, int64_t product_id)
{
    pthread_mutex_lock(&q->mutex);
    struct settings settings = *settings_of_product(q, product_id ? product_queue_find(q, product_id) : NULL);
    pthread_mutex_unlock(&q->mutex);
    return settings;
}

bool product_has_own(struct admission_queue *q, int64_t product_id)
{
    pthread_mutex_lock(&q->mutex);
    const struct product_queue *p = product_queue_find(q, product_id);
    bool has = p && p->own;
    pthread_mutex_unlock(&q->mutex);
    return has;
}

bool own_settings_left(struct admission_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    bool left = q->own_count < OWN_SETTINGS_MAX;
    pthread_mutex_unlock(&q->mutex);
    return left;
}
