/* Checks, at program start, what the engine assumes about each row of the strategy table. */
#include "service/engine/strategy_validate.h"

#include "service/engine/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 1000 };

struct complaint {
    const char *row;
    char *text;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static bool wrong(const struct complaint *complaint, const char *format,
                                                        ...)
{
    va_list arguments;
    int used = snprintf(complaint->text, complaint->size, "strategy '%s': ", complaint->row);
    if (used < 0 || (size_t)used >= complaint->size)
        return false;
    va_start(arguments, format);
    vsnprintf(complaint->text + used, complaint->size - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the cells, one by one -------------------------------------------------------------------------------------- */

static bool has_valid_cells(const struct strategy *row, const struct complaint *complaint)
{
    static const struct {
        size_t at;
        unsigned last;
        const char *cell, *valid;
    } CELLS[] = {
        {offsetof(struct strategy, guarantee), GUARANTEE_SAFE, "guarantee",
         "GUARANTEE_UNSAFE, GUARANTEE_ONE_PROCESS, GUARANTEE_WHILE_LEASE_HOLDS or GUARANTEE_SAFE"},
        {offsetof(struct strategy, span), SPAN_AROUND_TWICE, "span of the lock",
         "SPAN_NONE, SPAN_AROUND_TX, SPAN_INSIDE_TX or SPAN_AROUND_TWICE"},
        {offsetof(struct strategy, fencing), FENCE_BEFORE_READ, "fence",
         "FENCE_NONE, FENCE_ON_WRITE or FENCE_BEFORE_READ"},
        {offsetof(struct strategy, scope), SCOPE_TWO_TX, "number of transactions",
         "SCOPE_ONE_TX or SCOPE_TWO_TX"},
        {offsetof(struct strategy, isolation), DB_SERIALIZABLE, "isolation",
         "DB_READ_COMMITTED, DB_REPEATABLE_READ or DB_SERIALIZABLE"},
        {offsetof(struct strategy, combining), COMBINE_COUNT - 1, "combining",
         "COMBINE_NONE, COMBINE_IN_TURN, COMBINE_IN_POSTGRES or COMBINE_IN_REDIS"},
    };
    for (size_t i = 0; i < sizeof CELLS / sizeof CELLS[0]; i++) {
        unsigned value;
        memcpy(&value, (const char *)row + CELLS[i].at, sizeof value);
        if (value > CELLS[i].last)
            return wrong(complaint, "the %s is %u; it must be %s", CELLS[i].cell, value, CELLS[i].valid);
    }
    if (!row->title || !row->why)
        return wrong(complaint,
                     "its title or its explanation is missing; add both texts at the end of the row");
    if (row->shown_by &
        ~(unsigned)(SHOWN_BY_LOAD | SHOWN_BY_SECOND_PROCESS | SHOWN_BY_EXPIRY | SHOWN_BY_CRASH))
        return wrong(
            complaint,
            "what shows its flaw must be a combination of SHOWN_BY_LOAD, SHOWN_BY_SECOND_PROCESS, SHOWN_BY_EXPIRY and SHOWN_BY_CRASH");
    if (row->guarantee != GUARANTEE_SAFE && row->shown_by == SHOWN_BY_NOTHING)
        return wrong(
            complaint,
            "it is not GUARANTEE_SAFE, but SHOWN_BY_NOTHING shows its flaw; name what does (SHOWN_BY_LOAD, SHOWN_BY_SECOND_PROCESS, SHOWN_BY_EXPIRY or "
            "SHOWN_BY_CRASH), or promise GUARANTEE_SAFE");
    if (row->guarantee == GUARANTEE_SAFE && row->shown_by != SHOWN_BY_NOTHING)
        return wrong(
            complaint,
            "it is GUARANTEE_SAFE, but something is said to show its flaw; set that to SHOWN_BY_NOTHING, or promise less");
    return true;
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

static bool has_whole_lock(const struct lock_driver *lock, const struct complaint *complaint)
{
    if (!lock->name || !lock->acquire || !lock->release || !lock->still_held)
        return wrong(complaint,
                     "its lock lacks its name or a function; acquire, release and still_held are needed");
    if (lock->open && lock->handle_size <= sizeof(struct lock))
        return wrong(
            complaint,
            "its lock '%s' has a function open, but no handle_size; set it to the size of the lock's own struct",
            lock->name);
    if (!lock->properties.mechanism)
        return wrong(complaint, "its lock '%s' says nothing of its mechanism; add it to the properties",
                     lock->name);
    if (lock->properties.renewed && !lock->renew)
        return wrong(
            complaint,
            "its lock '%s' is declared as renewed, but has no function renew; add it, or set renewed to false",
            lock->name);
    return true;
}

static bool has_valid_lock(const struct strategy *row, const struct complaint *complaint)
{
    const struct lock_driver *lock = row->lock;
    if (!lock && row->span != SPAN_NONE)
        return wrong(
            complaint,
            "its span is %s, but its lock is NULL; name a lock of lock/registry.h, or set the span to SPAN_NONE",
            span_name(row->span));
    if (lock && row->span == SPAN_NONE)
        return wrong(
            complaint,
            "it has a lock, but its span is SPAN_NONE; set the span to SPAN_AROUND_TX, or the lock to NULL");
    if (lock && !has_whole_lock(lock, complaint))
        return false;
    if (row->span == SPAN_AROUND_TWICE && !lock->properties.reentrant)
        return wrong(
            complaint,
            "its span is SPAN_AROUND_TWICE, but a holder cannot take the lock '%s' again; choose a reentrant lock, or "
            "set the span to SPAN_AROUND_TX",
            lock->name);
    return true;
}

static bool has_valid_fence(const struct strategy *row, const struct complaint *complaint)
{
    const struct lock_driver *lock = row->lock;
    enum fencing wanted = row->take_stock->fencing;
    if (wanted == FENCE_BEFORE_READ && row->fencing != FENCE_BEFORE_READ)
        return wrong(complaint, "take_fenced demands a registered token; set the fence to FENCE_BEFORE_READ");
    if (wanted == FENCE_ON_WRITE && row->fencing == FENCE_NONE)
        return wrong(complaint, "take_fence_on_write compares tokens; set the fence to FENCE_ON_WRITE");
    if (row->take_stock->asks_lock && !lock)
        return wrong(
            complaint,
            "take_checked asks the lock whether it is still held, but there is no lock; choose a lock");
    if (row->fencing == FENCE_NONE)
        return true;
    if (!lock || !lock->server || !lock->properties.fenced)
        return wrong(
            complaint,
            "it has a fence, but its lock grants no tokens; choose one that does (redis_fenced, zookeeper_queue, "
            "etcd_mutex), or set the fence to FENCE_NONE");
    if (!fence_is_kept(lock->server->name))
        return wrong(complaint,
                     "it has a fence, but a product's row keeps no tokens of '%s'; choose a lock of Redis, "
                     "ZooKeeper or etcd, or set the fence to FENCE_NONE",
                     lock->server->name);
    if (row->fencing == FENCE_BEFORE_READ && row->span == SPAN_INSIDE_TX)
        return wrong(
            complaint,
            "its token is registered before the transaction, but the lock is taken inside it; set the span to "
            "SPAN_AROUND_TX");
    return true;
}

/* ---- the transaction --------------------------------------------------------------------------------------------- */

static bool has_valid_stock(const struct strategy *row, const struct complaint *complaint)
{
    const struct stock_policy *policy = row->take_stock;
    if (!policy)
        return wrong(
            complaint,
            "it has no way of taking stock; name one of db/stock/stock.h, or a function of your own");
    if (!policy->name || (unsigned)policy->kind >= STOCK_KIND_COUNT)
        return wrong(complaint,
                     "its way of taking stock has no name, or no kind of stock of db/stock/kinds.h; "
                     "fill in both");
    if (!policy->take && !row->place && strategy_has_steps(row))
        return wrong(complaint,
                     "its way of taking stock has no function, which the engine's steps call; name "
                     "one of db/stock/stock.h, or a function of your own");
    if ((policy->kind == STOCK_REDIS) != (row->combining == COMBINE_IN_REDIS))
        return wrong(complaint, "COMBINE_IN_REDIS and take_in_redis belong together; set both, or neither");
    return true;
}

static bool has_valid_place(const struct strategy *row, const struct complaint *complaint)
{
    return (row->place == place_in_batch) == (row->combining == COMBINE_IN_POSTGRES) ||
           wrong(complaint, "COMBINE_IN_POSTGRES and place_in_batch belong together; set both, or neither");
}

/* Such a batch neither goes through the engine's steps nor takes a lock. */
static bool has_valid_combining(const struct strategy *row, const struct complaint *complaint)
{
    if (row->combining == COMBINE_NONE)
        return has_valid_place(row, complaint);
    if (row->combining == COMBINE_IN_TURN && (row->lock || row->max_tries > 1))
        return wrong(
            complaint,
            "its orders are placed in turn, so that only the product's row may keep others waiting, and none "
            "starts again; set its combining to COMBINE_NONE, or leave out the lock and the tries");
    /* A queue in front of the row would hide what such a row is in the table for. */
    if (row->combining == COMBINE_IN_TURN && row->guarantee != GUARANTEE_SAFE)
        return wrong(complaint, "its orders are placed in turn, which hides its flaw in one process; set its "
                                "combining to COMBINE_NONE");
    if (row->combining == COMBINE_IN_TURN)
        return has_valid_place(row, complaint);
    if ((row->place && row->place != place_in_batch) || row->take_stock->take)
        return wrong(complaint,
                     "it combines orders, but places or takes stock for one order at a time; set its "
                     "combining to COMBINE_NONE, or leave out place and use take_while_placing");
    if (row->lock)
        return wrong(complaint, "it combines orders, but has a lock, which no batch takes; set the lock to "
                                "NULL and the span to SPAN_NONE");
    return has_valid_place(row, complaint);
}

static bool has_valid_steps(const struct strategy *row, const struct complaint *complaint)
{
    if (row->max_tries < 0 || row->max_tries > TRIES_MAX)
        return wrong(complaint, "it has %d tries; it must have 1 to %d", row->max_tries, TRIES_MAX);
    if (row->scope == SCOPE_ONE_TX)
        return true;
    if (row->max_tries > 1)
        return wrong(
            complaint,
            "with SCOPE_TWO_TX the stock is committed first, and another try would take it again; set the tries to 1");
    if (row->place || row->combining != COMBINE_NONE)
        return wrong(complaint,
                     "only the engine's steps have two transactions; set the number of transactions "
                     "to SCOPE_ONE_TX");
    if (row->take_stock->kind != STOCK_COUNTER)
        return wrong(
            complaint,
            "with SCOPE_TWO_TX an order that fails gives its units back to the counter; choose a way of taking stock from the "
            "counter, or set the number of transactions to SCOPE_ONE_TX");
    return true;
}

/* The name stands unescaped in JSON and in metrics, and an order's row has room for so much of it. */
static bool has_valid_name(const struct strategy *row, const struct complaint *complaint)
{
    enum { NAME_MAX_LENGTH = sizeof((struct order *)NULL)->strategy - 1 };
    size_t length = strlen(row->name);
    return (length <= NAME_MAX_LENGTH &&
            strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length) ||
           wrong(complaint, "its name must have at most %d characters, of a-z, 0-9 and '-'; choose another",
                 NAME_MAX_LENGTH);
}

bool strategy_validate(const struct strategy *row, char *ret_error, size_t size)
{
    if (size > 0)
        *ret_error = '\0';
    const struct complaint complaint = {row->name && *row->name ? row->name : "(no name)", ret_error, size};
    if (!row->name || !*row->name)
        return wrong(&complaint, "it has no name; write one in the first cell");
    return has_valid_name(row, &complaint) && has_valid_cells(row, &complaint) &&
           has_valid_lock(row, &complaint) && has_valid_stock(row, &complaint) &&
           has_valid_fence(row, &complaint) && has_valid_combining(row, &complaint) &&
           has_valid_steps(row, &complaint);
}

bool strategies_validate(char *ret_error, size_t size)
{
    if (strategy_count == 0 || strategy_count > STRATEGIES_MAX) {
        snprintf(ret_error, size, "the table has %zu strategies; it must have 1 to %d", strategy_count,
                 STRATEGIES_MAX);
        return false;
    }
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *row = &strategies[i];
        if (!strategy_validate(row, ret_error, size))
            return false;
        if (strategy_find(row->name) != row) {
            const struct complaint complaint = {row->name, ret_error, size};
            return wrong(&complaint, "two rows have this name; rename one of them");
        }
    }
    return true;
}
