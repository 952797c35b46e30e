/* An order that is accepted in Redis and not in PostgreSQL yet, as its client sees it. */
#include "service/write_behind/accepted_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char accepted_status[] = "accepted";
const char accepted_strategy[] = "redis-stock";

bool accepted_amount(const char *price, int64_t quantity, char ret_amount[static 32])
{
    int64_t cents = 0;
    const char *point = strchr(price, '.');
    if (!point || point == price || strlen(point + 1) != 2)
        return false;
    for (const char *c = price; *c; c++)
        if (c != point && (*c < '0' || *c > '9' || __builtin_mul_overflow(cents, 10, &cents) ||
                           __builtin_add_overflow(cents, *c - '0', &cents)))
            return false;
    if (__builtin_mul_overflow(cents, quantity, &cents))
        return false;
    snprintf(ret_amount, 32, "%" PRId64 ".%02d", cents / 100, (int)(cents % 100));
    return true;
}

void order_of_accepted(const struct accepted_order *from, struct order *ret_order)
{
    *ret_order = (struct order){.id = from->id,
                                .product_id = from->product_id,
                                .quantity = from->quantity,
                                .stock_seen = from->stock_seen};
    if (!accepted_amount(from->price, from->quantity, ret_order->amount))
        snprintf(ret_order->amount, sizeof ret_order->amount, "0.00");
    snprintf(ret_order->status, sizeof ret_order->status, "%s", accepted_status);
    snprintf(ret_order->strategy, sizeof ret_order->strategy, "%s", accepted_strategy);
    snprintf(ret_order->created_at, sizeof ret_order->created_at, "%s", from->accepted_at);
}

void accepted_now(char ret_time[static 40])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(ret_time, 40, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ret_time + used, 40 - used, ".%06ldZ", now.tv_nsec / 1000);
}
