/* What the words of a statement show of its tables, its locks and its condition. */
#include "tests/unit/unit.h"

#include "loadtest/sql/statement_shape.h"

#include <stdio.h>
#include <string.h>

static void add(char *text, const char *more)
{
    strncat(text, more, 300 - strlen(text));
}

/* TEXT in short: its tables with R(ead), L(ock), U(pdate), D(elete) or I(nsert), and its properties. */
static void shows(const char *text, const char *expected)
{
    const struct statement_shape shape = statement_shape(text, 300);
    char got[301] = "";
    for (size_t i = 0; i < shape.use_count; i++) {
        const char access[] = {' ', "RLUDI"[shape.uses[i].access], ' ', '\0'};
        add(got, access + (i == 0));
        add(got, shape.uses[i].table);
    }
    for (size_t i = 0; i < shape.set_count; i++) {
        add(got, i ? "," : " set ");
        add(got, shape.set[i]);
    }
    add(got, shape.relative ? " relative" : "");
    add(got, shape.conditional ? " conditional" : "");
    add(got, shape.aggregates ? " aggregates" : "");
    add(got, shape.skips_locked ? " skips" : "");
    add(got, shape.several ? " several" : "");
    add(got, shape.unknown ? " unknown" : "");
    add(got, shape.ends == ENDS_COMMIT ? " commit" : shape.ends == ENDS_ROLLBACK ? " rollback" : "");
    assert_string_equal(got, expected);
}

static void test_reads_and_locks(void **state)
{
    shows("", "");
    shows("SELECT 1", "");
    shows("SELECT count FROM shop.\"Product\" AS p WHERE id = 1", "R product");
    shows("select count(*) from ONLY seat, ticket t join buyer b using (id) left join c on b.id = c.id",
          "R seat R ticket R buyer R c aggregates");
    shows("SELECT extract(epoch FROM now()), a IS DISTINCT FROM b FROM t", "R t");
    shows("SELECT a FROM t FOR UPDATE", "L t");
    shows("SELECT a FROM t FOR NO KEY UPDATE SKIP LOCKED", "L t skips");
    shows("SELECT a FROM t x FOR SHARE OF x NOWAIT", "L t");
    shows("SELECT a FROM t FOR KEY SHARE", "R t");
    shows("SELECT a FROM t x JOIN u y ON x.id = y.id FOR UPDATE OF x", "L t R u");
    shows("SELECT a FROM t x, u y, v FOR UPDATE OF x, y", "L t L u R v");
    shows(
        "SELECT v.count - coalesce((SELECT sum(quantity) FROM hold WHERE sku = 'A'), 0) FROM variant v WHERE sku = 'A' FOR UPDATE OF v",
        "R hold L variant aggregates");
    shows("SELECT a FROM (SELECT a FROM t) x FOR UPDATE", "L t");
    shows("WITH x AS (SELECT count FROM t FOR UPDATE) SELECT sum(count) FROM x", "L t R x aggregates");
    shows("SELECT a FROM t WHERE id IN (SELECT id FROM u) UNION SELECT a FROM v FOR UPDATE", "R t R u L v");
    shows("SELECT a FROM generate_series(1, 2) g, t", "R t");
    shows("SELECT 'FROM x FOR UPDATE', E'it\\'s FROM y', $$ FROM z $$ FROM t WHERE b = 'it''s' [1, 'FROM x']",
          "R t");
    shows("/* FROM x */ SELECT a FROM t", "R t");
}

static void test_writes(void **state)
{
    shows("UPDATE ONLY product SET count = 0 WHERE note = 'insert into x'", "U product set count");
    shows("UPDATE product p SET count = p.count - 1, sold = 2 WHERE id = 1",
          "U product set count,sold relative");
    shows("UPDATE discount SET total_use = total_use + 1 WHERE code = 'BF' AND total_use < usage_limit",
          "U discount set total_use relative conditional");
    shows("UPDATE t SET version = $1, count = $2 WHERE id = $3 AND (version = $4) [2, 0, 1, 1]",
          "U t set version,count conditional");
    shows("UPDATE t SET a = greatest(a - 1, 0) FROM u WHERE t.id = u.id", "U t R u set a relative");
    shows("INSERT INTO s.order_item (product_id, quantity) VALUES (1, 2) RETURNING id", "I order_item");
    shows("insert into r (q) select 1 from source where (select sum(q) from r) < 5",
          "I r R source R r aggregates");
    shows("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET n = t.n + 1 WHERE t.n < 5",
          "I t set n relative conditional");
    shows("DELETE FROM seat USING hold WHERE seat.id = hold.id", "D seat R hold");
    shows(
        "WITH x AS (UPDATE product SET count = count - 1 WHERE count >= 1 RETURNING id) INSERT INTO sale SELECT id FROM x",
        "U product I sale R x set count relative conditional");
    shows("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1", "U t set n");
}

static void test_transactions_and_what_is_not_known(void **state)
{
    shows("COMMIT", " commit");
    shows("end work", " commit");
    shows("/* app */ ROLLBACK", " rollback");
    shows("ROLLBACK TO SAVEPOINT s", "");
    shows("COMMIT (of the statement before)", " commit");
    shows("UPDATE t SET a = 1; COMMIT", "U t set a several commit");
    shows("(continues the statement before)", " unknown");
    shows("SELECT a FROM t -- FOR UPDATE", "R t");
    shows("SELECT a -- FROM x\n\tFROM t", "R t");
    shows("SELECT 'open", " unknown");
}

static void test_the_same_words(void **state)
{
    assert_true(sql_same_words("SELECT a FROM t WHERE id = 1", "select  a from t where id = 'x' [1]"));
    assert_true(sql_same_words("SELECT 1 /* A */", "/* B */ SELECT 20"));
    assert_false(sql_same_words("SELECT a FROM t", "SELECT a FROM t FOR UPDATE"));
    assert_false(sql_same_words("SELECT a FROM t", "SELECT b FROM t"));
    assert_false(sql_same_words("SELECT a FROM t", "SELECT a FROM t WHERE a = 1"));
}

/* Names that differ in each run. */
static void test_the_same_words_but_for_counters(void **state)
{
    static const char *const SAME[][2] = {
        {"SAVEPOINT __asyncpg_savepoint_9__", "SAVEPOINT __asyncpg_savepoint_a__"},
        {"SAVEPOINT __asyncpg_savepoint_9f__;", "SAVEPOINT __asyncpg_savepoint_101__;"},
        {"SAVEPOINT sp_ff2da46681d744408dd2ec6a93c3d8a2", "SAVEPOINT sp_94b24cf944af49e381c8c7d63d6047d2"},
        {"SAVEPOINT \"953a3afa-a7b7-4f87-92f7-c6c77297a778\"",
         "SAVEPOINT \"63fb6efb-58d7-4981-8d95-b85c3049e9f4\""},
        {"CREATE TEMP TABLE t54b0f289 AS SELECT 1", "CREATE TEMP TABLE tab9c1162 AS SELECT 1"},
        {"DECLARE c1 CURSOR FOR SELECT 1", "DECLARE c12 CURSOR FOR SELECT 2"},
        {"SELECT 1 /* traceparent='00-98acac-01' */", "SELECT 1 /* traceparent='00-1acdc1-01' id bbbb */"},
    };
    static const char *const DIFFERENT[][2] = {
        {"SELECT a FROM orders", "SELECT a FROM items"},
        {"SELECT a FROM shop_orders", "SELECT a FROM shop_items"},
        {"SAVEPOINT a_1", "RELEASE a_1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        assert_true(sql_same_words(SAME[i][0], SAME[i][1]));
        assert_int_equal(sql_shape(1, SAME[i][0]), sql_shape(1, SAME[i][1]));
    }
    for (size_t i = 0; i < sizeof DIFFERENT / sizeof *DIFFERENT; i++) {
        assert_false(sql_same_words(DIFFERENT[i][0], DIFFERENT[i][1]));
        assert_int_not_equal(sql_shape(1, DIFFERENT[i][0]), sql_shape(1, DIFFERENT[i][1]));
    }
}

static void test_who_reads_what_an_update_sets(void **state)
{
    const struct statement_shape shape = statement_shape("UPDATE product SET count = 0 WHERE id = 1", 300);
    assert_true(shape_is_read_by(&shape, "SELECT id, count FROM product"));
    assert_true(shape_is_read_by(&shape, "SELECT p.* FROM product p"));
    assert_true(shape_is_read_by(&shape, "SELECT sum(x) FROM product"));
    assert_false(shape_is_read_by(&shape, "SELECT name FROM product WHERE id = 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_and_locks),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_transactions_and_what_is_not_known),
        cmocka_unit_test(test_the_same_words),
        cmocka_unit_test(test_the_same_words_but_for_counters),
        cmocka_unit_test(test_who_reads_what_an_update_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
