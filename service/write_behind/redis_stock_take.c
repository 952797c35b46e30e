/* Takes stock in Redis for several orders of a product, in one script. */
#include "service/write_behind/redis_stock_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_LIVES_S "86400" /* an Idempotency-Key; afterwards PostgreSQL knows its order */

/* First it is worked out who gets what, and the stock is lowered before the orders are added: should an error end the
 * script between the two, units are missing for a while, and none are sold twice.
 * KEYS: the stock, the stream, the accepted orders, then the Idempotency-Keys. ARGV: product, time, instance, shop, then for each
 * order its id, quantity, key's place in KEYS or 0, the order that is gone or 0, and how many further words of it follow. */
static struct redis_script take_script = {
    .text =
        "local stock = redis.call('HMGET', KEYS[1], 'left', 'epoch', 'price', 'checked')"
        " local left = tonumber(stock[1])"
        " if not left or stock[4] ~= " CHECKED " then return 0 end"
        " local backlog = redis.call('XLEN', KEYS[2])"
        " if backlog >= 100000 then return 1 end"
        " local answers, taken, total, at = {stock[3], tostring(backlog)}, {}, 0, 5"
        " while ARGV[at] do"
        "  local quantity, key, first = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), false"
        "  if key > 0 then first = redis.call('GET', KEYS[key]) end"
        "  if first and first ~= ARGV[at + 3] then answers[#answers + 1] = 'k' .. first"
        "  elseif left < quantity then answers[#answers + 1] = string.format('s%.0f', left)"
        "  else"
        "   answers[#answers + 1] = string.format('t%.0f', left)"
        "   taken[#taken + 1] = {at, string.format('%.0f', left)}"
        "   left, total = left - quantity, total + quantity"
        "   if key > 0 then redis.call('SET', KEYS[key], ARGV[at], 'EX', " KEY_LIVES_S ") end"
        "  end"
        "  at = at + 5 + tonumber(ARGV[at + 4])"
        " end"
        " if #taken == 0 then return answers end"
        " redis.call('HINCRBY', KEYS[1], 'left', string.format('%.0f', -total))"
        " local accepted, tail = {}, ' ' .. ARGV[1] .. ' ' .. stock[2] .. ' '"
        " for _, order in ipairs(taken) do"
        "  local at = order[1]"
        "  local entry = redis.call('XADD', KEYS[2], '*', 'order', ARGV[at], 'product', ARGV[1], 'epoch', stock[2],"
        "   'quantity', ARGV[at + 1], 'price', stock[3], 'seen', order[2], 'at', ARGV[2], 'instance', ARGV[3],"
        "   unpack(ARGV, at + 5, at + 4 + tonumber(ARGV[at + 4])))"
        "  accepted[#accepted + 1] = ARGV[at]"
        "  accepted[#accepted + 1] = entry .. tail .. ARGV[at + 1]"
        " end"
        " redis.call('HSET', KEYS[3], unpack(accepted))"
        " return answers",
};
_Static_assert(STOCK_BACKLOG_MAX == 100000, "the script says it in figures");

enum { FIRST_KEYS = 3, WORDS_EACH = 5, OWN_WORDS = 6 };

/* The words of the script for up to ORDER_BATCH_MAX orders, and what they point at. */
struct words {
    const char *words[FIRST_KEYS + 4 + ORDER_BATCH_MAX * (1 + WORDS_EACH + OWN_WORDS)];
    int count, keys;
    char stock[STOCK_KEY_SIZE], product[24];
    struct {
        char id[24], quantity[24], gone[24], place[12], own[4];
        char key[STOCK_KEY_SIZE];
    } orders[ORDER_BATCH_MAX];
};

static void add(struct words *words, const char *word)
{
    words->words[words->count++] = word;
}

/* A field of the entry that may be missing; how many words that were. */
static int add_own(struct words *words, const char *name, const char *value)
{
    if (!value)
        return 0;
    add(words, name);
    add(words, value);
    return 2;
}

static void add_keys(struct redis_stock *stock, const struct stock_orders *orders, struct words *words)
{
    stock_number(words->product, orders->product_id);
    stock_key(words->stock, "stock", words->product);
    add(words, words->stock);
    add(words, stock->stream);
    add(words, stock->accepted);
    for (size_t i = 0; i < orders->count; i++) {
        snprintf(words->orders[i].place, sizeof words->orders[i].place, "0");
        if (!orders->orders[i].idempotency_key)
            continue;
        stock_key(words->orders[i].key, "order-key", orders->orders[i].idempotency_key);
        add(words, words->orders[i].key);
        snprintf(words->orders[i].place, sizeof words->orders[i].place, "%d", words->count);
    }
    words->keys = words->count;
}

static void add_orders(const struct stock_orders *orders, struct words *words)
{
    add(words, words->product);
    add(words, orders->accepted_at);
    add(words, orders->instance);
    add(words, orders->shop);
    for (size_t i = 0; i < orders->count; i++) {
        const struct stock_order *order = &orders->orders[i];
        stock_number(words->orders[i].id, order->id);
        stock_number(words->orders[i].quantity, order->quantity);
        stock_number(words->orders[i].gone, order->gone);
        add(words, words->orders[i].id);
        add(words, words->orders[i].quantity);
        add(words, words->orders[i].place);
        add(words, words->orders[i].gone);
        add(words, words->orders[i].own);
        int own = add_own(words, "name", order->receiver_name) +
                  add_own(words, "mobile", order->receiver_mobile) +
                  add_own(words, "key", order->idempotency_key);
        snprintf(words->orders[i].own, sizeof words->orders[i].own, "%d", own);
    }
}

/* A letter and a number: what became of the order. */
static bool read_answer(const redisReply *reply, struct stock_order *ret_order)
{
    static const char letters[] = {[TAKEN] = 't', [TOO_FEW] = 's', [KEY_IS_KNOWN] = 'k'};
    if (reply->type != REDIS_REPLY_STRING)
        return false;
    for (size_t i = 0; i < sizeof letters; i++)
        if (reply->str[0] == letters[i]) {
            ret_order->taking = (enum taking)i;
            ret_order->value = strtoll(reply->str + 1, NULL, 10);
            return true;
        }
    return false;
}

static bool read_answers(const redisReply *reply, struct stock_orders *orders)
{
    if (reply->type != REDIS_REPLY_ARRAY || (size_t)reply->elements != orders->count + 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_STRING)
        return false;
    snprintf(orders->price, sizeof orders->price, "%s", reply->element[0]->str);
    orders->backlog = strtoll(reply->element[1]->str, NULL, 10);
    if (orders->backlog < 0)
        return false;
    for (size_t i = 0; i < orders->count; i++)
        if (!read_answer(reply->element[i + 2], &orders->orders[i]))
            return false;
    return true;
}

enum lock_status redis_stock_take(struct redis_stock *stock, int64_t deadline_us, struct stock_orders *orders)
{
    AUTO_REPLY reply = NULL;
    orders->sent = false;
    if (!redis_stock_is_configured())
        return lock_fail(&stock->base, LOCK_UNAVAILABLE, "REDIS_URL is not set");
    struct words *words = malloc(sizeof *words);
    if (!words)
        return lock_fail(&stock->base, LOCK_FAILED, "out of memory");
    words->count = 0;
    add_keys(stock, orders, words);
    add_orders(orders, words);
    enum lock_status status = redis_eval(stock->redis, &stock->base, lock_command_ms(deadline_us), &reply,
                                         &take_script, words->keys, words->words, words->count);
    free(words);
    orders->sent = redis_was_sent(stock->redis);
    if (status != LOCK_OK)
        return status;
    orders->state = STOCK_TAKEN;
    if (reply->type == REDIS_REPLY_INTEGER)
        orders->state = reply->integer == 0 ? STOCK_NOT_LOADED : STOCK_CROWDED;
    else if (!read_answers(reply, orders))
        return stock_check(stock, LOCK_OK, reply, -1);
    return LOCK_OK;
}
