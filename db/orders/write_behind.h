/* Writes orders that were accepted in Redis to the database, each exactly once, recognized by its id. On the thread that uses
 * DB. */
#ifndef OVERSELL_DB_ORDERS_WRITE_BEHIND_H
#define OVERSELL_DB_ORDERS_WRITE_BEHIND_H

#include "db/stock/kinds.h"

#include <stddef.h>

enum { WRITE_BATCH_MAX = 500 }; /* orders that one transaction writes */
enum {
    SHOP_NAME_SIZE = 24
}; /* of a shop's name, which tells this database from any other, older or elsewhere */

/* What has become of an accepted order. */
enum write_fate {
    WRITE_DONE,
    WRITE_KNOWN, /* it had been written before */
    WRITE_REJECTED, /* recorded as rejected: the stock does not suffice, or another order has its Idempotency-Key */
    WRITE_OUTDATED, /* not recorded: the stock that it was taken from has been replaced by a reset */
};

/* An order that was accepted in Redis. Strings are borrowed UTF-8; the receiver's and the key may be NULL. */
struct accepted_order {
    int64_t id;
    int64_t product_id;
    int64_t epoch; /* of the stock that it was taken from */
    int64_t quantity;
    int64_t stock_seen;
    const char *price, *accepted_at, *instance; /* decimal, RFC 3339, name */
    const char *receiver_name, *receiver_mobile, *idempotency_key;
    enum write_fate fate; /* out */
};

/* Writes COUNT (1 to WRITE_BATCH_MAX) orders of any products, and lowers the products' counts by what they take, in one
 * separate transaction. DB_OK: every order has its fate, and all that was written is committed. After any other status
 * nothing is known, and the call may be repeated. */
enum db_status orders_write_behind(struct db *db, struct accepted_order *orders, size_t count,
                                   const char *strategy);

/* Draws COUNT ids for orders to come; no other order ever gets them. *ret_shop is this database. */
enum db_status orders_draw_ids(struct db *db, int64_t *ret_ids, size_t count,
                               char ret_shop[static SHOP_NAME_SIZE]);

/* A product as those need it who keep its stock elsewhere. */
struct product_behind {
    bool found;
    char kind[16];
    int64_t count; /* what the orders that have been written so far have left */
    int64_t epoch;
    char price[20]; /* decimal */
    char shop[SHOP_NAME_SIZE];
};

/* Locks the product's row in the open transaction, which keeps every writer out, and reads it. */
enum db_status product_behind_lock(struct db *db, int64_t product_id, struct product_behind *ret_product);

/* Of COUNT orders those that have not been written yet: how many, and of how many units. With the product's row locked
 * the answer stays true until the transaction ends. */
enum db_status orders_unwritten(struct db *db, const int64_t *ids, const int64_t *quantities, size_t count,
                                int64_t *ret_orders, int64_t *ret_units);

/* Will ORDER never be written, because its stock was replaced, by a reset for example, or its product deleted? Connects if needed. False
 * also if the database does not answer: then it is not known. */
bool order_is_outdated(struct db *db, const struct accepted_order *order);

/* The ids of at most MOST products with stock in Redis, ascending, those above AFTER. */
enum db_status products_behind(struct db *db, int64_t after, int64_t *ret_ids, size_t most,
                               size_t *ret_count);

#endif
