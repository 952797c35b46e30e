/* The writer, second half: stores a batch of accepted orders in PostgreSQL, counts it, and removes it from the stream. */
#include "base/clock.h"
#include "service/write_behind/writer_impl.h"

#include "base/log.h"
#include "db/schema/migrate.h"
#include "service/write_behind/accepted_order.h"

#include <inttypes.h>

_Static_assert((int)STREAM_BATCH_MAX <= (int)BEHIND_MAX, "what is read together is written together");

bool writer_redis_well(struct writer *writer, enum lock_status status)
{
    if (status != LOCK_OK) {
        log_seldom(LOG_WARNING, "accepted orders wait: %s", redis_stock_error(writer->stock));
        writer->has_pending = true;
    }
    return status == LOCK_OK;
}

bool writer_database_well(struct writer *writer)
{
    db_set_deadline(writer->db, writer_from_now(WRITER_TRANSACTION_MS), writer_from_now(WRITER_LOCK_MS));
    return db_ready_with_schema(writer->db) == DB_OK;
}

static void fill(struct writer *writer)
{
    for (size_t i = 0; i < writer->batch.count; i++) {
        const struct stream_order *from = &writer->batch.orders[i];
        writer->orders[i] = (struct accepted_order){
            .id = from->id,
            .product_id = from->product_id,
            .epoch = from->epoch,
            .quantity = from->quantity,
            .stock_seen = from->seen,
            .price = from->price,
            .accepted_at = from->accepted_at,
            .instance = from->instance,
            .receiver_name = from->receiver_name,
            .receiver_mobile = from->receiver_mobile,
            .idempotency_key = from->idempotency_key,
        };
    }
}

static enum db_status write_some(struct writer *writer, struct accepted_order *orders, size_t count)
{
    if (!writer_database_well(writer))
        return DB_AWAY;
    enum db_status status = orders_write_behind(writer->db, orders, count, accepted_strategy);
    if (status != DB_OK)
        log_seldom(LOG_WARNING, "accepted orders wait: postgresql: %s", db_error(writer->db));
    return status;
}

/* Will the same orders be written when they are tried again later? Else one of them cannot be written at all. */
static bool may_succeed_later(enum db_status status)
{
    switch (status) {
    case DB_UNIQUE:
    case DB_CHECK:
    case DB_FOREIGN_KEY:
    case DB_OUT_OF_RANGE:
    case DB_ERROR: return false;
    default: return true;
    }
}

/* One of the batch cannot be written: each by itself, and that one is given up. Somebody else must have put it there. */
static enum db_status write_one_by_one(struct writer *writer)
{
    for (size_t i = 0; i < writer->batch.count; i++) {
        struct accepted_order *order = &writer->orders[i];
        enum db_status status = write_some(writer, order, 1);
        if (status != DB_OK && may_succeed_later(status))
            return status;
        if (status == DB_OK)
            continue;
        log_line(LOG_ERROR, "order %" PRId64 " of the stream cannot be written: %s", order->id,
                 db_error(writer->db));
        order->fate = WRITE_OUTDATED;
    }
    return DB_OK;
}

static void count_fates(struct writer *writer)
{
    for (size_t i = 0; i < writer->batch.count; i++)
        atomic_fetch_add(&writer->fates[writer->orders[i].fate], 1);
    atomic_fetch_add(&writer->spoilt, writer->batch.spoilt_count);
    atomic_fetch_add(&writer->batches, 1);
    atomic_fetch_add(&writer->write_us, (unsigned long long)writer->took_us);
    if (writer->batch.spoilt_count > 0)
        log_line(LOG_ERROR, "%zu entries of the stream are no orders, the first is %s; they are dropped",
                 writer->batch.spoilt_count, writer->batch.spoilt[0]);
}

/* What was not kept has left the stream without its units having been sold. */
static void repair_after(struct writer *writer)
{
    int64_t repaired = 0;
    struct reconciliation ignored;
    for (size_t i = 0; i < writer->batch.count; i++) {
        const struct accepted_order *order = &writer->orders[i];
        if (order->fate != WRITE_REJECTED && order->fate != WRITE_OUTDATED)
            continue;
        if (order->fate == WRITE_REJECTED)
            log_line(LOG_WARNING, "order %" PRId64 " was accepted and had to be rejected", order->id);
        if (order->product_id == repaired || !writer_database_well(writer))
            continue;
        repaired = order->product_id;
        (void)reconcile(writer->db, writer->stock, repaired, writer_from_now(WRITER_LOCK_MS), &ignored);
    }
}

bool writer_write_batch(struct writer *writer, int64_t end_us)
{
    int64_t started_us = monotonic_us();
    fill(writer);
    while (writer->batch.count > 0) {
        enum db_status status = write_some(writer, writer->orders, writer->batch.count);
        if (status != DB_OK && !may_succeed_later(status))
            status = write_one_by_one(writer);
        if (status == DB_OK)
            break;
        writer_back_off(writer);
        if (writer_is_stopping(writer) && monotonic_us() > end_us)
            return false;
    }
    writer->pause_ms = WRITER_BACK_OFF_FIRST_MS;
    writer->took_us = monotonic_us() - started_us;
    count_fates(writer);
    if (!writer_redis_well(writer, redis_stream_done(writer->stock, &writer->batch)))
        return false; /* they are met again, and found written */
    repair_after(writer);
    return true;
}
