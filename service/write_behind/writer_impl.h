/* What the writer's two files share: writer.c reads the stream, writer_batch.c stores what was read. */
#ifndef OVERSELL_SERVICE_WRITE_BEHIND_WRITER_IMPL_H
#define OVERSELL_SERVICE_WRITE_BEHIND_WRITER_IMPL_H

#include "base/clock.h"
#include "service/config/config.h"
#include "service/write_behind/reconcile.h"
#include "service/write_behind/writer.h"

#include <pthread.h>

enum {
    WRITER_BACK_OFF_FIRST_MS = 50, /* after an error, doubled … */
    WRITER_BACK_OFF_MAX_MS = 1000, /* … up to this */
    WRITER_TRANSACTION_MS = 10000,
    WRITER_LOCK_MS = 5000, /* a transaction's wait for the products' rows */
    WRITER_NAME_SIZE = INSTANCE_MAX + 24,
};

struct writer {
    struct order_ids *ids;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    bool stopping;
    atomic_bool awake;

    /* the thread's own */
    char consumer[WRITER_NAME_SIZE];
    struct db *db;
    struct redis_stock *stock;
    struct stream_batch batch;
    struct accepted_order orders[STREAM_BATCH_MAX];
    bool has_pending;  /* entries may be ours that are not done: after an error, or when we begin */
    int64_t pause_ms;  /* after the next error */
    int64_t took_us;   /* the last batch's writing */
    int64_t care_us;   /* when the next round is due */
    int64_t looked_at; /* the last product of the round before */

    atomic_ullong fates[WRITE_OUTDATED + 1], batches, spoilt, write_us;
    atomic_llong backlog;
};

static inline int64_t writer_from_now(int64_t ms)
{
    return monotonic_us() + ms * 1000;
}

bool writer_is_stopping(struct writer *writer);
/* Sleeps for MS, or until the end has come, or, while at rest, somebody wakes us. */
void writer_rest(struct writer *writer, int64_t ms);
/* Sleeps after an error. */
void writer_back_off(struct writer *writer);

/* Is STATUS, of a call to Redis, none of an error? Then it is logged, and entries of ours may be left pending. */
bool writer_redis_well(struct writer *writer, enum lock_status status);
/* PostgreSQL is connected, with the schema in place, and has time for one transaction. */
bool writer_database_well(struct writer *writer);

/* Writes the batch that was read and takes it off the stream; tries again until it is done, or until END_US where the end
 * has come. False where it is to be read again. */
bool writer_write_batch(struct writer *writer, int64_t end_us);

#endif
