/* Stock in Redis: a script takes it and never goes below zero, and adds the accepted orders to a stream.
 *
 * The keys, behind the prefix of the locks (LOCK_PREFIX): `oversell:stock:1` is a hash with what is LEFT of product 1, the
 * EPOCH of that stock, its PRICE, and where it was CHECKED last: the server's run id and the name of the shop's database;
 * `oversell:orders` is the stream of orders that are accepted; `oversell:orders:accepted` a hash from their ids to their
 * entries; and `oversell:order-key:KEY` the id of the order that an Idempotency-Key stands for. Scripts touch several of
 * them, so the server must not be a cluster.
 *
 * A server that restarts has lost what it had not saved, so its stock must be checked against the orders before anything
 * is taken: it has a new run id, and a stock with another one counts as not loaded. So does one that is left over from
 * another database. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_REDIS_STOCK_H
#define OVERSELL_SERVICE_WRITE_BEHIND_REDIS_STOCK_H

#include "base/clock.h"
#include "db/orders/orders.h"
#include "db/orders/write_behind.h"
#include "lock/lock.h"

/* A connection to the server of REDIS_URL, made when first needed; one thread at a time. */
struct redis_stock;

/* Is REDIS_URL set? */
bool redis_stock_is_configured(void);

/* NULL when out of memory. */
struct redis_stock *redis_stock_new(void);
/* STOCK may be NULL. */
void redis_stock_free(struct redis_stock *stock);

/* The error of the last call; valid until the next call. */
const char *redis_stock_error(const struct redis_stock *stock);
uint64_t redis_stock_round_trips(const struct redis_stock *stock);

/* All calls below return by DEADLINE (monotonic_us). LOCK_AWAY: there is no connection, or no reply came; Redis may have
 * executed the call. LOCK_REFUSED: the server answers, but does not serve. LOCK_UNAVAILABLE: REDIS_URL is not set. */

/* ---- taking ---- */

enum taking {
    TAKEN,        /* value: what was left before it */
    TOO_FEW,      /* value: what is left */
    KEY_IS_KNOWN, /* value: the order that has the Idempotency-Key; nothing was taken */
};

struct stock_order {
    int64_t id, quantity;
    const char *receiver_name, *receiver_mobile, *idempotency_key; /* borrowed; NULL for none */
    int64_t gone;       /* 0, or the order that the key stands for and that does not exist any more */
    enum taking taking; /* out */
    int64_t value;
};

enum stock_state {
    STOCK_TAKEN,      /* every order has its answer */
    STOCK_NOT_LOADED, /* nothing was taken: see redis_stock_load */
    STOCK_CROWDED,    /* nothing was taken: too many orders wait to be written already */
};

enum { STOCK_BACKLOG_MAX = 100000 }; /* orders in the stream; with as many no more are accepted */

/* Orders of one product, in the order of their arrival. */
struct stock_orders {
    const char *shop; /* whose stock it must be */
    int64_t product_id;
    const char *instance, *accepted_at; /* RFC 3339 */
    struct stock_order *orders;
    size_t count; /* 1 to ORDER_BATCH_MAX */

    /* out */
    bool sent;              /* it may have been done, though no reply came */
    enum stock_state state; /* the rest is for STOCK_TAKEN */
    char price[20];         /* the product's */
    int64_t backlog;        /* orders in the stream before these */
};

/* Takes stock for the orders, and adds the orders that got theirs to the stream, in one step. */
enum lock_status redis_stock_take(struct redis_stock *stock, int64_t deadline_us,
                                  struct stock_orders *orders);

/* ---- looking, and correcting ---- */

/* What Redis has of one stock: of a product in one shop's database, with one epoch. */
struct stock_survey {
    bool loaded; /* Redis has that stock, and it was compared with PostgreSQL since Redis started */
    int64_t left;
    char checked[80]; /* the value of CHECKED that such a stock has now */
    size_t count;     /* of the orders that were taken from that stock and are still in the stream … */
    int64_t *ids, *quantities; /* … which survey_release frees */
};

/* Reads it as of one moment. FORGET deletes the stock in the same step, so that no order takes from it any more. */
enum lock_status redis_stock_survey(struct redis_stock *stock, int64_t deadline_us, int64_t product_id,
                                    int64_t epoch, const char *shop, bool forget,
                                    struct stock_survey *ret_survey);
void survey_release(struct stock_survey *survey);

/* Adds the difference between EXPECTED and what the survey found to the stock, or sets it to EXPECTED if it was not loaded.
 * *ret_done is false if the server has restarted since the survey. */
enum lock_status redis_stock_load(struct redis_stock *stock, int64_t deadline_us, int64_t product_id,
                                  int64_t epoch, const char *price, const struct stock_survey *survey,
                                  int64_t expected, bool *ret_done);

/* ---- the stream ---- */

/* Entries that were read from the stream. Starts zeroed. Strings, also those of the orders, are valid until its release. */
struct stream_batch {
    size_t entry_count;
    const char *entries[WRITE_BATCH_MAX]; /* their ids */
    const char *spoilt;                   /* the first that is no order: another program wrote it; or NULL */
    size_t count;                         /* the others are orders */
    struct accepted_order orders[WRITE_BATCH_MAX];
    void *reply; /* the batch's own */
};
void stream_release(struct stream_batch *batch);

/* Finds an order in the stream: batch->count is 1, or 0 if it is not there. */
enum lock_status redis_stream_find(struct redis_stock *stock, int64_t deadline_us, int64_t order_id,
                                   struct stream_batch *ret_batch);

/* What a consumer of the stream reads, at most WRITE_BATCH_MAX entries at a time. All consumers together form one group:
 * each entry is handed to one of them, and stays pending with it until it is done. */
enum stream_part {
    STREAM_NEW,     /* not handed to any consumer yet; waits up to WAIT_MS for the first */
    STREAM_PENDING, /* handed to this consumer before and not done */
    STREAM_LEFT,    /* handed to consumers that were idle for WAIT_MS: they become this consumer's */
};
enum lock_status redis_stream_read(struct redis_stock *stock, const char *consumer, enum stream_part part,
                                   int64_t wait_ms, struct stream_batch *ret_batch);

/* Removes the entries of BATCH from the stream. */
enum lock_status redis_stream_done(struct redis_stock *stock, const struct stream_batch *batch);

/* Counts the entries of the stream. */
enum lock_status redis_stream_length(struct redis_stock *stock, int64_t *ret_length);

/* Removes consumers that have nothing pending and were idle for IDLE_MS, and CONSUMER if it has nothing pending. */
enum lock_status redis_stream_sweep(struct redis_stock *stock, const char *consumer, int64_t idle_ms);

#endif
