/* Stock in Redis: reads it as of one moment, and corrects it. */
#include "service/write_behind/redis_stock_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An accepted order is "ENTRY PRODUCT EPOCH QUANTITY". The orders are returned as one string, "ID QUANTITY " for each.
 * KEYS: the stock, the accepted orders. ARGV: product, epoch, "1" to forget the stock, shop. */
static struct redis_script survey_script = {
    .text =
        "local checked = " CHECKED " local stock = redis.call('HMGET', KEYS[1], 'left', 'epoch', 'checked')"
        " local left = stock[2] == ARGV[2] and stock[3] == checked and stock[1] or ''"
        " if ARGV[3] == '1' then redis.call('DEL', KEYS[1]) end"
        " local mark, all, found = ' ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' ', redis.call('HGETALL', KEYS[2]), {}"
        " for i = 2, #all, 2 do"
        "  if string.find(all[i], mark, 1, true) then"
        "   found[#found + 1] = all[i - 1] .. ' ' .. string.match(all[i], '%d+$') .. ' '"
        "  end"
        " end"
        " return {left, checked, table.concat(found)}",
};

/* KEYS: the stock. ARGV: the survey's CHECKED, epoch, price, shop, what is expected, and by how much that differs from what
 * was found, "" where the stock was not loaded. */
static struct redis_script load_script = {
    .text =
        "if ARGV[1] ~= " CHECKED " then return 0 end"
        " if ARGV[6] == '' then"
        "  redis.call('HSET', KEYS[1], 'left', ARGV[5], 'epoch', ARGV[2], 'price', ARGV[3], 'checked', ARGV[1])"
        "  return 1"
        " end"
        " if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[2] then return 0 end"
        " redis.call('HINCRBY', KEYS[1], 'left', ARGV[6])"
        " redis.call('HSET', KEYS[1], 'price', ARGV[3])"
        " return 1",
};

struct redis_stock *redis_stock_new(void)
{
    struct redis_stock *stock = calloc(1, sizeof *stock);
    if (!stock)
        return NULL;
    stock->redis = redis_new(lock_config.redis_url, strlen(lock_config.redis_url));
    if (!stock->redis) {
        free(stock);
        return NULL;
    }
    redis_allow_long_replies(stock->redis);
    lock_server_key(stock->stream, sizeof stock->stream, "", ":", "orders");
    lock_server_key(stock->accepted, sizeof stock->accepted, "", ":", "orders:accepted");
    return stock;
}

void redis_stock_free(struct redis_stock *stock)
{
    if (!stock)
        return;
    redis_free(stock->redis);
    free(stock);
}

const char *redis_stock_error(const struct redis_stock *stock)
{
    return stock->base.error;
}

uint64_t redis_stock_round_trips(const struct redis_stock *stock)
{
    return stock->base.round_trips;
}

enum lock_status stock_check(struct redis_stock *stock, enum lock_status status, const redisReply *reply,
                             int type)
{
    if (status != LOCK_OK || reply->type == type)
        return status;
    redis_drop(stock->redis);
    return lock_fail(&stock->base, LOCK_AWAY, "redis sent a reply to something else than was asked");
}

void stock_key(char ret_key[static STOCK_KEY_SIZE], const char *kind, const char *name)
{
    char between[32];
    snprintf(between, sizeof between, ":%s:", kind);
    lock_server_key(ret_key, STOCK_KEY_SIZE, "", between, name);
}

void stock_number(char ret_text[static 24], int64_t number)
{
    snprintf(ret_text, 24, "%" PRId64, number);
}

bool redis_stock_is_configured(void)
{
    return *lock_config.redis_url != '\0';
}

void survey_release(struct stock_survey *survey)
{
    free(survey->ids);
    free(survey->quantities);
    *survey = (struct stock_survey){0};
}

/* "ID QUANTITY " for each. */
static bool read_orders(const char *text, struct stock_survey *survey)
{
    size_t spaces = 0;
    for (const char *c = text; *c; c++)
        spaces += *c == ' ';
    if (spaces % 2 != 0)
        return false;
    survey->ids = calloc(spaces / 2 + 1, sizeof survey->ids[0]);
    survey->quantities = calloc(spaces / 2 + 1, sizeof survey->quantities[0]);
    if (!survey->ids || !survey->quantities)
        return false;
    for (char *end = NULL; survey->count < spaces / 2; text = end) {
        survey->ids[survey->count] = strtoll(text, &end, 10);
        survey->quantities[survey->count++] = strtoll(end, &end, 10);
    }
    return true;
}

enum lock_status redis_stock_survey(struct redis_stock *stock, int64_t deadline_us, int64_t product_id,
                                    int64_t epoch, const char *shop, bool forget,
                                    struct stock_survey *ret_survey)
{
    AUTO_REPLY reply = NULL;
    char key[STOCK_KEY_SIZE], product[24], epoch_text[24];
    const char *words[] = {key, stock->accepted, product, epoch_text, forget ? "1" : "0", shop};
    *ret_survey = (struct stock_survey){0};
    if (!redis_stock_is_configured())
        return lock_fail(&stock->base, LOCK_UNAVAILABLE, "REDIS_URL is not set");
    stock_number(product, product_id);
    stock_number(epoch_text, epoch);
    stock_key(key, "stock", product);
    enum lock_status status = redis_eval(stock->redis, &stock->base, lock_command_ms(deadline_us), &reply,
                                         &survey_script, 2, words, 6);
    status = stock_check(stock, status, reply, REDIS_REPLY_ARRAY);
    if (status != LOCK_OK)
        return status;
    for (int i = 0; i < 3; i++)
        if (reply->elements != 3 || reply->element[i]->type != REDIS_REPLY_STRING)
            return stock_check(stock, LOCK_OK, reply, -1);
    ret_survey->loaded = reply->element[0]->len > 0;
    ret_survey->left = strtoll(reply->element[0]->str, NULL, 10);
    snprintf(ret_survey->checked, sizeof ret_survey->checked, "%s", reply->element[1]->str);
    if (read_orders(reply->element[2]->str, ret_survey))
        return LOCK_OK;
    survey_release(ret_survey);
    return lock_fail(&stock->base, LOCK_FAILED, "out of memory");
}

enum lock_status redis_stock_load(struct redis_stock *stock, int64_t deadline_us, int64_t product_id,
                                  int64_t epoch, const char *price, const struct stock_survey *survey,
                                  int64_t expected, bool *ret_done)
{
    AUTO_REPLY reply = NULL;
    char key[STOCK_KEY_SIZE], product[24], epoch_text[24], expected_text[24], difference[24] = "";
    const char *space = strchr(survey->checked, ' '), *shop = space ? space + 1 : "";
    const char *words[] = {key, survey->checked, epoch_text, price, shop, expected_text, difference};
    stock_number(product, product_id);
    stock_number(epoch_text, epoch);
    stock_number(expected_text, expected);
    if (survey->loaded)
        stock_number(difference, expected - survey->left);
    stock_key(key, "stock", product);
    enum lock_status status = redis_eval(stock->redis, &stock->base, lock_command_ms(deadline_us), &reply,
                                         &load_script, 1, words, 7);
    status = stock_check(stock, status, reply, REDIS_REPLY_INTEGER);
    *ret_done = redis_integer(reply) == 1;
    return status;
}
