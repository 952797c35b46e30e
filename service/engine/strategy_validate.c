/* Checks, at program start, what the engine assumes about each row of the strategy table. */
#include "service/engine/strategy_validate.h"

#include "service/engine/create_order.h"

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
         "COMBINE_NONE, COMBINE_IN_POSTGRES or COMBINE_IN_REDIS"},
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

/* A lock's source file identifies its locks by address, so a copy does not work. */
static bool is_original(const struct lock_driver *lock, const struct complaint *complaint)
{
    const struct lock_driver *like = NULL;
    for (const struct lock_driver *const *listed = all_locks; *listed; listed++) {
        if (*listed == lock)
            return true;
        if ((*listed)->acquire == lock->acquire && (!like || strcmp((*listed)->name, lock->name) == 0))
            like = *listed;
    }
    return !like ||
           wrong(complaint,
                 "its lock is a copy of '%s'; refer to that lock itself, or give yours functions of its own",
                 like->name);
}

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
    if (lock->properties.renewed && !lock->renew)
        return wrong(
            complaint,
            "its lock '%s' is declared as renewed, but has no function renew; add it, or set renewed to false",
            lock->name);
    return is_original(lock, complaint);
}

static bool has_valid_lock(const struct strategy *row, const struct complaint *complaint)
{
    const struct lock_driver *lock = row->lock;
    if (!lock && row->span != SPAN_NONE)
        return wrong(
            complaint,
            "its span is %s, but its lock is NULL; name a lock of lock/lock.h, or set the span to SPAN_NONE",
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
    bool before = row->fencing == FENCE_BEFORE_READ;
    if (row->take_stock == take_fenced && !before)
        return wrong(complaint, "take_fenced demands a registered token; set the fence to FENCE_BEFORE_READ");
    if (row->take_stock == take_fence_on_write && row->fencing == FENCE_NONE)
        return wrong(complaint, "take_fence_on_write compares tokens; set the fence to FENCE_ON_WRITE");
    if (row->take_stock == take_checked && !row->lock)
        return wrong(
            complaint,
            "take_checked asks the lock whether it is still held, but there is no lock; choose a lock");
    if (row->fencing == FENCE_NONE)
        return true;
    if (!row->lock || !row->lock->server || !row->lock->properties.fenced)
        return wrong(
            complaint,
            "it has a fence, but its lock grants no tokens; choose one that does (redis_fenced, zookeeper_queue, "
            "etcd_mutex), or set the fence to FENCE_NONE");
    if (before && row->span == SPAN_INSIDE_TX)
        return wrong(
            complaint,
            "its token is registered before the transaction, but the lock is taken inside it; set the span to "
            "SPAN_AROUND_TX");
    return true;
}

/* ---- the transaction --------------------------------------------------------------------------------------------- */

/* The workers combine orders by COMBINING, and such a batch neither goes through the engine's steps nor takes a lock. */
static bool has_valid_combining(const struct strategy *row, const struct complaint *complaint)
{
    enum combining wanted = row->place == place_in_batch   ? COMBINE_IN_POSTGRES
                            : row->place == place_in_redis ? COMBINE_IN_REDIS
                                                           : COMBINE_NONE;
    if (row->combining != wanted && wanted == COMBINE_NONE)
        return wrong(complaint,
                     "its place function places one order at a time; set its combining to COMBINE_NONE");
    if (row->combining != wanted)
        return wrong(complaint, "it has another combining than its place function; with %s set it to %s",
                     wanted == COMBINE_IN_REDIS ? "place_in_redis" : "place_in_batch",
                     wanted == COMBINE_IN_REDIS ? "COMBINE_IN_REDIS" : "COMBINE_IN_POSTGRES");
    if (wanted != COMBINE_NONE && row->lock)
        return wrong(complaint, "it combines orders, but has a lock, which no batch takes; set the lock to "
                                "NULL and the span to SPAN_NONE");
    return true;
}

static bool has_valid_steps(const struct strategy *row, const struct complaint *complaint)
{
    bool by_steps = !row->place || row->place == place_by_steps;
    if (by_steps && !row->take_stock)
        return wrong(
            complaint,
            "it has no way of taking stock; name one of db/stock/stock.h, or a function of your own");
    if (!has_valid_combining(row, complaint))
        return false;
    if (row->max_tries < 0 || row->max_tries > TRIES_MAX)
        return wrong(complaint, "it has %d tries; it must have 1 to %d", row->max_tries, TRIES_MAX);
    if (row->scope == SCOPE_TWO_TX && row->max_tries > 1)
        return wrong(
            complaint,
            "with SCOPE_TWO_TX the stock is committed first, and another try would take it again; set the tries to 1");
    if (row->scope == SCOPE_TWO_TX && by_steps && strategy_stock_kind(row) != STOCK_COUNTER)
        return wrong(
            complaint,
            "with SCOPE_TWO_TX an order that fails gives its units back to the counter; choose a way of taking stock from the "
            "counter, or set the number of transactions to SCOPE_ONE_TX");
    return true;
}

bool strategy_validate(const struct strategy *row, char *ret_error, size_t size)
{
    if (size > 0)
        *ret_error = '\0';
    const struct complaint complaint = {row->name && *row->name ? row->name : "(no name)", ret_error, size};
    if (!row->name || !*row->name)
        return wrong(&complaint, "it has no name; write one in the first cell");
    return has_valid_cells(row, &complaint) && has_valid_lock(row, &complaint) &&
           has_valid_fence(row, &complaint) && has_valid_steps(row, &complaint);
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
