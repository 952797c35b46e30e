/* Reads the stream of accepted orders in Redis, and removes the orders that are stored in PostgreSQL. */
#include "service/write_behind/redis_stock_impl.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "writers"

/* In one step, so that an order that is asked for is in the stream, or else already in PostgreSQL. XDEL walks through the entries
 * before each one that it deletes. So if nobody else has entries, XTRIM removes whole blocks instead: entries up to the last of
 * these have all been read, and those that are read stay pending until this script removes them.
 * KEYS: the stream, the accepted orders. ARGV: how many entries, the id after their greatest one, their ids, the ids of their
 * orders. */
static struct redis_script done_script = {
    .text = "local count = tonumber(ARGV[1])"
            " local pending, removed = redis.pcall('XPENDING', KEYS[1], '" GROUP "')[1], 0"
            " local mine = redis.call('XACK', KEYS[1], '" GROUP "', unpack(ARGV, 3, 2 + count))"
            " if pending == count and mine == count then"
            "  removed = redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2])"
            " end"
            " if removed ~= count then redis.call('XDEL', KEYS[1], unpack(ARGV, 3, 2 + count)) end"
            " if #ARGV > 2 + count then redis.call('HDEL', KEYS[2], unpack(ARGV, 3 + count)) end"
            " return count",
};

/* KEYS: the stream, the accepted orders. ARGV: the order. */
static struct redis_script find_script = {
    .text = "local accepted = redis.call('HGET', KEYS[2], ARGV[1])"
            " if not accepted then return {} end"
            " local entry = string.match(accepted, '^%S+')"
            " return redis.call('XRANGE', KEYS[1], entry, entry)",
};

/* KEYS: the stream. ARGV: for how long others must not have been heard of, and a consumer who goes. */
static struct redis_script sweep_script = {
    .text =
        "local rows, gone = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], '" GROUP "'), 0"
        " if rows.err then return 0 end"
        " for _, row in ipairs(rows) do"
        "  local consumer = {}"
        "  for i = 1, #row, 2 do consumer[row[i]] = row[i + 1] end"
        "  if consumer.pending == 0 and (consumer.idle > tonumber(ARGV[1]) or consumer.name == ARGV[2]) then"
        "   redis.call('XGROUP', 'DELCONSUMER', KEYS[1], '" GROUP "', consumer.name) gone = gone + 1"
        "  end"
        " end"
        " return gone",
};

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* The fields of an entry: numbers, which are not negative, and texts. */
static const struct field {
    const char *name;
    bool is_number, is_optional;
    size_t offset;
} FIELDS[] = {
    {"order", true, false, offsetof(struct accepted_order, id)},
    {"product", true, false, offsetof(struct accepted_order, product_id)},
    {"epoch", true, false, offsetof(struct accepted_order, epoch)},
    {"quantity", true, false, offsetof(struct accepted_order, quantity)},
    {"price", false, false, offsetof(struct accepted_order, price)},
    {"seen", true, false, offsetof(struct accepted_order, stock_seen)},
    {"at", false, false, offsetof(struct accepted_order, accepted_at)},
    {"instance", false, false, offsetof(struct accepted_order, instance)},
    {"name", false, true, offsetof(struct accepted_order, receiver_name)},
    {"mobile", false, true, offsetof(struct accepted_order, receiver_mobile)},
    {"key", false, true, offsetof(struct accepted_order, idempotency_key)},
};
enum { FIELD_COUNT = sizeof FIELDS / sizeof FIELDS[0] };

static bool read_number(const char *text, int64_t *ret_number)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    *ret_number = strtoll(text, &end, 10);
    return !*end;
}

/* The entries of one writer have their fields in the order of the table, so the search for the next begins behind the
 * last. */
static const struct field *find_field(const redisReply *name, size_t *at)
{
    for (size_t i = 0; name->type == REDIS_REPLY_STRING && i < FIELD_COUNT; i++) {
        const struct field *field = &FIELDS[(*at + i) % FIELD_COUNT];
        if (strcmp(field->name, name->str) == 0) {
            *at = (size_t)(field - FIELDS) + 1;
            return field;
        }
    }
    return NULL;
}

/* Reads an entry of the stream, [id, [name, value, …]]; false: it is no order. */
static bool read_order(const redisReply *entry, struct accepted_order *ret_order)
{
    bool seen[FIELD_COUNT] = {false};
    size_t at = 0;
    *ret_order = (struct accepted_order){0};
    const redisReply *fields = entry->element[1];
    if (fields->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i + 1 < (size_t)fields->elements; i += 2) {
        const struct field *field = find_field(fields->element[i], &at);
        const redisReply *value = fields->element[i + 1];
        if (!field || value->type != REDIS_REPLY_STRING)
            continue;
        char *member = (char *)ret_order + field->offset;
        if (field->is_number && !read_number(value->str, (int64_t *)(void *)member))
            return false;
        if (!field->is_number)
            memcpy(member, &(const char *){value->str}, sizeof(const char *));
        seen[field - FIELDS] = true;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (!seen[i] && !FIELDS[i].is_optional)
            return false;
    return ret_order->id > 0 && ret_order->quantity > 0;
}

void stream_release(struct stream_batch *batch)
{
    if (batch->reply)
        freeReplyObject(batch->reply);
    batch->reply = NULL;
    batch->spoilt = NULL;
    batch->count = batch->entry_count = 0;
}

static bool is_entry(const redisReply *entry)
{
    return entry->type == REDIS_REPLY_ARRAY && entry->elements == 2 &&
           entry->element[0]->type == REDIS_REPLY_STRING;
}

/* Takes in the entries; false where that is no list of some. The reply stays the caller's. */
static bool read_entries(const redisReply *entries, struct stream_batch *batch)
{
    if (entries->type != REDIS_REPLY_ARRAY || entries->elements > WRITE_BATCH_MAX)
        return false;
    for (size_t i = 0; i < (size_t)entries->elements; i++) {
        const redisReply *entry = entries->element[i];
        if (!is_entry(entry))
            return false;
        batch->entries[batch->entry_count++] = entry->element[0]->str;
        if (read_order(entry, &batch->orders[batch->count]))
            batch->count++;
        else if (!batch->spoilt)
            batch->spoilt = entry->element[0]->str;
    }
    return true;
}

/* STATUS of a request whose REPLY, which is stolen, has its entries in ENTRIES, NULL for none. */
static enum lock_status take_entries(struct redis_stock *stock, enum lock_status status, redisReply *reply,
                                     const redisReply *entries, struct stream_batch *ret_batch)
{
    if (status == LOCK_OK && entries && !read_entries(entries, ret_batch)) {
        stream_release(ret_batch);
        status = stock_check(stock, LOCK_OK, reply, -1);
    }
    if (status == LOCK_OK)
        ret_batch->reply = reply;
    else if (reply)
        freeReplyObject(reply);
    return status;
}

enum lock_status redis_stream_find(struct redis_stock *stock, int64_t deadline_us, int64_t order_id,
                                   struct stream_batch *ret_batch)
{
    redisReply *reply = NULL;
    char id[24];
    const char *words[] = {stock->stream, stock->accepted, id};
    snprintf(id, sizeof id, "%" PRId64, order_id);
    enum lock_status status = redis_eval(stock->redis, &stock->base, lock_command_ms(deadline_us), &reply,
                                         &find_script, 2, words, 3);
    return take_entries(stock, status, reply, reply, ret_batch);
}

/* ---- consuming --------------------------------------------------------------------------------------------------- */

/* The group is made when the first consumer comes, and again after Redis has lost it. */
static enum lock_status make_group(struct redis_stock *stock)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status = redis_command(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply,
                                            "XGROUP CREATE %s " GROUP " 0 MKSTREAM", stock->stream);
    return status == LOCK_REFUSED && strstr(stock->base.error, "BUSYGROUP") ? LOCK_OK : status;
}

/* [[stream, entries]], or nothing */
static const redisReply *entries_of_read(const redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_NIL)
        return NULL;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
        reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements == 2)
        return reply->element[0]->element[1];
    return reply; /* which are no entries */
}

/* [cursor, entries, …] */
static const redisReply *entries_of_claim(const redisReply *reply)
{
    if (!reply)
        return NULL;
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 ? reply->element[1] : reply;
}

enum lock_status redis_stream_read(struct redis_stock *stock, const char *consumer, enum stream_part part,
                                   int64_t wait_ms, struct stream_batch *ret_batch)
{
    redisReply *reply = NULL;
    enum lock_status status = LOCK_FAILED;
    switch (part) {
    case STREAM_NEW:
        status = redis_command(stock->redis, &stock->base, wait_ms + LOCK_COMMAND_MS, &reply,
                               "XREADGROUP GROUP " GROUP " %s COUNT %d BLOCK %lld STREAMS %s >", consumer,
                               WRITE_BATCH_MAX, (long long)wait_ms, stock->stream);
        break;
    case STREAM_PENDING:
        status = redis_command(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply,
                               "XREADGROUP GROUP " GROUP " %s COUNT %d STREAMS %s 0", consumer,
                               WRITE_BATCH_MAX, stock->stream);
        break;
    case STREAM_LEFT:
        status = redis_command(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply,
                               "XAUTOCLAIM %s " GROUP " %s %lld 0-0 COUNT %d", stock->stream, consumer,
                               (long long)wait_ms, WRITE_BATCH_MAX);
        break;
    }
    if (status == LOCK_REFUSED && strstr(stock->base.error, "NOGROUP"))
        return make_group(stock);
    return take_entries(stock, status, reply,
                        part == STREAM_LEFT ? entries_of_claim(reply) : entries_of_read(reply), ret_batch);
}

/* The next id after ENTRY's, MS-NUMBER. Redis returns the entries of a batch in the order of their ids. */
static void print_id_after(const char *entry, char *ret_id, size_t size)
{
    const char *dash = strchr(entry, '-');
    snprintf(ret_id, size, "%.*s-%" PRIu64, (int)strcspn(entry, "-"), entry,
             dash ? (uint64_t)strtoull(dash + 1, NULL, 10) + 1 : 0);
}

enum lock_status redis_stream_done(struct redis_stock *stock, const struct stream_batch *batch)
{
    AUTO_REPLY reply = NULL;
    const char *words[4 + 2 * WRITE_BATCH_MAX];
    char count[24], after[48], (*ids)[24] = calloc(WRITE_BATCH_MAX, sizeof *ids);
    int used = 0;
    if (batch->entry_count == 0) {
        free(ids);
        return LOCK_OK;
    }
    if (!ids)
        return lock_fail(&stock->base, LOCK_FAILED, "out of memory");
    words[used++] = stock->stream;
    words[used++] = stock->accepted;
    snprintf(count, sizeof count, "%zu", batch->entry_count);
    words[used++] = count;
    print_id_after(batch->entries[batch->entry_count - 1], after, sizeof after);
    words[used++] = after;
    for (size_t i = 0; i < batch->entry_count; i++)
        words[used++] = batch->entries[i];
    for (size_t i = 0; i < batch->count; i++) {
        snprintf(ids[i], sizeof ids[i], "%" PRId64, batch->orders[i].id);
        words[used++] = ids[i];
    }
    enum lock_status status = redis_eval(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply, &done_script, 2,
                                         words, used);
    free(ids);
    return stock_check(stock, status, reply, REDIS_REPLY_INTEGER);
}

enum lock_status redis_stream_length(struct redis_stock *stock, int64_t *ret_length)
{
    AUTO_REPLY reply = NULL;
    enum lock_status status = redis_command(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply, "XLEN %s",
                                            stock->stream);
    *ret_length = redis_integer(reply);
    return stock_check(stock, status, reply, REDIS_REPLY_INTEGER);
}

enum lock_status redis_stream_sweep(struct redis_stock *stock, const char *consumer, int64_t idle_ms)
{
    AUTO_REPLY reply = NULL;
    char idle[24];
    const char *words[] = {stock->stream, idle, consumer};
    snprintf(idle, sizeof idle, "%" PRId64, idle_ms);
    enum lock_status status = redis_eval(stock->redis, &stock->base, LOCK_COMMAND_MS, &reply, &sweep_script,
                                         1, words, 3);
    return stock_check(stock, status, reply, REDIS_REPLY_INTEGER);
}
