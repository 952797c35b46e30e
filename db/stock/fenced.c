/* Takes from a counter and lets the product's row check the fencing token of the order's lock. Two ways, of which one is
 * right.
 *
 * Registered before the read, a token closes the row to every older holder, so what is read afterwards can only be
 * changed by a newer one, and then our write is refused. Compared by the write alone, as the picture usually goes, it
 * lets an older holder's late write through to a row that a newer holder has read but not yet written: the newer one
 * then overwrites it with a stock computed from what it had read. See M. Kleppmann, How to do distributed locking. */
#include "db/stock/stock_impl.h"

#include <string.h>

#define REGISTER(service)                                                                                    \
    {                                                                                                        \
        "fence_register_" service,                                                                           \
            "UPDATE product SET fence_" service " = $2 WHERE id = $1 AND fence_" service                     \
            " < $2 RETURNING id",                                                                            \
            2                                                                                                \
    }
#define READ(service)                                                                                        \
    {                                                                                                        \
        "fence_read_" service, "SELECT fence_" service " FROM product WHERE id = $1", 1                      \
    }
#define WRITE(service, name, sets, condition)                                                                \
    {                                                                                                        \
        "stock_write_" name "_" service,                                                                     \
            "UPDATE product SET count = $2, version = version + 1, refuse_negative = false,"                 \
            "       updated_at = clock_timestamp(), updated_by = $3" sets " "                                \
            "WHERE id = $1 AND stock_epoch = $5 AND fence_" service condition                                \
            " RETURNING pg_current_xact_id(), count",                                                        \
            5                                                                                                \
    }
#define SERVICE(service)                                                                                     \
    {                                                                                                        \
        service, REGISTER(service), READ(service), WRITE(service, "fenced", "", " = $4"),                    \
            WRITE(service, "fence_on_write", ", fence_" service " = $4", " <= $4")                           \
    }

/* One column for each lock service: their tokens cannot be compared. */
static const struct {
    const char *service;
    struct statement registering, reading, write_if_equal, write_if_not_newer;
} SERVICES[] = {SERVICE("redis"), SERVICE("zookeeper"), SERVICE("etcd")};

#define NO_SERVICE (sizeof SERVICES / sizeof SERVICES[0])

static size_t find_service(const char *service)
{
    size_t i = 0;
    while (i < NO_SERVICE && (!service || strcmp(SERVICES[i].service, service) != 0))
        i++;
    return i;
}

bool fence_is_kept(const char *service)
{
    return find_service(service) < NO_SERVICE;
}

/* The newest token that the product's row has met. A separate statement: it sees what was committed while the one before
 * it waited. */
static enum db_status read_fence(struct db *db, size_t service, int64_t product_id, int64_t *ret_stored)
{
    AUTO_RESULT row = NULL;
    enum db_status status = db_run(db, &SERVICES[service].reading,
                                   (const char *const[]){DB_NUMBER(product_id)}, &row);
    if (status == DB_OK)
        *ret_stored = PQntuples(row) == 1 ? db_cell_number(row, 0, 0) : FENCE_NO_PRODUCT;
    return status;
}

enum db_status fence_register(struct db *db, int64_t product_id, const struct fence *fence,
                              int64_t *ret_stored, bool *ret_registered)
{
    size_t i = find_service(fence->service);
    AUTO_RESULT registered = NULL;
    if (i == NO_SERVICE)
        return DB_ERROR;
    const char *const values[] = {DB_NUMBER(product_id), DB_NUMBER(fence->token)};
    enum db_status status = db_run(db, &SERVICES[i].registering, values, &registered);
    *ret_registered = status == DB_OK && PQntuples(registered) == 1;
    *ret_stored = fence->token;
    return status != DB_OK || *ret_registered ? status : read_fence(db, i, product_id, ret_stored);
}

/* Why a write found no row: a newer holder's token, or another stock than the one that was read. */
static enum take_status find_reason(struct db *db, size_t service, const struct stock_want *want,
                                    struct stock_taken *ret_taken)
{
    int64_t stored = 0;
    enum db_status status = read_fence(db, service, want->product_id, &stored);
    if (status != DB_OK)
        return stock_failed(status, ret_taken);
    if (stored <= want->fence.token)
        return TAKE_CONFLICT;
    report_step(want->observer, STEP_REFUSE, stored);
    return TAKE_LOCK_LOST;
}

static enum take_status take(struct db *db, const struct stock_want *want, bool registered,
                             struct stock_taken *ret_taken)
{
    size_t i = find_service(want->fence.service);
    if (i == NO_SERVICE)
        return stock_failed(DB_ERROR, ret_taken);
    enum take_status status = stock_read(db, &ST_STOCK_READ, want, ret_taken);
    if (status != TAKE_OK)
        return status;
    status = stock_write(db, registered ? &SERVICES[i].write_if_equal : &SERVICES[i].write_if_not_newer, want,
                         ret_taken->seen - want->quantity, want->fence.token, ret_taken);
    return status == TAKE_CONFLICT ? find_reason(db, i, want, ret_taken) : status;
}

static enum take_status fenced(struct db *db, const struct stock_want *want, struct stock_taken *ret_taken)
{
    return take(db, want, true, ret_taken);
}
const struct stock_policy take_fenced = {.take = fenced,
                                         .name = "read-then-write-if-fence-is-ours",
                                         .locks_at = STEP_WRITE,
                                         .fencing = FENCE_BEFORE_READ};

static enum take_status fence_on_write(struct db *db, const struct stock_want *want,
                                       struct stock_taken *ret_taken)
{
    return take(db, want, false, ret_taken);
}
const struct stock_policy take_fence_on_write = {.take = fence_on_write,
                                                 .name = "read-then-write-if-no-newer-fence",
                                                 .locks_at = STEP_WRITE,
                                                 .fencing = FENCE_ON_WRITE};
