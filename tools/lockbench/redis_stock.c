/* Takes stock in Redis with the service's own script in a bare loop: how many orders Redis accepts without the service. */
#include "loadtest/bench/references.h"

#include "loadtest/testbed/redis_cli.h"
#include "service/write_behind/accepted_order.h"
#include "service/write_behind/redis_stock.h"

#include <stdio.h>

#define LOOPS 2              /* one prepares its next orders while Redis works for the other */
#define PATIENCE_US 10000000 /* for a reply */
#define PREFIX "bench" /* of keys that no service reads, so that nobody writes these orders to PostgreSQL */
#define SHOP "bench"
#define PRODUCT 1
#define EPOCH 1
#define UNITS INT64_C(1000000000000) /* more than a measurement can take */
#define STREAM_MAX 10000             /* entries; a service's writer keeps the stream short, too */

struct taker {
    struct redis_stock *stock;
    size_t member;
    struct stock_orders orders;
    struct stock_order each[ORDER_BATCH_MAX];
    int64_t last_id;
};

static bool fail(char *ret_reason, const char *what, const struct redis_stock *stock)
{
    snprintf(ret_reason, REASON_SIZE, "the script in Redis: %s%s", what,
             stock ? redis_stock_error(stock) : "");
    return false;
}

static bool forget_orders(void)
{
    return redis_tell(lock_config.redis_url, 0, "UNLINK " PREFIX ":orders " PREFIX ":orders:accepted");
}

/* One script for all orders of this loop. */
static bool take(void *own, int64_t end_us, char *ret_reason)
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
        return fail(ret_reason, "", taker->stock);
    if (orders->state != STOCK_TAKEN)
        return fail(ret_reason, "the stock is gone", NULL);
    for (size_t i = 0; i < orders->count; i++)
        if (taker->each[i].taking != TAKEN)
            return fail(ret_reason, "an order was refused", NULL);
    if (orders->backlog > STREAM_MAX && taker->member == 0 && !forget_orders())
        return fail(ret_reason, "the stream cannot be emptied", NULL);
    return true;
}

/* SHARED: the number of orders in a script. */
static bool begin(void *own, void *shared, size_t member, char *ret_reason)
{
    struct taker *taker = own;
    taker->member = member;
    taker->last_id = (int64_t)member;
    taker->orders = (struct stock_orders){.shop = SHOP,
                                          .product_id = PRODUCT,
                                          .instance = "bench",
                                          .orders = taker->each,
                                          .count = *(const size_t *)shared};
    taker->stock = redis_stock_new();
    return taker->stock ? take(taker, 0, ret_reason) : fail(ret_reason, "out of memory", NULL);
}

static void end(void *own)
{
    struct taker *taker = own;
    redis_stock_free(taker->stock);
}

static bool load_stock(char *ret_reason)
{
    int64_t deadline_us = monotonic_us() + PATIENCE_US;
    struct stock_survey survey = {0};
    bool done = false;
    struct redis_stock *stock = redis_stock_new();
    if (!stock)
        return fail(ret_reason, "out of memory", NULL);
    bool well = redis_stock_survey(stock, deadline_us, PRODUCT, EPOCH, SHOP, false, &survey) == LOCK_OK &&
                redis_stock_load(stock, deadline_us, PRODUCT, EPOCH, "19.90", &survey, UNITS, &done) ==
                    LOCK_OK;
    if (!well || !done)
        well = fail(ret_reason, well ? "Redis has restarted" : "", well ? NULL : stock);
    survey_release(&survey);
    redis_stock_free(stock);
    return well;
}

bool redis_stock_takes(const struct lock_config *config, size_t threads, int64_t ms,
                       struct progress *progress, double *ret_per_s, char *ret_reason)
{
    static const struct thread_work WORK = {
        .size = sizeof(struct taker), .begin = begin, .turn = take, .end = end};
    struct lock_config own_keys = *config;
    size_t orders = threads / LOOPS;
    orders = orders < 1 ? 1 : orders > ORDER_BATCH_MAX ? ORDER_BATCH_MAX : orders;
    own_keys.prefix = PREFIX;
    lock_configure(&own_keys);
    bool well = load_stock(ret_reason) &&
                threads_run(&WORK, &orders, LOOPS, ms, progress, ret_per_s, ret_reason);
    (void)forget_orders(); /* they end with the server at the latest */
    lock_configure(config);
    *ret_per_s *= (double)orders;
    return well;
}
