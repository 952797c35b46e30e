/* Which statements are not atomic, as far as their words tell. */
#include "tests/unit/unit.h"

#include "loadtest/search/statement_inside.h"

static struct routines routines;

static int set_up(void **state)
{
    (void)state;
    assert_true(routines_add(&routines, "claim", "SELECT n FROM t; UPDATE t SET n = n - 1", "function"));
    assert_true(routines_add(&routines, "one_read", "BEGIN RETURN (SELECT 1); END", "function"));
    assert_true(routines_add(&routines, "stamp", "BEGIN NEW.at := now(); RETURN NEW; END", "function"));
    assert_true(
        routines_add(&routines, "moves", "UPDATE t SET n = 1; COMMIT; UPDATE t SET n = 2", "function"));
    assert_true(routines_add(&routines, "sale", "claim", "trigger"));
    assert_true(routines_add(&routines, "product", "stamp", "trigger"));
    assert_true(routines_add(&routines, "My Sale", "claim", "trigger"));
    assert_true(routines_add(&routines, "few", "IF (SELECT count(*) FROM booking) > 1 THEN", "function"));
    assert_true(routines_add(&routines, "booking", "few", "deferred"));
    assert_true(routines_add(&routines, "room", "booking", "trigger"));
    assert_true(routines_add(&routines, "seat", "stamp", "deferred"));
    assert_true(routines_add(&routines, "free_unit", "SELECT id FROM unit WHERE NOT taken", "read"));
    assert_true(routines_add(&routines, "sales", "SELECT id FROM sale", "read"));
    assert_true(routines_add(&routines, "slug", "SELECT lower($1)", "read"));
    assert_true(routines_add(&routines, "limited", "sold", "trigger"));
    assert_true(routines_add(&routines, "sold", "SELECT count(*) FROM limited", "read"));
    assert_true(routines_add(&routines, "buy-one!", "SELECT n FROM t; UPDATE t SET n = n - 1", "function"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    routines_free(&routines);
    return 0;
}

static void test_statements(void **state)
{
    static const struct {
        const char *text;
        bool splits, can_split, several;
    } CASES[] = {
        {"SELECT count FROM product WHERE id = 1 FOR UPDATE", false, true, false},
        {"UPDATE product SET count = count - 1 WHERE count >= 1", false, true, false},
        {"INSERT INTO orders (product_id) VALUES (1)", false, true, false},
        {"INSERT INTO orders VALUES (1) ON CONFLICT DO UPDATE SET n = 2", false, true, false},
        {"INSERT INTO orders SELECT 1 WHERE (SELECT count(*) FROM orders) < 1", true, true, false},
        {"UPDATE unit SET who = 1 WHERE id = (SELECT id FROM unit LIMIT 1)", true, true, false},
        {"SELECT claim()", true, true, true},
        {"SELECT 'claim()'", false, true, false},
        {"SELECT 1 -- claim()", false, true, false},
        {"SELECT 1 -- it's\n, claim()", true, true, true},
        {"SELECT E'\\'', claim(), ''", true, true, true},
        {"SELECT 1 /* a /* b */ claim() */", false, true, false},
        {"SELECT $1 [claim]", false, true, false},
        {"UPDATE \"My Sale\" SET n = 1", true, true, true},
        {"SELECT public.claim()", true, true, true},
        {"SELECT one_read()", true, true, false},
        {"SELECT one_read() FROM t", true, true, true},
        {"INSERT INTO sale DEFAULT VALUES", true, true, true},
        {"UPDATE sale SET n = 1", true, true, true},
        {"CALL moves()", true, false, true},
        {"UPDATE a SET n = 1; UPDATE b SET n = 1", true, true, true},
        {"SELECT n FROM a; SELECT n FROM b", true, true, true},
        {"UPDATE a SET n = 1; COMMIT", false, false, false},
        {"SET search_path = shop; UPDATE a SET n = 1;", false, false, false},
        {"SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;", false, true, false},
        {"ROLLBACK; SELECT pg_advisory_unlock_all(); RESET ALL", false, false, false},
        {"UPDATE a SET n = 1; SELECT pg_advisory_unlock(1)", true, true, true},
        {"SELECT pg_advisory_xact_lock(1); UPDATE a SET n = 1", true, true, true},
        {"; UPDATE a SET n = 1; ; UPDATE b SET n = 1", true, true, true},
        {"DO $$ BEGIN PERFORM n FROM t; UPDATE t SET n = 1; END $$", true, true, true},
        {"DO LANGUAGE plpgsql $body$ BEGIN -- one\n PERFORM n FROM t; UPDATE t SET n = 1; END $body$", true,
         true, true},
        {"COPY t FROM STDIN", false, false, false},
        {"SELECT * FROM free_unit", false, true, false},
        {"INSERT INTO orders SELECT 1 FROM free_unit", true, true, false},
        {"UPDATE free_unit SET who = 1 WHERE id = 1", true, true, false},
        {"INSERT INTO sales VALUES (1)", true, true, true},
        {"INSERT INTO orders VALUES (slug('A'))", false, true, false},
        {"INSERT INTO limited VALUES (1)", true, true, false},
        {"SELECT \"buy-one!\"()", true, true, true},
        {"EXECUTE take(1)", true, true, true},
        {"", false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct statement_inside inside = statement_inside(&routines, CASES[i].text);
        if (inside.splits != CASES[i].splits || inside.can_split != CASES[i].can_split ||
            inside.several != CASES[i].several)
            fail_msg("'%s': %d %d %d", CASES[i].text, inside.splits, inside.can_split, inside.several);
    }
}

static void test_deferred_triggers(void **state)
{
    static const struct {
        const char *text;
        bool defers;
    } CASES[] = {
        {"INSERT INTO booking VALUES (1)", true},        {"SELECT * FROM booking", false},
        {"DELETE FROM room WHERE id = 1", true},         {"INSERT INTO seat VALUES (1)", false},
        {"UPDATE product SET count = count - 1", false}, {"COMMIT", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (statement_defers(&routines, CASES[i].text) != CASES[i].defers)
            fail_msg("'%s'", CASES[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_statements),
                                       cmocka_unit_test(test_deferred_triggers)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
