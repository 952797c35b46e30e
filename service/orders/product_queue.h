/* The product queues within the admission queue, for its own files. Each product has its waiting orders, and the products that
 * have work for a worker are in a list. The caller of each function holds the admission queue's mutex. */
#ifndef OVERSELL_SERVICE_ORDERS_PRODUCT_QUEUE_H
#define OVERSELL_SERVICE_ORDERS_PRODUCT_QUEUE_H

#include "service/orders/admission_queue.h"

#include <pthread.h>
#include <sys/queue.h>

/* The waiting orders of a product that are combined in the same way. A batch has orders of one subqueue. */
struct subqueue {
    struct queued_order *first, **end;
    size_t waiting;
    int batches; /* that workers have taken and not ended */
};

/* A product that has waiting orders, orders that are being placed, a pause, or own settings. */
struct product_queue {
    int64_t id; /* first: the tree's key */
    struct subqueue subqueues[COMBINE_COUNT];
    size_t waiting, placing; /* orders */
    int batches;
    bool paused;
    bool resumed;         /* a pause has ended, and no order has been handed out since */
    struct settings *own; /* NULL: it follows the common settings */
    bool listed;
    struct product_queue *next_ready;
};

/* A worker that waits for work. */
struct idle_worker {
    pthread_cond_t work; /* woken is set */
    bool woken; /* it is out of the list: a product is listed, something is shut, or the worker has to end */
    SLIST_ENTRY(idle_worker) next;
};

struct admission_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a batch or a pause has ended */
    void *products;         /* tsearch's tree, by id */
    struct product_queue *first_ready, **end_ready;
    struct settings settings;
    int own_count;
    bool switching; /* the common settings are being changed */
    /* A switch has ended, changed or not, and no order under the common settings has been handed out since. */
    bool switched;
    int pauses;                     /* products that are paused */
    int batches, common_batches;    /* under the common settings */
    size_t waiting, common_waiting; /* orders */
    struct admission_bounds bounds;
    SLIST_HEAD(, idle_worker) idle; /* the one that became idle last is the first */
    bool waking;                    /* one of them was woken, and has not come yet */
    bool closed;
    int64_t expiry_checked_us;
};

/* NULL: the product has no queue. */
struct product_queue *product_queue_find(struct admission_queue *q, int64_t id);
/* NULL: out of memory. */
struct product_queue *product_queue_find_or_add(struct admission_queue *q, int64_t id);
/* Frees the product's queue if it holds no state. */
void product_queue_drop_if_unused(struct admission_queue *q, struct product_queue *p);

/* Is the product paused, or do its settings change now? Then no order of it is handed out. */
bool product_is_shut(const struct admission_queue *q, const struct product_queue *p);
/* The product's own settings, or the common ones (P may be NULL). */
const struct settings *settings_of_product(const struct admission_queue *q, const struct product_queue *p);
/* The strategy that the order asks for, or else its product's. */
const struct strategy *strategy_of_order(const struct admission_queue *q, const struct product_queue *p,
                                         const struct queued_order *order);

/* Adds the order as the last one of its subqueue. */
void product_queue_append(struct admission_queue *q, struct product_queue *p, struct queued_order *order);
/* Takes the first order out of SUBQUEUE, which has one. */
struct queued_order *product_queue_remove_first(struct admission_queue *q, struct product_queue *p,
                                                struct subqueue *subqueue);

/* How many batches of the subqueue workers may place at once while the product is not shut; 0: any number. */
int64_t subqueue_limit(const struct admission_queue *q, const struct product_queue *p,
                       enum combining subqueue);
/* How many orders a batch of the subqueue may have. */
size_t orders_in_batch(const struct admission_queue *q, const struct product_queue *p,
                       enum combining subqueue);
/* The subqueue whose first order has the earliest deadline; OF_ALL false: only among the subqueues below their limit. NULL:
 * there is none. */
struct subqueue *product_queue_earliest(struct admission_queue *q, struct product_queue *p, bool of_all);
/* The subqueue of which a worker can take a batch now; NULL: there is none. */
struct subqueue *product_queue_next(struct admission_queue *q, struct product_queue *p);

/* Adds the product to the list of those that have work, unless a worker cannot take one of its orders now. A product is in
 * the list at most once, so the workers serve the products round robin. */
void ready_list_add(struct admission_queue *q, struct product_queue *p);
/* Takes the first product out of the list, which is not empty. */
struct product_queue *ready_list_take(struct admission_queue *q);

/* Adds the numbers of the product's orders to LOAD. */
void product_queue_add_load(struct admission_queue *q, const struct product_queue *p,
                            struct admission_load *load);

/* admission_queue.c: wakes an idle worker if orders are ready and none is on its way. */
void admission_wake_one(struct admission_queue *q);
void admission_wake_all(struct admission_queue *q);

#endif
