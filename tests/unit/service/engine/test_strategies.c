/* The table of strategies: that its rows are the ones promised, and that no row contradicts itself. */
#include "tests/unit/unit.h"

#include "tests/unit/service/engine/shapes.h"

#include "service/engine/strategy.h"

/* ---- what a row may promise --------------------------------------------------------------------------------- */

/* Locks that let two holders in, or nobody, even while every lease lasts and every server answers. The lock's contract
 * tests show each flaw. */
static const struct {
    const struct lock_driver *lock;
    unsigned shown_by;
} flawed[] = {
    {&process_mutex_wrong_object, SHOWN_BY_LOAD},
    {&redis_setnx_forever, SHOWN_BY_CRASH},
    {&redis_setnx, SHOWN_BY_CRASH},
    {&redis_setnx_repair, SHOWN_BY_EXPIRY},
    {&redis_del, SHOWN_BY_EXPIRY},
    {&redis_get_del, SHOWN_BY_EXPIRY},
    {&redis_registry_shared, SHOWN_BY_LOAD},
    {&zookeeper_naive, SHOWN_BY_EXPIRY},
};

/* Does PostgreSQL itself refuse or delay an order that would oversell? Then no lock around it matters. */
static bool database_decides(const struct strategy *s)
{
    static const struct stock_policy *const guarded[] = {
        &take_guarded,    &take_for_update, &take_decrement_checked,
        &take_optimistic, &take_table_lock, &take_advisory_lock,
        &take_units,      &take_buckets};
    for (size_t i = 0; i < COUNT(guarded); i++)
        if (s->take_stock == guarded[i])
            return true;
    if (s->place == place_in_one_statement || !strategy_has_steps(s))
        return true;
    if (s->take_stock == &take_read_write) /* 40001 for the second of two writers */
        return s->isolation != DB_READ_COMMITTED;
    return s->take_stock == &take_fenced && s->fencing == FENCE_BEFORE_READ;
}

/* The most that the row's cells can keep, and what shows that it is no more. */
static enum guarantee derive(const struct strategy *s, unsigned *ret_shown_by)
{
    /* A crash between two transactions loses units, whatever protects the first. */
    unsigned crash = s->scope == SCOPE_TWO_TX ? SHOWN_BY_CRASH : SHOWN_BY_NOTHING;
    if (database_decides(s) && !crash) {
        *ret_shown_by = SHOWN_BY_NOTHING;
        return GUARANTEE_SAFE;
    }
    *ret_shown_by = SHOWN_BY_LOAD | crash;
    if (!s->lock || s->span == SPAN_NONE || s->span == SPAN_INSIDE_TX)
        return GUARANTEE_UNSAFE;
    for (size_t i = 0; i < COUNT(flawed); i++)
        if (s->lock == flawed[i].lock) {
            *ret_shown_by = flawed[i].shown_by | crash;
            return GUARANTEE_UNSAFE;
        }
    *ret_shown_by = (s->lock->server ? SHOWN_BY_EXPIRY : SHOWN_BY_SECOND_PROCESS) | crash;
    return s->lock->server ? GUARANTEE_WHILE_LEASE_HOLDS : GUARANTEE_ONE_PROCESS;
}

static void test_each_row_promises_what_its_cells_keep(void **state)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *s = &strategies[i];
        unsigned shown_by;
        enum guarantee guarantee = derive(s, &shown_by);
        if (s->guarantee != guarantee)
            fail_msg("the row '%s' promises '%s'; its cells keep '%s'", s->name, guarantee_name(s->guarantee),
                     guarantee_name(guarantee));
        if (s->shown_by != shown_by)
            fail_msg("the row '%s' is shown by %#x; its cells by %#x", s->name, s->shown_by, shown_by);
    }
}

/* One cell of a right row is changed: its cells no longer keep what it promises. */
#define PROMISES_TOO_MUCH(name, ...)                                                                         \
    do {                                                                                                     \
        struct strategy row = *strategy_find(name);                                                          \
        unsigned shown_by;                                                                                   \
        assert_int_equal(derive(&row, &shown_by), row.guarantee);                                            \
        __VA_ARGS__;                                                                                         \
        if (derive(&row, &shown_by) >= row.guarantee)                                                        \
            fail_msg("%s: a wrong cell is not seen", name);                                                  \
    } while (0)

static void test_a_row_that_promises_too_much_is_seen(void **state)
{
    PROMISES_TOO_MUCH("select-for-update", row.take_stock = &take_read_write);
    PROMISES_TOO_MUCH("check-constraint", row.take_stock = &take_decrement);
    PROMISES_TOO_MUCH("serializable", row.isolation = DB_READ_COMMITTED);
    PROMISES_TOO_MUCH("optimistic", row.scope = SCOPE_TWO_TX);
    PROMISES_TOO_MUCH("redis-fenced", row.fencing = FENCE_ON_WRITE);
    PROMISES_TOO_MUCH("etcd-fenced", row.take_stock = &take_read_write);
    PROMISES_TOO_MUCH("redis-lock", row.guarantee = GUARANTEE_SAFE);
    PROMISES_TOO_MUCH("redis-lock", row.span = SPAN_INSIDE_TX);
    PROMISES_TOO_MUCH("redis-lock", row.lock = &redis_del);
    PROMISES_TOO_MUCH("mutex", row.guarantee = GUARANTEE_WHILE_LEASE_HOLDS);
    PROMISES_TOO_MUCH("mutex", row.lock = &process_mutex_wrong_object);
    PROMISES_TOO_MUCH("read-write", row.guarantee = GUARANTEE_ONE_PROCESS);
}

/* A condition that a row must keep; the message names the row. */
#define ROW(s, condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("the row '%s' breaks: %s", (s)->name, #condition);                                      \
    } while (0)

/* Lower-case words joined by single dashes. */
static bool is_kebab(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && name[0] >= 'a' &&
           name[0] <= 'z' && name[length - 1] != '-' && !strstr(name, "--");
}

static void test_names(void **state)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *s = &strategies[i];
        ROW(s, is_kebab(s->name));
        ROW(s, strlen(s->name) < sizeof((struct order *)NULL)->strategy); /* an order carries it whole */
        ROW(s, strategy_index(s) == i);
        ROW(s, s->title && s->title[0]);
        ROW(s, s->why && strlen(s->why) > 20 && s->why[strlen(s->why) - 1] == '.');
        char use[USE_MAX];
        ROW(s, strategy_use_for(s, use) && use[0] && strlen(use) <= 40); /* the demo's last column */
    }
}

/* Rows of one guarantee fail at the same event, so none is for work that must not fail then while another is for work that may. */
static void test_what_a_row_is_for_follows_from_its_guarantee(void **state)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *s = &strategies[i];
        const char *allowed = guarantee_use(s->guarantee);
        char use[USE_MAX];
        assert_non_null(strategy_use_for(s, use));
        ROW(s, !s->instead || !s->fits);
        ROW(s, !strstr(use, "once") && !strstr(use, "never"));
        ROW(s, !strstr(s->why, "runs once") && !strstr(s->why, "never the stock"));
        ROW(s, s->guarantee == GUARANTEE_SAFE || s->instead || strncmp(use, allowed, strlen(allowed)) == 0);
        ROW(s, !s->instead || strncmp(use, "nothing: ", 9) == 0);
        /* What it suits is a property of its lock, or of its stock where it is safe. */
        ROW(s, s->guarantee >= GUARANTEE_WHILE_LEASE_HOLDS || (!s->fits && !s->instead));
        bool is_fair = s->fits && strcmp(s->fits, "fair") == 0;
        ROW(s, !is_fair || s->lock->properties.fair);
        ROW(s, !s->fits || strcmp(s->fits, "reentrant") != 0 || s->lock->properties.reentrant);
    }
}

static void test_names_that_are_not_there(void **state)
{
    static const char *const names[] = {"",       "mute",   "mutexx",  "Mutex", "MUTEX",
                                        " mutex", "mutex ", "mutex\n", "none"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_null(strategy_find(names[i]));
}

/* What strategy_validate leaves open, because the engine could run such a row. */
static void test_rows(void **state)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *s = &strategies[i];
        ROW(s, s->fencing == FENCE_NONE || s->span == SPAN_AROUND_TX);
        ROW(s, s->fencing == s->take_stock->fencing);
        /* What is refused for the sake of another order is worth another try. */
        ROW(s, s->isolation == DB_READ_COMMITTED || s->max_tries > 1);
        ROW(s, s->take_stock != &take_optimistic || s->max_tries > 1);
        ROW(s, s->take_stock != &take_buckets || s->max_tries > 1);
        /* Their statements rely on seeing what was committed while they waited. */
        ROW(s, s->take_stock->kind == STOCK_COUNTER || s->isolation == DB_READ_COMMITTED);
        /* A queue in front of a race would hide it. */
        ROW(s, s->combining != COMBINE_IN_TURN || (database_decides(s) && s->guarantee == GUARANTEE_SAFE));
        bool by_steps = !s->place && strategy_has_steps(s);
        ROW(s, by_steps == (s->take_stock->take != NULL));
        ROW(s, by_steps || s->span == SPAN_NONE);
    }
}

/* ---- kinds of stock --------------------------------------------------------------------------------------- */

static void test_stock_kinds(void **state)
{
    static const char *const strangers[] = {"", "count", "counters", "Counter", "units ", "redis\n"};
    enum stock_kind found = STOCK_KIND_COUNT;
    for (int i = 0; i < STOCK_KIND_COUNT; i++) {
        assert_true(is_kebab(stock_kinds[i].name));
        assert_true(strlen(stock_kinds[i].name) < sizeof((struct stock_taken *)NULL)->kind);
        assert_true(stock_kinds[i].most > 0 && stock_kinds[i].most <= STOCK_MAX);
        assert_non_null(stock_kinds[i].fill);
        assert_true(stock_kind_find(stock_kinds[i].name, &found));
        assert_int_equal(found, i); /* so there is no other of this name */
    }
    for (size_t i = 0; i < COUNT(strangers); i++)
        assert_false(stock_kind_find(strangers[i], &found));
    assert_int_equal(found, STOCK_KIND_COUNT - 1); /* untouched */
    assert_string_equal(stock_kinds[STOCK_COUNTER].name, "counter");
    assert_int_equal(stock_kinds[STOCK_UNITS].most, 100000);
}

static void test_the_engine_is_tested_with_every_shape(void **state)
{
    for (size_t i = 0; i < strategy_count; i++) {
        const struct strategy *s = &strategies[i];
        bool has_shape = !strategy_has_steps(s); /* these have their own tests */
        for (size_t j = 0; j < COUNT(shapes); j++)
            has_shape = has_shape || (shapes[j].span == s->span && shapes[j].scope == s->scope &&
                                      shapes[j].tries_again == (s->max_tries > 1) &&
                                      shapes[j].fencing == s->fencing && shapes[j].place == s->place);
        ROW(s, has_shape);
    }
}

/* ---- the table of locks ---------------------------------------------------------------------------------- */

/* Their functions are checked by strategy_validate, because each lock has a strategy. */
static void test_locks(void **state)
{
    for (const struct lock_driver *const *lock = all_locks; *lock; lock++) {
        const struct lock_driver *driver = *lock;
        assert_true(is_kebab(driver->name));
        assert_true(!driver->server || driver->server->address);
        assert_true(driver->properties.mechanism && driver->properties.mechanism[0]);
        enum lock_carrier carrier = driver->properties.carrier;
        bool paused = driver->properties.perils & PERIL_PAUSE;
        bool disconnected = driver->properties.perils & PERIL_DISCONNECT;
        assert_true(!driver->properties.renewed || carrier == CARRIER_LEASE);
        assert_int_equal(paused, carrier == CARRIER_LEASE || carrier == CARRIER_SESSION);
        assert_int_equal(disconnected, carrier == CARRIER_SESSION || carrier == CARRIER_CONNECTION);
        for (const struct lock_driver *const *other = all_locks; *other; other++)
            assert_true(other == lock || strcmp((*other)->name, driver->name) != 0);
        const struct strategy *named = strategy_find(driver->name); /* "the strategy's name that uses it" */
        if (!named || named->lock != driver)
            fail_msg("the lock '%s' is not that of the strategy of its name", driver->name);
    }
    for (size_t i = 0; i < strategy_count; i++) {
        const struct lock_driver *const *lock = all_locks;
        while (strategies[i].lock && *lock && *lock != strategies[i].lock)
            lock++;
        ROW(&strategies[i], !strategies[i].lock || *lock);
    }
}

/* ---- names of enums -------------------------------------------------------------------------------------- */

static void check_names(const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++) {
        assert_non_null(name_of(i));
        assert_true(is_kebab(name_of(i)));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name_of(i), name_of(j));
    }
}

static const char *outcome_of(int i)
{
    return outcome_name((enum outcome)i);
}

static const char *step_of(int i)
{
    return step_name((enum step)i);
}

static const char *guarantee_of(int i)
{
    return guarantee_name((enum guarantee)i);
}

static const char *span_of(int i)
{
    return span_name((enum lock_span)i);
}

static const char *scope_of(int i)
{
    return scope_name((enum tx_scope)i);
}

static const char *isolation_of(int i)
{
    return isolation_name((enum db_isolation)i);
}

static void test_names_of_enums(void **state)
{
    check_names(outcome_of, OUTCOME_COUNT);
    check_names(step_of, STEP_COUNT);
    check_names(guarantee_of, GUARANTEE_SAFE + 1);
    check_names(span_of, SPAN_AROUND_TWICE + 1);
    check_names(scope_of, SCOPE_TWO_TX + 1);
    check_names(isolation_of, DB_SERIALIZABLE + 1);
    /* Those that the design spells out. */
    assert_string_equal(guarantee_name(GUARANTEE_UNSAFE), "unsafe");
    assert_string_equal(guarantee_name(GUARANTEE_ONE_PROCESS), "one-process");
    assert_string_equal(guarantee_name(GUARANTEE_WHILE_LEASE_HOLDS), "while-lease-holds");
    assert_string_equal(guarantee_name(GUARANTEE_SAFE), "safe");
    static const char *const steps[] = {"wait",   "lock",   "fence",        "read",         "write",  "take",
                                        "insert", "commit", "commit-stock", "commit-order", "unlock", "setnx",
                                        "expire", "get",    "del",          "check",        "refuse"};
    assert_int_equal(COUNT(steps), STEP_COUNT);
    for (int i = 0; i < STEP_COUNT; i++)
        assert_string_equal(step_name((enum step)i), steps[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_promises_what_its_cells_keep),
        cmocka_unit_test(test_a_row_that_promises_too_much_is_seen),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_a_row_is_for_follows_from_its_guarantee),
        cmocka_unit_test(test_names_that_are_not_there),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_stock_kinds),
        cmocka_unit_test(test_the_engine_is_tested_with_every_shape),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_names_of_enums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
