/* Takes stock in Redis with the service's own script in a bare loop: how many orders Redis accepts without the service. */
#include "tools/lockbench/lockbench.h"

#include "lock/redis/client/connection.h"
#include "service/write_behind/accepted_order.h"
#include "service/write_behind/redis_stock.h"
#include "tools/lockbench/threads.h"

#include <string.h>

#define LOOPS 2              /* one prepares its next orders while Redis works for the other */
#define PATIENCE_US 10000000 /* for a reply */
#define PATIENCE_MS 10000
#define PREFIX "bench" /* of keys that no service reads, so that nobody writes these orders to PostgreSQL */
#define SHOP "bench"
#define PRODUCT 1
#define EPOCH 1
#define UNITS INT64_C(1000000000000) /* more than a measurement can take */
#define STREAM_MAX 10000             /* entries; a service's writer keeps the stream short, too */

struct taker {
    struct redis_stock *stock;
    struct redis *keeper; /* empties the stream; NULL: another taker does */
    struct stock_orders orders;
    struct stock_order each[ORDER_BATCH_MAX];
    int64_t last_id;
};

static void forget_orders(struct redis *keeper)
{
    AUTO_REPLY reply = NULL;
    if (redis_command(keeper, NULL, PATIENCE_MS, &reply,
                      "UNLINK " PREFIX ":orders " PREFIX ":orders:accepted") != LOCK_OK)
        die("the stream in Redis cannot be emptied: %s", redis_error(keeper));
}

/* One script for all orders of this loop. */
static void taker_turn(void *own, int64_t end_us)
{
    struct taker *taker = own;
    struct stock_orders *orders = &taker->orders;
    char now[40];
    (void)end_us; /* a reply comes within microseconds, and an order that was sent cannot be taken back */
    accepted_now(now);
    orders->accepted_at = now;
    for (size_t i = 0; i < orders->count; i++)
        taker->each[i] = (struct stock_order){.id = taker->last_id += LOOPS, .quantity = 1};
    if (redis_stock_take(taker->stock, monotonic_us() + PATIENCE_US, orders) != LOCK_OK)
        die("the script in Redis: %s", redis_stock_error(taker->stock));
    if (orders->state != STOCK_TAKEN)
        die("the script in Redis: the stock is gone");
    for (size_t i = 0; i < orders->count; i++)
        if (taker->each[i].taking != TAKEN)
            die("the script in Redis: an order was refused");
    if (orders->backlog > STREAM_MAX && taker->keeper)
        forget_orders(taker->keeper);
}

/* SHARED: the number of orders in a script. */
static void taker_begin(void *own, void *shared, size_t member)
{
    struct taker *taker = own;
    taker->last_id = (int64_t)member;
    taker->orders = (struct stock_orders){.shop = SHOP,
                                          .product_id = PRODUCT,
                                          .instance = "bench",
                                          .orders = taker->each,
                                          .count = *(const size_t *)shared};
    taker->stock = redis_stock_new();
    taker->keeper = member == 0 ? redis_new(lock_config.redis_url, strlen(lock_config.redis_url)) : NULL;
    if (!taker->stock || (member == 0 && !taker->keeper))
        die("out of memory");
    taker_turn(taker, 0);
}

static void taker_end(void *own)
{
    struct taker *taker = own;
    redis_stock_free(taker->stock);
    redis_free(taker->keeper);
}

static void load_stock(void)
{
    int64_t deadline_us = monotonic_us() + PATIENCE_US;
    struct stock_survey survey = {0};
    bool done = false;
    struct redis_stock *stock = redis_stock_new();
    if (!stock)
        die("out of memory");
    if (redis_stock_survey(stock, deadline_us, PRODUCT, EPOCH, SHOP, false, &survey) != LOCK_OK ||
        redis_stock_load(stock, deadline_us, PRODUCT, EPOCH, "19.90", &survey, UNITS, &done) != LOCK_OK)
        die("the script in Redis: %s", redis_stock_error(stock));
    if (!done)
        die("Redis has restarted");
    survey_release(&survey);
    redis_stock_free(stock);
}

double redis_stock_takes(size_t threads, int64_t ms)
{
    static const struct thread_work WORK = {sizeof(struct taker), taker_begin, taker_turn, taker_end};
    size_t orders = threads / LOOPS;
    orders = orders < 1 ? 1 : orders > ORDER_BATCH_MAX ? ORDER_BATCH_MAX : orders;
    lock_config.prefix = PREFIX;
    load_stock();
    return threads_run(&WORK, &orders, LOOPS, ms) * (double)orders;
}
