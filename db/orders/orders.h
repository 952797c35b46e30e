/* Inserts orders and finds them again by Idempotency-Key. On the thread that uses DB. */
#ifndef OVERSELL_DB_ORDERS_ORDERS_H
#define OVERSELL_DB_ORDERS_ORDERS_H

#include "db/stock/stock.h"

enum { ORDER_KEY_MAX = 255, ORDER_NAME_MAX = 200, ORDER_MOBILE_MAX = 40 };

/* What a client asks for. Strings are borrowed UTF-8 without NUL; the optional ones may be NULL. */
struct order_request {
    int64_t product_id;
    int64_t quantity;
    const char *receiver_name;
    const char *receiver_mobile;
    const char *idempotency_key;
};

/* An order as it stands in the database. */
struct order {
    int64_t id;
    int64_t product_id;
    int64_t quantity;
    int64_t stock_seen; /* or STOCK_UNSEEN */
    char amount[32];    /* decimal */
    char status[16];
    char strategy[40];
    char created_at[40]; /* RFC 3339, UTC */
    char xid
        [24]; /* the transaction that inserted it, for commit_recovery; "" when it was found, not inserted */
};

/* Who places the order: recorded with it. */
struct order_origin {
    const char *strategy;
    const char *instance;
};

/* Inserts the order and its item for the stock that was TAKEN, in the open transaction. */
enum db_status orders_insert(struct db *db, const struct order_request *request,
                             const struct order_origin *origin, const struct stock_taken *taken,
                             struct order *ret_order);

/* As orders_insert, but the INSERT travels with COMMIT, and *ret_order is filled in then. */
struct insert_later {
    const struct order_request *request;
    struct order_origin origin;
    int64_t seen;
    struct observer *observer; /* gets STEP_INSERT; may be NULL */
    struct order *order;
};
enum db_status orders_insert_later(struct db *db, const struct stock_taken *taken,
                                   struct insert_later *insert);

/* Fills in the members of an order that its request and the stock that it saw tell. */
void order_known(const struct order_request *request, const struct order_origin *origin, int64_t seen,
                 struct order *ret_order);

enum key_claim {
    KEY_NEW,         /* ours to use, until the transaction ends */
    KEY_REPLAY,      /* the order exists: *ret_order */
    KEY_MISMATCH,    /* it exists and asked for something else */
    KEY_IN_PROGRESS, /* another transaction, here or in another process, is using it now */
};

/* Claims the request's Idempotency-Key in the open transaction. */
enum db_status orders_claim_key(struct db *db, const struct order_request *request, enum key_claim *ret_claim,
                                struct order *ret_order);

/* The whole of an order as one statement, which takes the stock only where enough is left: in its own
 * transaction (then a lost reply is DB_UNKNOWN) or in the open one. With TAKE_OK the order is in *ret_order. */
enum take_status orders_place_in_one(struct db *db, bool in_transaction, const struct order_request *request,
                                     const struct order_origin *origin, struct stock_taken *ret_taken,
                                     struct order *ret_order);

/* The statement by itself with its parameters, which are valid to the end of the enclosing block, and its result. */
#define PLACE_IN_ONE_VALUES(request, origin)                                                                 \
    {                                                                                                        \
        DB_NUMBER((request)->product_id), DB_NUMBER((request)->quantity), (request)->receiver_name,          \
            (request)->receiver_mobile, (request)->idempotency_key, (origin)->instance, (origin)->strategy   \
    }
enum take_status order_placed(const PGresult *row, const struct order_request *request,
                              const struct order_origin *origin, struct stock_taken *ret_taken,
                              struct order *ret_order);

enum { ORDER_BATCH_MAX = 128 }; /* orders that one transaction may carry */

/* One of many orders that are placed by one transaction. */
struct order_draft {
    const struct order_request *request;
    struct order *order;  /* out: KEY_REPLAY, or inserted */
    enum key_claim claim; /* out of orders_claim_keys */
    int64_t seen;         /* into orders_insert_batch: what was left of the stock when its turn came */
};

/* As orders_claim_key, for drafts that all have a key, each its own. */
enum db_status orders_claim_keys(struct db *db, struct order_draft *drafts, size_t count);

/* Writes LEFT as what is left of the product that TAKEN has read under a lock, and inserts the orders. */
enum db_status orders_insert_batch(struct db *db, struct order_draft *drafts, size_t count,
                                   const struct order_origin *origin, const struct stock_taken *taken,
                                   int64_t left);

#endif
