/* createOrder: read the product, check the stock, take some, insert the order and its item — under a strategy. */
#ifndef OVERSELL_SERVICE_ENGINE_CREATE_ORDER_H
#define OVERSELL_SERVICE_ENGINE_CREATE_ORDER_H

#include "db/orders/commit_recovery.h"
#include "service/engine/outcome.h"
#include "service/engine/strategy.h"

struct order_ids;
struct redis_stock;
struct unsold_list;

/* How far the end of an order is that create_order did not wait for. */
enum order_end {
    END_DONE, /* placing->result has the answer */
    END_SENT, /* COMMIT, or the one statement, is on its way: order_settle waits for it */
    END_OPEN  /* its result has come, but needs more statements: order_settle runs them */
};

struct order_result {
    enum outcome outcome;
    struct order order;          /* ORDER_CREATED, ORDER_ACCEPTED, ORDER_REPLAYED */
    int tries;                   /* how often it was tried, at least 1 */
    int64_t available;           /* ORDER_SOLD_OUT: what is left, or STOCK_UNSEEN */
    char kind[16];               /* ORDER_WRONG_STOCK_KIND: the product's */
    const char *backend;         /* ORDER_BACKEND_UNAVAILABLE: its name; static */
    bool lock_lost_after_commit; /* the order stands, but its lock had ended before it was released */
    char error[320];             /* for the log: what went wrong below */
};

/* One order being placed, by one thread, with things that this thread owns. */
struct placing {
    const struct strategy *strategy;
    const struct order_request *request;
    struct db *db;
    struct lock *lock;         /* a handle of the strategy's lock, or NULL where it has none */
    struct redis_stock *redis; /* a connection to where its stock lies, and ids for it; or NULL */
    struct order_ids *ids;
    struct unsold_list *unsold; /* keeps units that could not be given back in time; or NULL */
    struct observer *observer;  /* told of every step; may be NULL */
    const char *instance;       /* this process's name, recorded with the order */
    bool together;       /* nobody follows the single steps: what nothing depends on travels with COMMIT */
    int64_t deadline_us; /* every wait ends here */
    int64_t lock_deadline_us; /* every wait for a lock ends here */

    /* NULL: create_order returns when the order's result is known. Not NULL: it may return before. Then this is called when the
     * result is known, possibly while a later order uses the same connection, which on_done must not use. It is not called if
     * create_order or order_settle itself finds out the result. */
    void (*on_done)(struct placing *placing);
    enum order_end end;          /* out */
    char end_xid[24];            /* of the transaction, for commit_recovery; "" where it is not known */
    struct order_result result;  /* out */
    struct stock_taken taken;    /* of the current try */
    struct insert_later insert;  /* of the current try */
    struct lost_commit lost;     /* outcome ORDER_UNKNOWN: the transaction whose result is unknown */
    struct lock_grant grants[2]; /* what is held now */
    int held;
};

/* Places the order; the answer is in placing->result. Bounded by the deadlines, and by a few seconds more where
 * a lost COMMIT has to be settled or units have to be given back. The lock is released on every path, the transaction ended. */
void create_order(struct placing *placing);

/* Ends an order whose end is not END_DONE: waits for the result, and settles a lost COMMIT. Then the answer is in
 * placing->result. */
void order_settle(struct placing *placing);

/* What a database status means for an order (DB_OK: ORDER_GO_ON); also notes what the log and the client need to know. */
enum outcome outcome_of_db(struct placing *placing, enum db_status status);
/* What the taking of stock means for it (TAKE_OK: ORDER_GO_ON). */
enum outcome outcome_of_take(struct placing *placing, enum take_status status);
/* What the claim of an Idempotency-Key means for it; ORDER_GO_ON: the key is new. */
enum outcome outcome_of_claim(enum key_claim claim);
/* Claims the request's Idempotency-Key, if it has one, in the open transaction. ORDER_GO_ON: the key is new, or there is none. */
enum outcome claim_key(struct placing *placing);
/* Commits if OUTCOME is ORDER_GO_ON, and reports STEP; rolls back otherwise, and returns OUTCOME. Finds out what became of a
 * COMMIT without a reply. Returns ORDER_CREATED, and ORDER_GO_ON after STEP_COMMIT_STOCK, when the order is still to come. */
enum outcome end_transaction(struct placing *placing, enum outcome outcome, enum step step, const char *xid);

/* Sends the last statement of the order, and does not wait for its result: STATEMENT with VALUES, which is the whole order, or COMMIT
 * (NULL) of the transaction XID. Then placing->end is END_SENT. ORDER_GO_ON, or why it was not sent. Only if placing->on_done is set. */
enum outcome end_later(struct placing *placing, const struct statement *statement, const char *const *values,
                       const char *xid);

/* Places an order once, as one statement, for the strategy table. Never ORDER_GO_ON. */
enum outcome place_in_one_statement(struct placing *placing);

#endif
