/* The admission queue. Every order waits here, in the queue of its product, until its product may place another order
 * and a worker is free.
 *
 * - Workers serve the products in turn (round robin), so a busy product cannot starve the others.
 * - A product has a limit of orders that are placed at once: its settings' product_limit, or one batch at a time where
 *   the strategy combines orders. Within a product the order that came first goes first.
 * - A product that is being reset, and every product that a switch of the strategy concerns, has the limit 0 meanwhile.
 *   Its orders wait here; no worker waits with them. The change waits only for the orders that are being placed.
 * - Between two changes at least one waiting order is handed out, so changes cannot starve the orders.
 * - An order whose deadline passes while it waits is handed out as expired, so that it gets its answer.
 *
 * All functions may be called by any thread. One mutex guards everything. It is held for a few instructions, or for a walk
 * over the products that have orders (a switch, the load of all products, a look for expired orders). */
#ifndef OVERSELL_SERVICE_ORDERS_ADMISSION_QUEUE_H
#define OVERSELL_SERVICE_ORDERS_ADMISSION_QUEUE_H

#include "base/clock.h"
#include "db/orders/orders.h"
#include "service/orders/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Products that can have their own settings; they keep them while the process lives. */
enum { OWN_SETTINGS_MAX = 256 };

struct admission_queue;
struct product_queue;

/* An order in the queue: a member of the caller's structure, which must not move until the order is handed out. */
struct queued_order {
    struct queued_order *next;       /* the queue's, then the batch's */
    int64_t product_id;              /* 0: no product; any number may be placed at once */
    const struct strategy *strategy; /* NULL: the product's current strategy */
    int64_t deadline_us;             /* monotonic_us; then the order is handed out as expired */
    int64_t since_us; /* out: when it began to wait for other orders: it came, or a reset or switch ended */
};

/* The work that a worker takes at once: one order, or several that one strategy places together. */
struct order_batch {
    struct queued_order *orders; /* linked by next, first come first */
    size_t count;                /* of the orders, at least 1 */
    struct settings settings;    /* of the orders; the strategy is the one that they asked for, if they did */
    bool expired;                /* one order whose deadline passed in the queue: the worker refuses it */
    bool limited; /* the product has a limit: the time since since_us counts as a wait for a lock */
    struct product_queue *product; /* for admission_end, with SUBQUEUE; NULL: there is nothing to end */
    enum combining subqueue;
};

/* Limits that keep one product from starving the others. */
struct admission_bounds {
    size_t orders;              /* may wait, of all products together … */
    size_t orders_of_product;   /* … and of one, or of none; 0: no other bound */
    int64_t workers_of_product; /* workers that place orders of one product at once; 0: any number */
};

/* NULL: out of memory. */
struct admission_queue *admission_new(const struct settings *settings, const struct admission_bounds *bounds);
/* No other thread may use QUEUE any more. It may be NULL. */
void admission_free(struct admission_queue *queue);

enum admission { ADMITTED, QUEUE_FULL, PRODUCT_FULL };

/* Adds an order; never waits. QUEUE_FULL: too many orders wait, memory is out, or the queue is closed. PRODUCT_FULL: too
 * many orders of this product wait. In both cases the caller keeps the order. */
enum admission admission_add(struct admission_queue *queue, struct queued_order *order);

/* For workers: waits for the next batch. False once the queue is closed and nothing waits. */
bool admission_next(struct admission_queue *queue, struct order_batch *batch);
/* Ends the batch after its orders were placed, so that others can follow. Call it before you answer the clients: a client
 * with an answer must not find its own order still in progress. */
void admission_end(struct admission_queue *queue, struct order_batch *batch);

/* Ends one order of the batch before the others; of the last one it is admission_end. */
void admission_end_one(struct admission_queue *queue, struct order_batch *batch);

/* Rejects further orders; the waiting orders are still handed out. */
void admission_close(struct admission_queue *queue);

/* Counts the orders of a product (0: of all products) at one moment. */
struct admission_load {
    size_t placing; /* in batches that workers have */
    size_t held;    /* waiting because the limit is reached or the product is paused */
    size_t ready;   /* waiting only for a free worker */
};
struct admission_load admission_load(struct admission_queue *queue, int64_t product_id);
/* How many workers have a batch. */
int admission_busy(struct admission_queue *queue);

/* Stops handing out the product's orders, and waits for the orders that are being placed. First waits for any other change
 * of the product. False: DEADLINE (monotonic_us) has passed, or memory is out; then the product is not paused. */
bool product_pause(struct admission_queue *queue, int64_t product_id, int64_t deadline_us);
/* As product_pause, but if another change of the product is in progress, returns PAUSE_OF_ANOTHER at once. So a client that
 * changes one product again and again occupies one thread at most. */
enum pausing { PAUSED, PAUSE_TOO_LATE, PAUSE_OF_ANOTHER };
enum pausing product_pause_first(struct admission_queue *queue, int64_t product_id, int64_t deadline_us);
/* Ends the pause, so that the waiting orders are handed out. */
void product_resume(struct admission_queue *queue, int64_t product_id);

/* Changes the common settings, which every product without its own settings follows: waits until no order of these
 * products is being placed, while their other orders wait here. CHANGES: sets a strategy that is not NULL and numbers that
 * are not negative; the rest stays. *ret_settings: the settings afterwards. False: DEADLINE has passed, and nothing is
 * changed. */
bool admission_switch(struct admission_queue *queue, const struct settings *changes, int64_t deadline_us,
                      struct settings *ret_settings);
/* The same for one product, which gets a copy of the common settings first if it has none yet. It must be paused.
 * False: there is no room for another product's settings (OWN_SETTINGS_MAX), or no memory. */
bool product_set_own(struct admission_queue *queue, int64_t product_id, const struct settings *changes,
                     struct settings *ret_settings);
/* The settings of a product: its own, or the common ones (also for 0). */
struct settings product_settings(struct admission_queue *queue, int64_t product_id);
bool product_has_own(struct admission_queue *queue, int64_t product_id);
/* May another product get its own settings now? */
bool own_settings_left(struct admission_queue *queue);

#endif
