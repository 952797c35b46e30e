/* The admission queue: a tree of products, each with its waiting orders, and a list of the products that have work. */
#include "service/orders/admission_queue.h"

#include "base/clock.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

enum { EXPIRY_CHECK_US = 100 * 1000 };

/* The waiting orders of a product that are combined in the same way, since a batch has orders of one way only. */
struct subqueue {
    struct queued_order *first, **end;
    size_t waiting;
    int batches; /* that workers have taken and not ended */
};

struct product {
    int64_t id; /* first: the tree's key */
    struct subqueue subqueues[COMBINE_COUNT];
    size_t waiting, placing; /* orders */
    int batches;
    bool paused;
    bool resumed;         /* a pause has ended, and no order has been handed out since */
    struct settings *own; /* NULL: it follows the common settings */
    bool listed;
    struct product *next_ready;
};

struct admission_queue {
    pthread_mutex_t mutex;
    pthread_cond_t work;    /* a product is listed, or a worker has to end */
    pthread_cond_t changed; /* a batch or a pause has ended */
    void *products;         /* tsearch's tree, by id */
    struct product *first_ready, **end_ready;
    struct settings settings;
    int own_count;
    bool switching;                 /* the common settings are being changed */
    bool switched;                  /* they were changed, and no order under them has been handed out since */
    int pauses;                     /* products that are paused */
    int batches, common_batches;    /* under the common settings */
    size_t waiting, common_waiting; /* orders */
    struct admission_bounds bounds;
    int idle; /* workers that wait for work */
    bool closed;
    int64_t expiry_checked_us;
};

/* ---- products ---------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static struct product *find(struct admission_queue *q, int64_t id)
{
    struct product **found = tfind(&id, &q->products, by_id);
    return found ? *found : NULL;
}

/* NULL: out of memory. */
static struct product *find_or_add(struct admission_queue *q, int64_t id)
{
    struct product *p = find(q, id);
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

/* Forgets the product if its entry holds no state. */
static void drop_if_unused(struct admission_queue *q, struct product *p)
{
    if (p->own || p->waiting > 0 || p->batches > 0 || p->paused || p->listed)
        return;
    tdelete(p, &q->products, by_id);
    free(p);
}

static bool is_shut(const struct admission_queue *q, const struct product *p)
{
    return p->paused || (q->switching && !p->own);
}

static const struct settings *settings_of(const struct admission_queue *q, const struct product *p)
{
    return p && p->own ? p->own : &q->settings;
}

static const struct strategy *strategy_of(const struct admission_queue *q, const struct product *p,
                                          const struct queued_order *order)
{
    return order->strategy ? order->strategy : settings_of(q, p)->strategy;
}

/* The number of batches that workers may have of a subqueue at once, unless the product is shut; 0: any number. */
static int64_t limit_of(const struct admission_queue *q, const struct product *p, enum combining subqueue)
{
    if (p->id == 0)
        return 0;
    return subqueue == COMBINE_NONE ? settings_of(q, p)->product_limit : 1;
}

/* ---- subqueues ------------------------------------------------------------------------------------------------- */

static void append(struct admission_queue *q, struct product *p, struct queued_order *order)
{
    struct subqueue *subqueue =
        &p->subqueues[p->id == 0 ? COMBINE_NONE : strategy_of(q, p, order)->combining];
    order->next = NULL;
    *subqueue->end = order;
    subqueue->end = &order->next;
    subqueue->waiting++;
    p->waiting++;
    q->waiting++;
    q->common_waiting += !p->own;
}

static struct queued_order *remove_first(struct admission_queue *q, struct product *p,
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

/* The subqueue with the earliest first order, of all subqueues or only of those below their limit; NULL: there is none. */
static struct subqueue *earliest(struct admission_queue *q, struct product *p, bool of_all)
{
    struct subqueue *found = NULL;
    for (int i = 0; i < COMBINE_COUNT; i++) {
        struct subqueue *subqueue = &p->subqueues[i];
        int64_t limit = limit_of(q, p, (enum combining)i);
        if (subqueue->first && (of_all || limit == 0 || subqueue->batches < limit) &&
            (!found || subqueue->first->deadline_us < found->first->deadline_us))
            found = subqueue;
    }
    return found;
}

static bool has_all_its_workers(const struct admission_queue *q, const struct product *p)
{
    return q->bounds.workers_of_product > 0 && p->id != 0 && p->batches >= q->bounds.workers_of_product;
}

static struct subqueue *next_subqueue(struct admission_queue *q, struct product *p)
{
    return is_shut(q, p) || has_all_its_workers(q, p) ? NULL : earliest(q, p, false);
}

/* ---- the list of products that have work -------------------------------------------------------------------- */

/* Adds the product to the list if a worker can take one of its orders now. A product is in the list at most once, so the
 * workers serve the products round robin. */
static void list(struct admission_queue *q, struct product *p)
{
    if (p->listed || !next_subqueue(q, p))
        return;
    p->listed = true;
    p->next_ready = NULL;
    *q->end_ready = p;
    q->end_ready = &p->next_ready;
}

static struct product *unlist_first(struct admission_queue *q)
{
    struct product *p = q->first_ready;
    q->first_ready = p->next_ready;
    if (!q->first_ready)
        q->end_ready = &q->first_ready;
    p->listed = false;
    return p;
}

static bool needs_worker(const struct admission_queue *q)
{
    return q->first_ready && q->idle > 0;
}

/* Admits the product's waiting orders after a pause or a switch. The strategy may be a different one now, so the orders
 * may belong in other subqueues. */
static void reopen(struct admission_queue *q, struct product *p)
{
    struct queued_order *first = NULL, **end = &first;
    int64_t now_us = monotonic_us();
    for (struct subqueue *subqueue; (subqueue = earliest(q, p, true)) != NULL;) {
        *end = remove_first(q, p, subqueue);
        end = &(*end)->next;
    }
    for (struct queued_order *order = first, *next; order; order = next) {
        next = order->next;
        order->since_us = now_us;
        append(q, p, order);
    }
    list(q, p);
}

/* ---- adding and taking orders ------------------------------------------------------------------------------ */

struct admission_queue *admission_new(const struct settings *settings, const struct admission_bounds *bounds)
{
    struct admission_queue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->end_ready = &q->first_ready;
    q->settings = *settings;
    q->bounds = *bounds;
    return q;
}

static void free_product(void *product)
{
    struct product *p = product;
    free(p->own);
    free(p);
}

void admission_free(struct admission_queue *q)
{
    if (!q)
        return;
    tdestroy(q->products, free_product);
    pthread_cond_destroy(&q->changed);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->mutex);
    free(q);
}

static bool is_full(const struct admission_queue *q, const struct product *p)
{
    return q->bounds.orders_of_product > 0 && p->id != 0 && p->waiting >= q->bounds.orders_of_product;
}

enum admission admission_add(struct admission_queue *q, struct queued_order *order)
{
    enum admission admission = QUEUE_FULL;
    order->since_us = monotonic_us();
    pthread_mutex_lock(&q->mutex);
    bool room = !q->closed && q->waiting < q->bounds.orders;
    struct product *p = room ? find_or_add(q, order->product_id) : NULL;
    if (p && is_full(q, p)) {
        admission = PRODUCT_FULL;
    } else if (p) {
        append(q, p, order);
        list(q, p);
        admission = ADMITTED;
    }
    bool wake = needs_worker(q);
    pthread_mutex_unlock(&q->mutex);
    if (wake)
        pthread_cond_signal(&q->work);
    return admission;
}

static bool has_expired(const struct queued_order *order, int64_t now_us)
{
    return order->deadline_us <= now_us;
}

/* A second change waits until an order was handed out after the first one, so that changes cannot starve the orders. */
static void note_hand_out(struct admission_queue *q, struct product *p)
{
    bool awaited = p->resumed || (q->switched && !p->own);
    p->resumed = false;
    q->switched = q->switched && p->own;
    if (awaited)
        pthread_cond_broadcast(&q->changed);
}

static void hand_out_expired(struct admission_queue *q, struct product *p, struct subqueue *subqueue,
                             struct order_batch *ret_batch)
{
    *ret_batch = (struct order_batch){
        .settings = *settings_of(q, p), .orders = remove_first(q, p, subqueue), .count = 1, .expired = true};
    ret_batch->settings.strategy = strategy_of(q, p, ret_batch->orders);
    note_hand_out(q, p);
}

static size_t orders_in_batch(enum combining kind)
{
    return kind == COMBINE_NONE ? 1 : ORDER_BATCH_MAX;
}

/* Hands out the first orders of a subqueue, which is not empty and below its limit. */
static void hand_out(struct admission_queue *q, struct product *p, struct subqueue *subqueue, int64_t now_us,
                     struct order_batch *ret_batch)
{
    enum combining kind = (enum combining)(subqueue - p->subqueues);
    *ret_batch = (struct order_batch){
        .settings = *settings_of(q, p), .limited = limit_of(q, p, kind) > 0, .product = p, .subqueue = kind};
    ret_batch->settings.strategy = strategy_of(q, p, subqueue->first);
    struct queued_order **end = &ret_batch->orders;
    while (ret_batch->count < orders_in_batch(kind) && subqueue->first &&
           !has_expired(subqueue->first, now_us) &&
           strategy_of(q, p, subqueue->first) == ret_batch->settings.strategy) {
        *end = remove_first(q, p, subqueue);
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
    struct product *p = batch->product;
    batch->product = NULL;
    p->subqueues[batch->subqueue].batches--;
    p->batches--;
    q->batches--;
    q->common_batches -= !p->own;
    p->placing -= batch->count;
    if ((p->paused && p->batches == 0) || (q->switching && q->common_batches == 0))
        pthread_cond_broadcast(&q->changed);
    list(q, p);
    drop_if_unused(q, p);
}

/* Finds orders whose deadline has passed at products that are shut, because such products are not in the list. */
struct expiry {
    struct admission_queue *queue;
    int64_t now_us;
    struct product *found;
};

static void look_for_expired(const void *node, VISIT visit, void *arg)
{
    struct expiry *expiry = arg;
    struct product *p = *(struct product *const *)node;
    if ((visit != preorder && visit != leaf) || expiry->found || !is_shut(expiry->queue, p))
        return;
    const struct subqueue *subqueue = earliest(expiry->queue, p, true);
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
    hand_out_expired(q, expiry.found, earliest(q, expiry.found, true), ret_batch);
    drop_if_unused(q, expiry.found);
    return true;
}

/* False: no order can be handed out now. */
static bool take(struct admission_queue *q, struct order_batch *ret_batch)
{
    int64_t now_us = monotonic_us();
    if (take_expired(q, now_us, ret_batch))
        return true;
    while (q->first_ready) {
        struct product *p = unlist_first(q);
        struct subqueue *subqueue = next_subqueue(q, p);
        if (subqueue && has_expired(subqueue->first, now_us))
            hand_out_expired(q, p, subqueue, ret_batch);
        else if (subqueue)
            hand_out(q, p, subqueue, now_us, ret_batch);
        list(q, p);
        drop_if_unused(q, p);
        if (subqueue)
            return true;
    }
    return false;
}

static void wait_for_work(struct admission_queue *q)
{
    q->idle++;
    if (some_are_shut(q)) {
        int64_t until_us = q->expiry_checked_us + EXPIRY_CHECK_US;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        (void)pthread_cond_clockwait(&q->work, &q->mutex, CLOCK_MONOTONIC, &until);
    } else {
        pthread_cond_wait(&q->work, &q->mutex);
    }
    q->idle--;
}

void admission_end(struct admission_queue *q, struct order_batch *batch)
{
    if (!batch->product)
        return;
    pthread_mutex_lock(&q->mutex);
    end_batch(q, batch);
    bool wake = needs_worker(q);
    pthread_mutex_unlock(&q->mutex);
    if (wake)
        pthread_cond_signal(&q->work);
}

bool admission_next(struct admission_queue *q, struct order_batch *batch)
{
    bool taken;
    pthread_mutex_lock(&q->mutex);
    while (!(taken = take(q, batch)) && !(q->closed && q->waiting == 0))
        wait_for_work(q);
    bool wake = needs_worker(q);
    pthread_mutex_unlock(&q->mutex);
    if (!taken)
        pthread_cond_broadcast(&q->work); /* the other workers can end too */
    else if (wake)
        pthread_cond_signal(&q->work);
    return taken;
}

void admission_close(struct admission_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->closed = true;
    pthread_mutex_unlock(&q->mutex);
    pthread_cond_broadcast(&q->work);
}

/* ---- what is going on -------------------------------------------------------------------------------------- */

/* The number of waiting orders of the subqueue that further workers could place now. */
static size_t room_of(const struct admission_queue *q, const struct product *p, enum combining kind)
{
    int64_t limit = limit_of(q, p, kind), most = p->id == 0 ? 0 : q->bounds.workers_of_product;
    int64_t of_subqueue = limit == 0 ? INT32_MAX : limit - p->subqueues[kind].batches;
    int64_t of_product = most == 0 ? INT32_MAX : most - p->batches;
    int64_t batches = of_subqueue < of_product ? of_subqueue : of_product;
    return batches > 0 && !is_shut(q, p) ? (size_t)batches * orders_in_batch(kind) : 0;
}

static void add_load(struct admission_queue *q, const struct product *p, struct admission_load *load)
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

struct load_sum {
    struct admission_queue *queue;
    struct admission_load load;
};

static void add_load_of(const void *node, VISIT visit, void *arg)
{
    struct load_sum *sum = arg;
    if (visit == preorder || visit == leaf)
        add_load(sum->queue, *(struct product *const *)node, &sum->load);
}

struct admission_load admission_load(struct admission_queue *q, int64_t product_id)
{
    struct load_sum sum = {.queue = q};
    pthread_mutex_lock(&q->mutex);
    const struct product *p = product_id ? find(q, product_id) : NULL;
    if (p)
        add_load(q, p, &sum.load);
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

/* ---- changes ----------------------------------------------------------------------------------------------- */

/* Waits until a batch or a pause ends. False: DEADLINE has passed. */
static bool wait_for_change(struct admission_queue *q, int64_t deadline_us)
{
    struct timespec until = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
    return pthread_cond_clockwait(&q->changed, &q->mutex, CLOCK_MONOTONIC, &until) == 0;
}

/* Wakes the idle workers: while a product is shut they check for expired orders (wait_for_work). */
static void shut(struct admission_queue *q)
{
    pthread_cond_broadcast(&q->work);
}

static void end_pause(struct admission_queue *q, struct product *p)
{
    p->paused = false;
    p->resumed = true;
    q->pauses--;
    if (!is_shut(q, p))
        reopen(q, p);
    drop_if_unused(q, p);
    pthread_cond_broadcast(&q->changed);
    pthread_cond_signal(&q->work);
}

/* Waits until no other thread changes the product, and an order of it was handed out since the last change. NULL: DEADLINE
 * has passed, or memory is out. */
static struct product *wait_for_product(struct admission_queue *q, int64_t id, int64_t deadline_us)
{
    struct product *p;
    while ((p = find_or_add(q, id)) != NULL && (p->paused || (p->resumed && p->waiting > 0)))
        if (!wait_for_change(q, deadline_us))
            return NULL;
    return p;
}

static enum pausing pause_product(struct admission_queue *q, int64_t product_id, bool waits,
                                  int64_t deadline_us)
{
    pthread_mutex_lock(&q->mutex);
    const struct product *now = find(q, product_id);
    bool others = now && now->paused && !waits;
    struct product *p = others ? NULL : wait_for_product(q, product_id, deadline_us);
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
    end_pause(q, find(q, product_id));
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
}

static void reopen_common(const void *node, VISIT visit, void *arg)
{
    struct admission_queue *q = arg;
    struct product *p = *(struct product *const *)node;
    if ((visit == preorder || visit == leaf) && !p->own && !is_shut(q, p))
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
        pthread_cond_signal(&q->work);
    }
    pthread_mutex_unlock(&q->mutex);
    return in_time;
}

bool product_set_own(struct admission_queue *q, int64_t product_id, const struct settings *changes,
                     struct settings *ret_settings)
{
    pthread_mutex_lock(&q->mutex);
    struct product *p = find(q, product_id);
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
    struct settings settings = *settings_of(q, product_id ? find(q, product_id) : NULL);
    pthread_mutex_unlock(&q->mutex);
    return settings;
}

bool product_has_own(struct admission_queue *q, int64_t product_id)
{
    pthread_mutex_lock(&q->mutex);
    const struct product *p = find(q, product_id);
    bool has = p && p->own;
    pthread_mutex_unlock(&q->mutex);
    return has;
}
