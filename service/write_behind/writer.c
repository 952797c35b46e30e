/* The writer: a thread that reads accepted orders from the stream in Redis, stores them in PostgreSQL, and looks after the
 * stream. */
#include "service/write_behind/writer.h"

#include "base/clock.h"
#include "base/log.h"
#include "db/schema/migrate.h"
#include "service/config/config.h"
#include "service/write_behind/accepted_order.h"
#include "service/write_behind/reconcile.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REST_MS = 2000, /* between two looks whether there is a stream, while nobody here accepts orders */
    BLOCK_MS = 250, /* waiting for the next order; also how late a stop is seen */
    GATHER_MS = 25, /* after a batch that was not full: the next shall be more than one order */
    EASE = 4,       /* see ease */
    EASE_MAX_MS = 400,
    EASE_BACKLOG = STOCK_BACKLOG_MAX * 2 / 5,
    DRAIN_MS = 10000,       /* at the end */
    CARE_MS = 2000,         /* between two rounds of looking after what others have left, and of repairs */
    DEAD_MS = 5000,         /* a consumer that has not been heard of for so long loses its entries … */
    FORGOTTEN_MS = 60000,   /* … and its name */
    REPAIRS = 20,           /* products looked at in a round */
    REPAIR_BACKLOG = 5000,  /* … unless this many orders wait, which would make the look a long one */
    BACK_OFF_FIRST_MS = 50, /* after an error, doubled … */
    BACK_OFF_MAX_MS = 1000, /* … up to this */
    TRANSACTION_MS = 10000,
    LOCK_MS = 5000, /* a transaction's wait for the products' rows */
};

struct writer {
    struct order_ids *ids;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards STOPPING, and the change of AWAKE */
    pthread_cond_t changed;
    bool stopping;
    atomic_bool awake;

    /* for the thread alone */
    char consumer[INSTANCE_MAX + 24];
    struct db *db;
    struct redis_stock *stock;
    struct stream_batch batch;
    bool has_pending;  /* this consumer may have entries that are not done: after an error, or at the start */
    int64_t pause_ms;  /* after the next error */
    int64_t took_us;   /* to write the last batch */
    int64_t care_us;   /* when the next round of take_care is due */
    int64_t looked_at; /* the last product of the previous round */

    atomic_ullong fates[WRITE_OUTDATED + 1], batches, spoilt, write_us;
    atomic_llong backlog;
};

static int64_t from_now(int64_t ms)
{
    return monotonic_us() + ms * 1000;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

static bool is_stopping(struct writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    bool stopping = writer->stopping;
    pthread_mutex_unlock(&writer->mutex);
    return stopping;
}

/* Sleeps for MS, until the writer stops or, if it is not awake, until writer_wake. */
static void rest(struct writer *writer, int64_t ms)
{
    int64_t until_us = from_now(ms);
    bool was_awake = atomic_load(&writer->awake);
    pthread_mutex_lock(&writer->mutex);
    while (!writer->stopping && atomic_load(&writer->awake) == was_awake &&
           wait_until(&writer->changed, &writer->mutex, until_us))
        ;
    pthread_mutex_unlock(&writer->mutex);
}

/* Sleeps after an error. */
static void back_off(struct writer *writer)
{
    if (is_stopping(writer)) /* nothing else is to be woken for */
        nanosleep(&(struct timespec){.tv_nsec = INT64_C(1000000) * BACK_OFF_FIRST_MS}, NULL);
    else
        rest(writer, writer->pause_ms);
    writer->pause_ms = writer->pause_ms * 2 < BACK_OFF_MAX_MS ? writer->pause_ms * 2 : BACK_OFF_MAX_MS;
}

void writer_wake(struct writer *writer)
{
    if (!writer || atomic_load_explicit(&writer->awake, memory_order_relaxed))
        return;
    pthread_mutex_lock(&writer->mutex);
    atomic_store(&writer->awake, true);
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

/* ---- storing a batch in PostgreSQL ----------------------------------------------------------------------------------- */

/* Returns whether STATUS, of a call to Redis, is LOCK_OK. Otherwise logs the error, and entries may be left pending. */
static bool redis_well(struct writer *writer, enum lock_status status)
{
    if (status != LOCK_OK) {
        log_seldom(LOG_WARNING, "accepted orders wait: %s", redis_stock_error(writer->stock));
        writer->has_pending = true;
    }
    return status == LOCK_OK;
}

/* Is PostgreSQL connected, with the schema in place? Then there is time for one transaction. */
static bool database_well(struct writer *writer)
{
    db_set_deadline(writer->db, from_now(TRANSACTION_MS), from_now(LOCK_MS));
    return db_ready_with_schema(writer->db) == DB_OK;
}

static enum db_status write_some(struct writer *writer, struct accepted_order *orders, size_t count)
{
    if (!database_well(writer))
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
        struct accepted_order *order = &writer->batch.orders[i];
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
        atomic_fetch_add(&writer->fates[writer->batch.orders[i].fate], 1);
    size_t spoilt = writer->batch.entry_count - writer->batch.count;
    atomic_fetch_add(&writer->spoilt, spoilt);
    atomic_fetch_add(&writer->batches, 1);
    atomic_fetch_add(&writer->write_us, (unsigned long long)writer->took_us);
    if (spoilt > 0)
        log_line(LOG_ERROR, "%zu entries of the stream are no orders, the first is %s; they are dropped",
                 spoilt, writer->batch.spoilt);
}

/* What was not kept has left the stream without its units having been sold. */
static void repair_after(struct writer *writer)
{
    int64_t repaired = 0;
    struct reconciliation ignored;
    for (size_t i = 0; i < writer->batch.count; i++) {
        const struct accepted_order *order = &writer->batch.orders[i];
        if (order->fate != WRITE_REJECTED && order->fate != WRITE_OUTDATED)
            continue;
        if (order->fate == WRITE_REJECTED)
            log_line(LOG_WARNING, "order %" PRId64 " was accepted and had to be rejected", order->id);
        if (order->product_id == repaired || !database_well(writer))
            continue;
        repaired = order->product_id;
        (void)reconcile(writer->db, writer->stock, repaired, from_now(LOCK_MS), &ignored);
    }
}

/* Writes the batch that was read and removes it from the stream. Tries until that is done or, once the writer stops, until
 * END_US. False: the batch has to be read again. */
static bool write_batch(struct writer *writer, int64_t end_us)
{
    int64_t started_us = monotonic_us();
    while (writer->batch.count > 0) {
        enum db_status status = write_some(writer, writer->batch.orders, writer->batch.count);
        if (status != DB_OK && !may_succeed_later(status))
            status = write_one_by_one(writer);
        if (status == DB_OK)
            break;
        back_off(writer);
        if (is_stopping(writer) && monotonic_us() > end_us)
            return false;
    }
    writer->pause_ms = BACK_OFF_FIRST_MS;
    writer->took_us = monotonic_us() - started_us;
    count_fates(writer);
    if (!redis_well(writer, redis_stream_done(writer->stock, &writer->batch)))
        return false; /* they are met again, and found written */
    repair_after(writer);
    return true;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/* Reads one batch and writes it. *ret_count: how many entries that were. */
static bool work_off(struct writer *writer, enum stream_part part, int64_t wait_ms, int64_t end_us,
                     size_t *ret_count)
{
    struct stream_batch *batch = &writer->batch;
    *ret_count = 0;
    bool ok = redis_well(writer, redis_stream_read(writer->stock, writer->consumer, part, wait_ms, batch));
    *ret_count = batch->entry_count;
    if (ok && *ret_count > 0)
        ok = write_batch(writer, end_us);
    stream_release(batch);
    if (!ok)
        writer->has_pending = true;
    return ok;
}

/* Entries that were handed to us and are not done, from before an error. */
static bool finish_pending(struct writer *writer, int64_t end_us)
{
    size_t count = 1;
    while (writer->has_pending && count > 0)
        if (!work_off(writer, STREAM_PENDING, 0, end_us, &count))
            return false;
    writer->has_pending = false;
    return true;
}

/* ---- looking after things --------------------------------------------------------------------------------------------- */

static void repair_some(struct writer *writer)
{
    int64_t ids[REPAIRS];
    size_t count = 0;
    struct reconciliation ignored;
    if (atomic_load(&writer->backlog) > REPAIR_BACKLOG || !database_well(writer))
        return;
    if (products_behind(writer->db, writer->looked_at, ids, REPAIRS, &count) != DB_OK)
        return;
    for (size_t i = 0; i < count && !is_stopping(writer) && database_well(writer); i++)
        (void)reconcile(writer->db, writer->stock, ids[i], from_now(LOCK_MS), &ignored);
    writer->looked_at = count == REPAIRS ? ids[count - 1] : 0;
}

/* Every few seconds: what dead consumers have left is written, their names are forgotten, stocks are repaired. */
static bool take_care(struct writer *writer)
{
    int64_t length = 0;
    size_t count = 1;
    if (order_ids_run_low(writer->ids) && database_well(writer))
        (void)order_ids_draw(writer->ids, writer->db);
    if (monotonic_us() < writer->care_us)
        return true;
    while (count > 0 && !is_stopping(writer))
        if (!work_off(writer, STREAM_LEFT, DEAD_MS, 0, &count))
            return false;
    if (!redis_well(writer, redis_stream_length(writer->stock, &length)) ||
        !redis_well(writer, redis_stream_sweep(writer->stock, "", FORGOTTEN_MS)))
        return false;
    atomic_store(&writer->backlog, length);
    repair_some(writer);
    writer->care_us = from_now(CARE_MS + random() % CARE_MS);
    return true;
}

/* While orders pour in they come first: the writer rests for EASE times as long as it has written while none wait, for less
 * the more do, and so leaves most of the machine to those who take orders. When they stop, or EASE_BACKLOG wait, it does
 * not rest. */
static bool ease(struct writer *writer, size_t written, int64_t took_us)
{
    int64_t length = 0, before = atomic_load(&writer->backlog);
    if (!redis_well(writer, redis_stream_length(writer->stock, &length)))
        return false;
    atomic_store(&writer->backlog, length);
    bool they_come = length + (int64_t)written > before;
    int64_t room = EASE_BACKLOG - length;
    int64_t pause_ms = took_us / 1000 * EASE * room / EASE_BACKLOG;
    if (they_come && room > 0)
        rest(writer, pause_ms < EASE_MAX_MS ? pause_ms : EASE_MAX_MS);
    return true;
}

/* One batch of new orders, and a pause behind it. */
static bool write_new(struct writer *writer)
{
    size_t count;
    if (!work_off(writer, STREAM_NEW, BLOCK_MS, 0, &count))
        return false;
    if (count == WRITE_BATCH_MAX)
        return ease(writer, count, writer->took_us);
    if (count > 0)
        rest(writer, GATHER_MS);
    return true;
}

/* Has a process that is no more left a stream to us? */
static void look_for_stream(struct writer *writer)
{
    int64_t length = 0;
    if (redis_stream_length(writer->stock, &length) == LOCK_OK && length > 0)
        atomic_store(&writer->awake, true);
    else
        rest(writer, REST_MS);
}

/* All that is in the stream now; other processes may add to it for ever. */
static void drain(struct writer *writer)
{
    int64_t end_us = from_now(DRAIN_MS), length = 0;
    size_t count = 1;
    if (!atomic_load(&writer->awake))
        return;
    (void)redis_stream_length(writer->stock, &length);
    while (count > 0 && length > 0 && monotonic_us() < end_us) {
        bool ok = finish_pending(writer, end_us) && work_off(writer, STREAM_NEW, 1, end_us, &count);
        length -= (int64_t)count;
        if (!ok) {
            count = 1;
            back_off(writer);
        }
    }
    if (redis_stream_length(writer->stock, &length) != LOCK_OK)
        log_line(LOG_WARNING, "accepted orders may be left in Redis: %s", redis_stock_error(writer->stock));
    else if (length > 0)
        log_line(LOG_INFO, "%" PRId64 " accepted orders are left in Redis", length);
    (void)redis_stream_sweep(writer->stock, writer->consumer, FORGOTTEN_MS);
}

static void *write_orders(void *arg)
{
    struct writer *writer = arg;
    while (!is_stopping(writer)) {
        if (!atomic_load(&writer->awake)) {
            look_for_stream(writer);
            continue;
        }
        if (!take_care(writer) || !finish_pending(writer, 0) || !write_new(writer))
            back_off(writer);
    }
    drain(writer);
    return NULL;
}

/* ---- starting and ending ---------------------------------------------------------------------------------------------- */

static void writer_free(struct writer *writer)
{
    redis_stock_free(writer->stock);
    db_free(writer->db);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

bool writer_start(const char *database_url, const char *instance, struct order_ids *ids,
                  struct writer **ret_writer)
{
    *ret_writer = NULL;
    if (!redis_stock_is_configured())
        return true;
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return false;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    writer->ids = ids;
    writer->has_pending = true;
    writer->pause_ms = BACK_OFF_FIRST_MS;
    /* The name is another at each start: who had it before may still be at work. */
    snprintf(writer->consumer, sizeof writer->consumer, "%s:%" PRIx64, instance,
             (uint64_t)monotonic_us() ^ (uint64_t)getpid() << 40);
    writer->db = db_new(database_url, "oversell writer");
    writer->stock = redis_stock_new();
    if (writer->db && writer->stock && pthread_create(&writer->thread, NULL, write_orders, writer) == 0) {
        *ret_writer = writer;
        return true;
    }
    writer_free(writer);
    return false;
}

void writer_stop(struct writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->mutex);
    writer->stopping = true;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    writer_free(writer);
}

void writer_print_metrics(struct writer *writer, FILE *to)
{
    static const char *const fates[] = {[WRITE_DONE] = "written",
                                        [WRITE_KNOWN] = "known",
                                        [WRITE_REJECTED] = "rejected",
                                        [WRITE_OUTDATED] = "outdated"};
    if (!writer)
        return;
    fprintf(
        to,
        "# HELP oversell_writer_orders_total Accepted orders that have left the stream, by what became of them.\n"
        "# TYPE oversell_writer_orders_total counter\n");
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++)
        fprintf(to, "oversell_writer_orders_total{fate=\"%s\"} %llu\n", fates[i],
                atomic_load(&writer->fates[i]));
    fprintf(to, "oversell_writer_orders_total{fate=\"spoilt\"} %llu\n", atomic_load(&writer->spoilt));
    fprintf(to,
            "# HELP oversell_writer_batches_total Transactions that wrote accepted orders.\n"
            "# TYPE oversell_writer_batches_total counter\noversell_writer_batches_total %llu\n"
            "# HELP oversell_writer_seconds_total Time that they took, waits included.\n"
            "# TYPE oversell_writer_seconds_total counter\noversell_writer_seconds_total %.6f\n"
            "# HELP oversell_writer_backlog Accepted orders in the stream, as last looked at.\n"
            "# TYPE oversell_writer_backlog gauge\noversell_writer_backlog %lld\n"
            "# HELP oversell_stock_repaired_units_total Units by which stock in Redis had to be corrected.\n"
            "# TYPE oversell_stock_repaired_units_total counter\noversell_stock_repaired_units_total %" PRIu64
            "\n",
            atomic_load(&writer->batches), (double)atomic_load(&writer->write_us) / 1e6,
            atomic_load(&writer->backlog), reconcile_repaired_units());
}
