/* The ways to take units of a product's stock: the stock policies. Each row of the strategy table names one. Those of a counter
 * are in counter.c and fenced.c, the others in units.c and buckets.c. All run inside a transaction that the caller opened and
 * ends, on the thread that uses the connection. */
#ifndef OVERSELL_DB_STOCK_STOCK_H
#define OVERSELL_DB_STOCK_STOCK_H

#include "base/observer.h"
#include "db/stock/kinds.h"

/* An order's stock_seen where the policy read nothing. */
#define STOCK_UNSEEN INT64_MIN

enum take_status {
    TAKE_OK,
    TAKE_NO_PRODUCT,
    TAKE_WRONG_KIND, /* the product's stock is of another kind than the policy takes: stock_taken.kind */
    TAKE_SOLD_OUT,   /* fewer than wanted are left: stock_taken.available */
    TAKE_BUSY,       /* enough are left, but others hold them: nothing was waited for */
    TAKE_CONFLICT,   /* an order or a reset changed the row after it was read: try again */
    TAKE_LOCK_LOST,  /* refused: a newer holder's fencing token was met, or the lock is no longer ours */
    TAKE_FAILED      /* stock_taken.db_status says why */
};

/* A fencing token, which only grows, and the lock service that it is of: "redis", "zookeeper" or "etcd". */
struct fence {
    const char *service;
    int64_t token;
};

struct stock_want {
    int64_t product_id;
    int64_t quantity;
    const char *updated_by;
    struct observer *observer; /* told of lock, read, write, take; may be NULL */
    struct fence fence;        /* for the fenced policies */
    bool later; /* nobody waits for the single steps: a write of a locked row may travel with COMMIT */
    bool (*still_held)(void *holder); /* for take_checked: is the lock around it still ours? */
    void *holder;
};

struct stock_taken {
    enum db_status db_status;
    int64_t seen;      /* the stock that was read, or STOCK_UNSEEN */
    int64_t version;   /* of the row that was read */
    int64_t epoch;     /* of the stock that was read: product.stock_epoch */
    int64_t available; /* with TAKE_SOLD_OUT: what is left, or STOCK_UNSEEN where it could not be read */
    char kind[16];     /* with TAKE_WRONG_KIND: what the product's stock is */
    char price[20];    /* decimal */
    char read_at[40];  /* when it was read, or "" */
    char snapshot
        [600];    /* what the read could see (db/schema/001.sql); "": it locked the row's newest version */
    char xid[24]; /* the transaction that wrote the stock, for commit_recovery and the audit */
};

typedef enum take_status stock_take_fn(struct db *db, const struct stock_want *want,
                                       struct stock_taken *ret_taken);

/* Where the lock's fencing token is checked by the product's row. */
enum fencing {
    FENCE_NONE,
    FENCE_ON_WRITE,    /* by the write alone: the usual picture, which is not enough */
    FENCE_BEFORE_READ, /* registered before the read, demanded by the write */
};

/* A way to take stock. What a policy leaves out is zero. */
struct stock_policy {
    stock_take_fn *take;  /* NULL: the strategy's way of placing an order takes the stock, too */
    const char *name;     /* in JSON */
    enum stock_kind kind; /* what it takes; of a product of another kind it takes nothing: TAKE_WRONG_KIND */
    enum fencing
        fencing;    /* its write compares the fencing token, which the strategy must provide like this */
    bool locks_all; /* orders of all other products wait too */
    bool asks_lock; /* after its read it asks the lock whether the order still holds it */
    /* the step whose statement takes the row's lock (LOCK: another lock of the transaction), and so waits for the order that has it; 0:
     * none does */
    enum step locks_at;
    bool seen_is_stale; /* the database may subtract from a newer stock than the one that the order read */
};

extern const struct stock_policy
    take_read_write,        /* read, check and subtract in the program, write the result: loses updates */
    take_decrement,         /* check in the program, then subtract in the database, unguarded */
    take_decrement_checked, /* the same, with CHECK (count >= 0) switched on for the row */
    take_guarded,           /* one UPDATE that subtracts only where enough is left */
    take_for_update,        /* SELECT … FOR UPDATE, then as read-write */
    take_optimistic,        /* as read-write, but only where the version is still the one read */
    take_table_lock,        /* LOCK TABLE … IN EXCLUSIVE MODE, then as read-write */
    take_advisory_lock,     /* pg_advisory_xact_lock, then as read-write */
    take_checked,           /* as read-write, but asks the lock in between whether it still holds */
    take_fence_on_write,    /* as read-write, but only where no newer token has written */
    take_fenced,            /* as read-write, but only while the token registered before is still ours */
    take_units,             /* kind units: lock as many as wanted that nobody else has locked, delete them */
    take_buckets,           /* kind buckets: from one that has enough, else from several */
    take_while_placing,     /* the way of placing an order takes from the counter in its own statement */
    take_in_redis;          /* the way of placing an order takes from the stock in Redis */

/* Locks the product's row and reads it, as take_for_update does before it writes: TAKE_OK whatever is left. */
enum take_status stock_lock(struct db *db, int64_t product_id, struct stock_taken *ret_taken);

/* Gives QUANTITY units back to the stock of this EPOCH, in a separate transaction. Connects if there is no connection. DB_OK
 * with "" in ret_xid: that stock has been replaced since, and nothing was given back. DB_UNKNOWN: ret_xid is the transaction,
 * for commit_recovery. The caller holds the lock under which the units were taken, because other orders write a count that
 * they have computed. */
enum db_status stock_give_back(struct db *db, int64_t product_id, int64_t epoch, int64_t quantity,
                               const char *updated_by, char ret_xid[static 24]);

/* Does the product's row keep tokens of this lock service? */
bool fence_is_kept(const char *service);

#define FENCE_NO_PRODUCT (-1)

/* Registers the token on the product's row, for take_fenced, outside a transaction and so committed at once.
 * *ret_registered: it is newer than all before; else *ret_stored is what was registered, or FENCE_NO_PRODUCT. */
enum db_status fence_register(struct db *db, int64_t product_id, const struct fence *fence,
                              int64_t *ret_stored, bool *ret_registered);

/* How many are left, read on its own, outside a transaction: for a sold-out answer after a failed statement. */
enum db_status stock_available(struct db *db, int64_t product_id, int64_t *ret_available);

#endif
