/* One order service, seen from outside: the calls of its HTTP API that a load test needs. One thread at a
 * time. */
#ifndef OVERSELL_LOADTEST_CLIENT_SERVICE_CLIENT_H
#define OVERSELL_LOADTEST_CLIENT_SERVICE_CLIENT_H

#include "loadtest/client/answer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct service_client;

/* The audit of one product, in units; see GET /audit. */
struct books {
    int64_t initial, left, sold, orders, oversold, drift, negative, in_flight;
    int64_t amounts_wrong; /* orders whose amount is not the price times the quantity of their items */
    bool balanced, mixed;
    bool has_witness;
    int64_t witness_seen, witness_orders[2];
};

/* Reads the answer of GET /audit. NULL, or the name of the first member that is missing or wrong; then RET_BOOKS is unchanged. Pure. */
const char *books_parse(const json_t *audit, struct books *ret_books);

/* A client of the service at URL ("http://host:port", copied) with the admin TOKEN, or NULL. NULL: out of
 * memory. */
struct service_client *service_client_open(const char *url, const char *token);
void service_client_close(struct service_client *client);
const char *service_client_url(const struct service_client *client);
/* What went wrong in the call that failed last: one sentence that names the call. */
const char *service_client_error(const struct service_client *client);
/* Says that on stderr, unless it was an interrupt. Returns false. */
bool service_client_failed(const struct service_client *client);

/* The calls from now on are for cleaning up: an interrupt does not end them, and their deadline is short. */
void service_client_begin_cleanup(struct service_client *client);

/* Every call below has a deadline, ends at an interrupt, and returns false or NULL when it failed (see
 * service_client_error). JSON that is returned is the caller's. */

/* Every backend that the service needs answers. */
bool service_client_ready(struct service_client *client);
/* The strategy table: the array of GET /strategies. */
json_t *service_client_strategies(struct service_client *client);
/* The current strategy and its settings. PRODUCT 0: those of all products without their own. */
json_t *service_client_strategy(struct service_client *client, int64_t product);
/* Switches to the strategy, with its settings, of an object such as service_client_strategy returns. */
bool service_client_set_strategy(struct service_client *client, int64_t product, const json_t *settings);
/* Gets the lock wait, 0 ms or more, of one product, or the common one (PRODUCT 0). */
bool service_client_lock_wait(struct service_client *client, int64_t product, int64_t *ret_ms);
enum { SAME_LOCK_WAIT = -1 }; /* keeps the current lock wait */
/* Does the service place the waiting orders of a product in turn, where the strategy allows it? */
enum in_turn { SAME_IN_TURN = -1, NOT_IN_TURN, IN_TURN };
/* LOCK_WAIT_MS: 0 or more, or SAME_LOCK_WAIT. */
bool service_client_switch(struct service_client *client, int64_t product, const char *strategy,
                           int64_t think_ms, int64_t lock_wait_ms, enum in_turn in_turn);
/* Deletes the product's orders and sets its stock; makes the product if there is none. */
bool service_client_reset(struct service_client *client, int64_t product, int64_t stock, const char *kind);
/* Replaces the product's stock and price; its orders stay. */
bool service_client_replace(struct service_client *client, int64_t product, int64_t stock, const char *kind,
                            const char *price);
bool service_client_audit(struct service_client *client, int64_t product, struct books *ret_books);
/* Places one order without an Idempotency-Key. False: no answer came. */
bool service_client_order(struct service_client *client, int64_t product, int64_t quantity,
                          enum answer *ret_answer);
/* An order with an Idempotency-Key: its answer, and the order's id if it was created now or before. */
struct keyed_order {
    long status;
    int64_t id;    /* 0: none */
    bool mismatch; /* the key belongs to another order */
};
/* Places one, with the strategy STRATEGY (NULL: the current one). False: no answer came. */
bool service_client_order_again(struct service_client *client, const char *strategy, int64_t product,
                                int64_t quantity, const char *key, struct keyed_order *ret_order);
/* The metrics in Prometheus' text format, to be freed. */
char *service_client_metrics(struct service_client *client);
/* Recent orders' steps as Chrome trace JSON. */
json_t *service_client_traces(struct service_client *client);
/* The newest LIMIT orders of a product, step by step. */
json_t *service_client_recent(struct service_client *client, int64_t product, int limit);

#endif
