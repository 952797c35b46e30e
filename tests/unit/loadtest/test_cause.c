/* The sentence about a counterexample of a user's service, and the notation of its schedules. */
#include "loadtest/own/schedules/cause.h"
#include "loadtest/own/schedules/schedule_text.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static struct run_record record;

static void add(char actor, const char *text)
{
    struct run_step *step = &record.steps[record.count++];
    step->actor = (unsigned)(actor - 'A');
    snprintf(step->text, sizeof step->text, "%s", text);
}

static void expect(const char *part)
{
    char text[CAUSE_TEXT];
    cause_of(&record, VERDICT_OVERSOLD, text);
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
    record = (struct run_record){0};
}

static void test_a_lost_update(void **state)
{
    (void)state;
    add('A', "SELECT count FROM shop.\"product\" WHERE id = 1");
    add('B', "SELECT count FROM product WHERE id = 1");
    add('B', "UPDATE ONLY product SET count = 0 WHERE note = 'insert into x'");
    add('B', "COMMIT");
    add('A', "INSERT INTO order_item (product_id) VALUES (1)");
    add('A', "UPDATE product SET count = 0");
    expect(
        "A read product (statement 1) before B changed it (3), and then wrote a value that it computed from the old one (6).");
}

static void test_a_sale_that_follows_from_an_old_count(void **state)
{
    (void)state;
    add('B', "select count(*) from seat");
    add('A', "delete from seat where id = 1");
    add('B', "with x as (insert into ticket values (1) returning id) select id from x");
    expect("B read seat (statement 1) before A changed it (2), and then sold because of the old value (3).");
}

static void test_faults(void **state)
{
    static const struct {
        enum transition_kind kind;
        const char *part;
    } FAULTS[] = {{TRANSITION_EXPIRE, "The key that B held in Redis expired (2) before B had finished"},
                  {TRANSITION_CRASH, "B crashed (2) after it had done only a part of the order."},
                  {TRANSITION_CUT, "The order of B was committed (2), but the connection was lost"}};
    (void)state;
    for (size_t i = 0; i < COUNT(FAULTS); i++) {
        add('A', "SELECT count FROM product");
        add('B', "");
        record.steps[1].kind = FAULTS[i].kind;
        add('A', "COMMIT");
        expect(FAULTS[i].part);
    }
}

static void test_a_read_before_the_commit_of_an_earlier_change(void **state)
{
    (void)state;
    add('A', "SELECT count FROM product WHERE id = 1");
    add('A', "UPDATE product SET count = 0 WHERE id = 1");
    add('B', "SELECT count FROM product WHERE id = 1");
    add('A', "ROLLBACK TO SAVEPOINT tried");
    add('A', "COMMIT");
    add('B', "UPDATE product SET count = 0 WHERE id = 1");
    add('B', "COMMIT");
    expect(
        "B read product (statement 3) before the change of A (2) was committed (5), and then wrote a value that it computed from "
        "the old one (6). Read with SELECT … FOR UPDATE");
}

static void test_a_request_that_writes_before_it_reads(void **state)
{
    (void)state;
    add('A', "INSERT INTO order_item VALUES (1)");
    add('B', "INSERT INTO order_item VALUES (1)");
    add('B', "SELECT sum(quantity) FROM order_item");
    add('A', "SELECT sum(quantity) FROM order_item");
    add('A', "END");
    add('B', "commit");
    expect(
        "B read order_item (statement 3) before the change of A (1) was committed (5), and committed its own change (2) "
        "without seeing the change of A. Before the read, lock a row");
}

/* A statement outside a transaction has no COMMIT: the stock that was read after it shows that its transaction has ended. */
static void test_a_statement_that_commits_alone(void **state)
{
    (void)state;
    add('A', "UPDATE product SET count = 0");
    record.steps[0].has_stock = true;
    add('B', "SELECT count FROM product");
    add('B', "UPDATE product SET count = 0");
    add('A', "COMMIT");
    expect("The command did not recognize the cause");
}

static void test_a_change_that_is_rolled_back(void **state)
{
    static const char *const ENDS[] = {"ROLLBACK", "abort work", "COMMIT"};
    (void)state;
    for (size_t i = 0; i < COUNT(ENDS); i++) {
        add('A', "UPDATE product SET count = 0");
        add('B', "SELECT count FROM product");
        add('A', ENDS[i]);
        snprintf(record.steps[2].answer, sizeof record.steps[2].answer, "ROLLBACK");
        add('B', "UPDATE product SET count = 0");
        expect("The command did not recognize the cause");
    }
}

static void test_what_the_statements_do_not_show(void **state)
{
    (void)state;
    add('A', "SELECT count FROM product WHERE id = 1 FOR NO KEY UPDATE");
    add('B', "UPDATE product SET count = 0");
    add('A', "UPDATE product SET count = 0");
    expect("The command did not recognize the cause");
    add('A', "SELECT 'FROM product'");
    add('B', "UPDATE product SET count = 0");
    add('A', "UPDATE product SET count = 0");
    expect("The command did not recognize the cause");
    add('A', "SELECT 'not ended");
    add('B', "");
    add('A', "");
    expect("The command did not recognize the cause");
}

static void test_no_concurrency_is_needed(void **state)
{
    (void)state;
    add('A', "SELECT count FROM product WHERE id = 1");
    add('A', "UPDATE product SET count = 0");
    add('B', "SELECT count FROM product WHERE id = 1");
    add('B', "UPDATE product SET count = 0");
    expect("even if the requests run one after the other");
}

static void test_inside_a_statement(void **state)
{
    (void)state;
    add('A', "SELECT claim()");
    add('B', "SELECT claim()");
    add('A', "COMMIT (of the statement before)");
    add('B', "COMMIT (of the statement before)");
    expect("B acted before A had committed (3) what its statement 1 did");
}

/* ---- the notation --------------------------------------------------------------------------------------------------- */

static void test_a_schedule_is_written_and_read(void **state)
{
    (void)state;
    const struct transition transitions[] = {{0, TRANSITION_STEP}, {1, TRANSITION_STEP},
                                             {1, TRANSITION_STEP}, {0, TRANSITION_CRASH},
                                             {0, TRANSITION_STEP}, {1, TRANSITION_STEP}};
    char words[SCHEDULE_TEXT], error[200];
    struct schedule schedule;
    assert_string_equal(schedule_write(transitions, 6, words), "A>1 B>2 A!crash A>end B>end");
    assert_true(schedule_read(words, 2, &schedule, error, sizeof error));
    assert_int_equal(schedule.count, 5);
    assert_int_equal(schedule.parts[1].upto, 2);
    assert_int_equal(schedule.parts[2].kind, TRANSITION_CRASH);
    assert_int_equal(schedule.parts[4].upto, SCHEDULE_END);
}

static void test_what_is_no_schedule(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"",     " ",      "C>1", "A",      "A>",  "A>0",     "A>x",
                                        "A>1x", "A>1000", "A!",  "A!fire", "a>1", "A>1,B>1", ">"};
    char error[200], longest[DEPTH_MAX * 4 + 8] = "";
    struct schedule schedule;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        if (schedule_read(WRONG[i], 2, &schedule, error, sizeof error))
            fail_msg("'%s' was read", WRONG[i]);
    for (size_t i = 0; i < DEPTH_MAX; i++)
        strcat(longest, "A>1 ");
    assert_true(schedule_read(longest, 2, &schedule, error, sizeof error));
    strcat(longest, "A>1");
    assert_false(schedule_read(longest, 2, &schedule, error, sizeof error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lost_update),
        cmocka_unit_test(test_a_sale_that_follows_from_an_old_count),
        cmocka_unit_test(test_a_read_before_the_commit_of_an_earlier_change),
        cmocka_unit_test(test_a_request_that_writes_before_it_reads),
        cmocka_unit_test(test_a_statement_that_commits_alone),
        cmocka_unit_test(test_a_change_that_is_rolled_back),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_what_the_statements_do_not_show),
        cmocka_unit_test(test_no_concurrency_is_needed),
        cmocka_unit_test(test_inside_a_statement),
        cmocka_unit_test(test_a_schedule_is_written_and_read),
        cmocka_unit_test(test_what_is_no_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
