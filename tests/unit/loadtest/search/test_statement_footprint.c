/* What statements read and write: which two meet. */
#include "tests/unit/unit.h"

#include "loadtest/search/statement_footprint.h"

static struct known_tables tables;
static struct routines routines;

static int set_up(void **state)
{
    static const char *const ROWS[][3] = {
        {"product", "", "table"},     {"order_item", "", "table"}, {"order_item", "orders", "child"},
        {"orders", "", "table"},      {"audit", "", "table"},      {"part", "", "table"},
        {"part", "", "unclear"},      {"watched", "", "table"},    {"order_item", "product", "child"},
        {"log", "", "table"},         {"log", "", "grows"},        {"log", "id", "numbered"},
        {"log", "customer", "child"}, {"customer", "", "table"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!known_tables_add(&tables, ROWS[i][0], ROWS[i][1], ROWS[i][2]))
            return 1;
    return routines_add(&routines, "watched", "log_it", "trigger") &&
                   routines_add(&routines, "log_it", "BEGIN INSERT INTO audit VALUES (1); END", "function")
               ? 0
               : 1;
}

static int tear_down(void **state)
{
    known_tables_free(&tables);
    routines_free(&routines);
    return 0;
}

static bool meet(const char *one, const char *other)
{
    const struct footprint a = statement_footprint(&tables, &routines, one),
                           b = statement_footprint(&tables, &routines, other);
    assert_int_equal(footprints_meet(&a, &b), footprints_meet(&b, &a));
    return footprints_meet(&a, &b);
}

static void test_which_meet(void **state)
{
    static const struct {
        const char *one, *other;
        bool meet;
    } CASES[] = {
        {"SELECT count FROM product WHERE id = 1", "SELECT count FROM product WHERE id = 1", false},
        {"SELECT count FROM product WHERE id = 1", "UPDATE product SET count = 0", true},
        {"SELECT * FROM audit", "UPDATE product SET count = 0", false},
        {"SELECT * FROM public.\"product\"", "UPDATE product SET count = 0", true},
        {"SELECT * FROM product FOR SHARE", "SELECT * FROM product FOR SHARE", true},
        {"SELECT * FROM product FOR UPDATE", "SELECT * FROM product", true},
        {"INSERT INTO audit (note) VALUES ('product')", "UPDATE product SET count = 0", false},
        {"INSERT INTO audit (note) VALUES (take())", "UPDATE product SET count = 0", true},
        {"INSERT INTO audit VALUES ('product')", "UPDATE product SET count = 0", false},
        {"BEGIN", "UPDATE product SET count = 0", false},
        {"BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT 1", true},
        {"COMMIT", "UPDATE product SET count = 0", false},
        /* foreign keys */
        {"INSERT INTO order_item VALUES (1, 1)", "DELETE FROM product", true},
        {"INSERT INTO order_item VALUES (1, 1)", "INSERT INTO orders VALUES (1)", true},
        {"INSERT INTO order_item VALUES (1, 1)", "SELECT * FROM product", false},
        {"DELETE FROM orders", "SELECT * FROM order_item", true},
        {"SELECT * FROM orders", "SELECT * FROM order_item FOR UPDATE", false},
        /* what runs inside, and what cannot be told */
        {"INSERT INTO watched VALUES (1)", "SELECT * FROM audit", true},
        {"SELECT log_it()", "SELECT * FROM audit", true},
        {"SELECT * FROM part", "SELECT 1", true},
        {"SELECT nextval('numbers')", "SELECT 1", true},
        {"SELECT pg_advisory_lock(1)", "SELECT 1", true},
        {"SELECT * FROM pg_locks", "SELECT 1", true},
        {"SET search_path = other", "SELECT 1", true},
        {"DO $$ BEGIN END $$", "SELECT 1", true},
        {"EXECUTE plan", "SELECT 1", true},
        {"SELECT xmin FROM audit", "SELECT 1", true},
        {"WITH taken AS (UPDATE product SET count = 0 RETURNING id) SELECT * FROM taken",
         "SELECT * FROM product", true},
        {"SELECT 1; UPDATE product SET count = 0", "SELECT * FROM product", true},
        {"SELECT 1; CREATE TABLE x (y int)", "SELECT 1", true},
        {"UPDATE product SET sold_at = now()", "SELECT json_agg(note) FROM audit", false},
        {"UPDATE product SET note = random()", "SELECT 1", true},
        /* new rows */
        {"INSERT INTO log (note) VALUES ('a')", "INSERT INTO public.log (note) VALUES ('b') RETURNING id",
         false},
        {"INSERT INTO log (note) VALUES ('a')", "SELECT count(*) FROM log", true},
        {"INSERT INTO log (note) VALUES ('a')", "DELETE FROM log", true},
        {"INSERT INTO log (note) VALUES ('a')", "UPDATE customer SET name = 'x'", true},
        {"INSERT INTO log (id, note) VALUES (1, 'a')", "INSERT INTO log (note) VALUES ('b')", true},
        {"INSERT INTO log VALUES (1, 'a')", "INSERT INTO log (note) VALUES ('b')", true},
        {"INSERT INTO log (note) SELECT name FROM customer", "INSERT INTO log (note) VALUES ('b')", true},
        {"INSERT INTO log (note) VALUES ((SELECT max(id) FROM log))", "INSERT INTO log (note) VALUES ('b')",
         true},
        {"INSERT INTO log (note) VALUES ('a') ON CONFLICT DO NOTHING", "INSERT INTO log (note) VALUES ('b')",
         true},
        {"INSERT INTO audit (note) VALUES ('a')", "INSERT INTO audit (note) VALUES ('b')", true},
        {"SELECT coalesce(sum(quantity), 0) FROM order_item", "SELECT * FROM audit FOR UPDATE", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (meet(CASES[i].one, CASES[i].other) != CASES[i].meet)
            fail_msg("\"%s\" and \"%s\": %s", CASES[i].one, CASES[i].other,
                     CASES[i].meet ? "they must meet" : "they need not meet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_meet),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
