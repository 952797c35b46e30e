/* Wrong rows are explained: which row, which cell, what to change. */
#include "tests/unit/unit.h"

#include "service/engine/batch.h"
#include "service/engine/strategy_validate.h"

#include <string.h>

static const struct strategy RIGHT = {.name = "mine",
                                      .guarantee = GUARANTEE_WHILE_LEASE_HOLDS,
                                      .shown_by = SHOWN_BY_EXPIRY,
                                      .span = SPAN_AROUND_TX,
                                      .lock = &redis_fenced,
                                      .take_stock = &take_read_write,
                                      .max_tries = 1,
                                      .title = "Mine",
                                      .why = "It is."};

static void every_row_of_the_table_is_right(void **state)
{
    char error[400] = "";
    if (!strategies_validate(error, sizeof error))
        fail_msg("%s", error);
    if (!strategy_validate(&RIGHT, error, sizeof error))
        fail_msg("%s", error);
}

/* The row is refused, and the explanation begins with its name and says each of two things. */
static void is_refused(struct strategy row, const char *what, const char *remedy)
{
    char error[400] = "", tiny[8];
    assert_false(strategy_validate(&row, error, sizeof error));
    if (strncmp(error, "strategy 'mine': ", 17) != 0 || !strstr(error, what) || !strstr(error, remedy))
        fail_msg("'%s' does not say '%s' and '%s'", error, what, remedy);
    assert_false(strategy_validate(&row, tiny, sizeof tiny)); /* and stays within its buffer */
}

#define WRONG(what, remedy, ...)                                                                             \
    do {                                                                                                     \
        struct strategy row = RIGHT;                                                                         \
        __VA_ARGS__;                                                                                         \
        is_refused(row, what, remedy);                                                                       \
    } while (0)

static void wrong_locks_are_explained(void **state)
{
    struct lock_driver lame = redis_fenced, small = redis_fenced, never_renewed = redis_fenced,
                       unexplained = redis_fenced;
    lame.still_held = NULL;
    small.handle_size = 0;
    never_renewed.properties.renewed = true;
    never_renewed.renew = NULL;
    unexplained.properties.mechanism = NULL;
    WRONG("its lock is NULL", "span to SPAN_NONE", row.lock = NULL);
    WRONG("its span is SPAN_NONE", "SPAN_AROUND_TX", row.span = SPAN_NONE);
    WRONG("cannot take the lock 'redis-fenced' again", "reentrant", row.span = SPAN_AROUND_TWICE);
    WRONG("lacks its name or a function", "still_held", row.lock = &lame);
    WRONG("no handle_size", "size of the lock's own struct", row.lock = &small);
    WRONG("has no function renew", "set renewed to false", row.lock = &never_renewed);
    WRONG("says nothing of its mechanism", "properties", row.lock = &unexplained);
}

static void wrong_fences_are_explained(void **state)
{
    WRONG("grants no tokens", "FENCE_NONE", row.fencing = FENCE_ON_WRITE, row.lock = &process_mutex);
    WRONG("grants no tokens", "FENCE_NONE", row.fencing = FENCE_BEFORE_READ, row.lock = NULL,
          row.span = SPAN_NONE);
    struct lock_driver elsewhere = redis_fenced;
    elsewhere.server = lock_row.server;
    WRONG("no tokens of 'lock-database'", "FENCE_NONE", row.fencing = FENCE_ON_WRITE, row.lock = &elsewhere);
    WRONG("taken inside it", "SPAN_AROUND_TX", row.fencing = FENCE_BEFORE_READ, row.span = SPAN_INSIDE_TX);
    WRONG("take_fenced", "FENCE_BEFORE_READ", row.take_stock = &take_fenced);
    WRONG("take_fence_on_write", "FENCE_ON_WRITE", row.take_stock = &take_fence_on_write);
    WRONG("take_checked", "choose a lock", row.take_stock = &take_checked, row.lock = NULL,
          row.span = SPAN_NONE);
}

/* A way of placing that is neither the engine's steps nor a batch. */
static enum outcome place_alone(struct placing *placing)
{
    return ORDER_FAILED;
}

static void row_without_lock(enum outcome (*place)(struct placing *), enum combining combining,
                             const struct stock_policy *take_stock, bool is_valid)
{
    char error[400] = "";
    struct strategy row = RIGHT;
    row.span = SPAN_NONE;
    row.lock = NULL;
    row.place = place;
    row.combining = combining;
    row.take_stock = take_stock;
    if (strategy_validate(&row, error, sizeof error) != is_valid)
        fail_msg("combining %d: '%s'", (int)combining, error);
}

static void wrong_steps_are_explained(void **state)
{
    WRONG("no way of taking stock", "db/stock/stock.h", row.take_stock = NULL);
    WRONG("has no function", "db/stock/stock.h", row.take_stock = &take_while_placing);
    WRONG("has no name", "fill in both", row.take_stock = (&(const struct stock_policy){0}));
    WRONG("no kind of stock", "fill in both",
          row.take_stock = (&(const struct stock_policy){.name = "x", .kind = STOCK_KIND_COUNT}));
    WRONG("belong together", "set both", row.take_stock = &take_in_redis, row.place = place_alone);
    WRONG("belong together", "set both", row.combining = COMBINE_IN_REDIS);
    WRONG("and place_in_batch belong together", "set both", row.place = place_in_batch);
    WRONG("and place_in_batch belong together", "set both", row.combining = COMBINE_IN_POSTGRES,
          row.take_stock = &take_while_placing, row.lock = NULL, row.span = SPAN_NONE,
          row.fencing = FENCE_NONE);
    WRONG("one order at a time", "COMBINE_NONE", row.combining = COMBINE_IN_POSTGRES);
    WRONG("one order at a time", "COMBINE_NONE", row.combining = COMBINE_IN_POSTGRES, row.place = place_alone,
          row.take_stock = &take_while_placing);
    row_without_lock(place_in_batch, COMBINE_IN_POSTGRES, &take_while_placing, true);
    row_without_lock(NULL, COMBINE_IN_POSTGRES, &take_while_placing, false);
    row_without_lock(place_in_batch, COMBINE_IN_TURN, &take_while_placing, false);
    row_without_lock(NULL, COMBINE_IN_REDIS, &take_in_redis, true);
    row_without_lock(place_alone, COMBINE_NONE, &take_while_placing, true);
    row_without_lock(place_alone, COMBINE_IN_REDIS, &take_in_redis, false);
    row_without_lock(NULL, COMBINE_IN_REDIS, &take_while_placing, false);
    row_without_lock(place_in_batch, COMBINE_IN_POSTGRES, &take_in_redis, false);
    WRONG("has a lock", "span to SPAN_NONE", row.take_stock = &take_while_placing,
          row.combining = COMBINE_IN_POSTGRES);
    WRONG("has a lock", "span to SPAN_NONE", row.take_stock = &take_in_redis,
          row.combining = COMBINE_IN_REDIS);
    WRONG("in turn, so that only", "leave out the lock", row.combining = COMBINE_IN_TURN);
    WRONG("in turn, which hides its flaw", "COMBINE_NONE", row.combining = COMBINE_IN_TURN, row.lock = NULL,
          row.span = SPAN_NONE, row.fencing = FENCE_NONE, row.take_stock = &take_read_write,
          row.guarantee = GUARANTEE_UNSAFE, row.shown_by = SHOWN_BY_LOAD);
    WRONG("-1 tries", "1 to 1000", row.max_tries = -1);
    WRONG("committed first", "tries to 1", row.scope = SCOPE_TWO_TX, row.max_tries = 2);
    WRONG("only the engine's steps", "SCOPE_ONE_TX", row.scope = SCOPE_TWO_TX, row.place = place_alone);
    WRONG("gives its units back to the counter", "SCOPE_ONE_TX", row.scope = SCOPE_TWO_TX,
          row.take_stock = &take_units);
    WRONG("gives its units back to the counter", "SCOPE_ONE_TX", row.scope = SCOPE_TWO_TX,
          row.take_stock = &take_buckets);
}

static void wrong_cells_are_explained(void **state)
{
    WRONG("isolation is 9", "DB_READ_COMMITTED", row.isolation = (enum db_isolation)9);
    WRONG("guarantee is 4", "GUARANTEE_SAFE", row.guarantee = (enum guarantee)4);
    WRONG("span of the lock is 7", "SPAN_AROUND_TX", row.span = (enum lock_span)7);
    WRONG("must be a combination", "SHOWN_BY_CRASH", row.shown_by = 1u << 20);
    WRONG("SHOWN_BY_NOTHING shows its flaw", "promise GUARANTEE_SAFE", row.shown_by = SHOWN_BY_NOTHING);
    WRONG("it is GUARANTEE_SAFE", "SHOWN_BY_NOTHING", row.guarantee = GUARANTEE_SAFE);
    WRONG("is missing", "both texts", row.why = NULL);
}

static void a_wrong_name_is_explained(void **state)
{
    static const char *const names[] = {"Mine", "a name", "a\"b",
                                        "a-name-that-is-longer-than-an-order-has-room"};
    char error[400];
    for (size_t i = 0; i < COUNT(names); i++) {
        struct strategy row = RIGHT;
        row.name = names[i];
        assert_false(strategy_validate(&row, error, sizeof error));
        assert_non_null(strstr(error, "choose another"));
    }
    assert_false(strategy_validate(&(struct strategy){0}, error, sizeof error));
    assert_string_equal(error, "strategy '(no name)': it has no name; write one in the first cell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table_is_right), cmocka_unit_test(wrong_locks_are_explained),
        cmocka_unit_test(wrong_fences_are_explained),      cmocka_unit_test(wrong_steps_are_explained),
        cmocka_unit_test(wrong_cells_are_explained),       cmocka_unit_test(a_wrong_name_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
