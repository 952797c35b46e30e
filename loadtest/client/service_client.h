/* One order service, seen from outside: the calls of its HTTP API that a load test needs. One thread at a
 * time. */
#ifndef OVERSELL_LOADTEST_CLIENT_SERVICE_CLIENT_H
#define OVERSELL_LOADTEST_CLIENT_SERVICE_CLIENT_H

#include "loadtest/client/answer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shop;

/* The audit of one product, in units; see GET /audit. */
struct books {
    int64_t initial, left, sold, orders, oversold, drift, negative, in_flight;
    int64_t amounts_wrong; /* orders whose amount is not the price times the quantity of their items */
    bool balanced, mixed;
    bool has_witness;
    int64_t witness_seen, witness_orders[2];
};

/* A client of the service at URL ("http://host:port", copied) with the admin TOKEN, or NULL. NULL: out of
 * memory. */
struct shop *shop_open(const char *url, const char *token);
void shop_close(struct shop *shop);
const char *shop_url(const struct shop *shop);
/* What went wrong in the call that failed last: one sentence that names the call. */
const char *shop_error(const struct shop *shop);

/* The calls from now on are for cleaning up: an interrupt does not end them, and their deadline is short. */
void shop_begin_cleanup(struct shop *shop);

/* Every call below has a deadline, ends at an interrupt, and returns false or NULL when it failed (see
 * shop_error). JSON that is returned is the caller's. */

/* Every backend that the service needs answers. */
bool shop_ready(struct shop *shop);
/* The strategy table: the array of GET /strategies. */
json_t *shop_strategies(struct shop *shop);
/* The current strategy and its settings: of one product, or of all that have none of their own (PRODUCT 0). */
json_t *shop_strategy(struct shop *shop, int64_t product);
/* Switches to the strategy, with its settings, of an object such as shop_strategy returns. */
bool shop_set_strategy(struct shop *shop, int64_t product, const json_t *settings);
/* Gets the lock wait, 0 ms or more, of one product, or the common one (PRODUCT 0). */
bool shop_lock_wait(struct shop *shop, int64_t product, int64_t *ret_ms);
enum { SAME_LOCK_WAIT = -1 }; /* keeps the current lock wait */
/* LOCK_WAIT_MS: 0 or more, or SAME_LOCK_WAIT. */
bool shop_switch(struct shop *shop, int64_t product, const char *strategy, int64_t think_ms,
                 int64_t lock_wait_ms);
/* Deletes the product's orders and sets its stock; makes the product if there is none. */
bool shop_reset(struct shop *shop, int64_t product, int64_t stock, const char *kind);
/* Replaces the product's stock and price; its orders stay. */
bool shop_replace(struct shop *shop, int64_t product, int64_t stock, const char *kind, const char *price);
bool shop_audit(struct shop *shop, int64_t product, struct books *ret_books);
/* Places one order without an Idempotency-Key. False: no answer came. */
bool shop_order(struct shop *shop, int64_t product, int64_t quantity, enum answer *ret_answer);
/* The metrics in Prometheus' text format, to be freed. */
char *shop_metrics(struct shop *shop);
/* Recent orders' steps as Chrome trace JSON. */
json_t *shop_traces(struct shop *shop);
/* The newest LIMIT orders of a product, step by step. */
json_t *shop_recent(struct shop *shop, int64_t product, int limit);

#endif
