/* The sentence about a counterexample of a user's service, and the notation of its schedules. */
#include "tests/unit/unit.h"

#include "loadtest/own/cause/cause.h"
#include "loadtest/own/schedules/schedule_text.h"

#include <stdio.h>
#include <string.h>

static struct run_record record;

/* The next statement of ACTOR, with its answer. */
static void sent(char actor, const char *text, const char *answer)
{
    struct run_step *step = &record.steps[record.count++];
    *step = (struct run_step){.actor = (unsigned)(actor - 'A')};
    snprintf(step->text, sizeof step->text, "%s", text);
    snprintf(step->answer, sizeof step->answer, "%s", answer);
}

static void add(char actor, const char *text)
{
    sent(actor, text, "");
}

/* And it waited for the other request. */
static void waited(char actor, const char *text, const char *answer)
{
    sent(actor, text, answer);
    record.steps[record.count - 1].blockers = actor == 'A' ? 2 : 1;
}

static void refuse(char actor)
{
    record.answers[actor - 'A'] = (struct shop_answer){.status = 409, .meaning = SHOP_REFUSED};
}

static void begin(void)
{
    record.count = 0;
    for (size_t i = 0; i < ACTORS_MAX; i++)
        record.answers[i] = (struct shop_answer){.status = 201, .meaning = SHOP_SOLD};
}

static void expect_of(enum verdict verdict, const char *part)
{
    char text[CAUSE_TEXT];
    cause_of(&record, verdict, text);
    begin();
    if (!strstr(text, part))
        fail_msg("'%s' does not say '%s'", text, part);
}

static void expect(const char *part)
{
    expect_of(VERDICT_OVERSOLD, part);
}

static int begin_test(void **state)
{
    (void)state;
    begin();
    return 0;
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

/* ---- mistakes of one request ---------------------------------------------------------------------------------------- */

static const char READ[] = "SELECT count FROM product WHERE id = 1",
                  LOCK[] = "SELECT count FROM product WHERE id = 1 FOR UPDATE",
                  TAKE[] = "UPDATE product SET count = count - 1 WHERE id = 1 AND count >= 1",
                  SELL[] = "INSERT INTO sale (product) VALUES (1)";

static void add_both(const char *text)
{
    sent('A', text, "INSERT 0 1");
    sent('B', text, "INSERT 0 1");
}

static void check_then_take(const char *text, const char *answer)
{
    sent('A', READ, "1");
    sent('B', READ, "1");
    add_both(SELL);
    sent('B', text, "UPDATE 1");
    sent('B', "COMMIT", "COMMIT");
    sent('A', text, answer);
    sent('A', "COMMIT", "COMMIT");
}

static void test_update_0_is_ignored(void **state)
{
    (void)state;
    check_then_take(TAKE, "UPDATE 0");
    expect(
        "Statement 7 of A changed no row of product (UPDATE 0), and A ignored that: it committed what statement 3 wrote.");
    check_then_take(TAKE, "UPDATE 0");
    record.steps[7].text[0] = '\0';
    sent('A', TAKE, "UPDATE 1"); /* it tried again */
    expect(
        "A read product (statement 1) before B changed it (5), and then wrote (9). Read with SELECT … FOR UPDATE.");
    check_then_take(TAKE, "UPDATE 0");
    snprintf(record.steps[7].text, MESSAGE_TEXT, "ROLLBACK");
    expect("not recognize the cause");
}

/* The condition is there already, or FOR UPDATE is not allowed. */
static void test_advice_that_the_service_has_followed(void **state)
{
    char text[CAUSE_TEXT];
    (void)state;
    check_then_take(TAKE, "UPDATE 1");
    cause_of(&record, VERDICT_OVERSOLD, text);
    assert_null(strstr(text, "UPDATE itself"));
    begin();
    check_then_take("UPDATE product SET count = count - 1 WHERE id = 1", "UPDATE 1");
    expect(
        "then changed it without a condition (7). Read with SELECT … FOR UPDATE, or check the stock in the UPDATE itself.");
    sent('A', "SELECT sum(count) FROM product", "1");
    sent('B', "UPDATE product SET count = count - 1", "UPDATE 1");
    sent('A', "UPDATE product SET count = count - 1", "UPDATE 1");
    expect("Before the read, lock a row that all these requests share");
}

static void test_a_refused_request_leaves_what_it_wrote(void **state)
{
    (void)state;
    for (int takes_back = 0; takes_back < 2; takes_back++) {
        sent('A', SELL, "INSERT 0 1");
        sent('A', LOCK, "1");
        sent('B', SELL, "INSERT 0 1");
        sent('B', LOCK, "0");
        if (takes_back)
            sent('B', "DELETE FROM sale WHERE id = 2", "DELETE 1");
        refuse('B');
        expect(
            takes_back
                ? "needs no concurrency. The command did not recognize"
                : "B was refused (409), but what its statement 3 wrote to sale was committed (3) and stays.");
    }
}

static void test_two_lines_of_one_product(void **state)
{
    static const char LINE[] = "INSERT INTO line (product, quantity) VALUES (1, 1)",
                      OTHER[] = "INSERT INTO line (product, quantity) VALUES (2, 1)";
    (void)state;
    for (int i = 0; i < 3; i++) {
        sent('A', LOCK, "3");
        add('A', LINE);
        sent('B', LOCK, "1");
        sent('B', LINE, "INSERT 0 1");
        if (i == 2) /* looks at its first line as well */
            sent('B', "SELECT sum(quantity) FROM line", "2");
        sent('B', i == 1 ? OTHER : LINE, "INSERT 0 1");
        expect(
            i == 0
                ? "wrote two lines to line (4, 5) that take from the same product. A check of each line alone"
            : i == 1 ? "wrote two lines to line (4, 5). A check of each line alone"
                     : "did not recognize the cause");
    }
}

/* ---- locks that do not protect ---------------------------------------------------------------------------------------- */

static void test_a_locking_read_that_finds_no_row(void **state)
{
    static const char FREE[] = "SELECT id FROM booking WHERE room = 1 FOR UPDATE",
                      BOOK[] = "INSERT INTO booking (room) VALUES (1)";
    (void)state;
    sent('A', FREE, "SELECT 0");
    sent('B', FREE, "SELECT 0");
    add_both(BOOK);
    sent('B', "COMMIT", "COMMIT");
    sent('A', "COMMIT", "COMMIT");
    expect(
        "The locking read of A (statement 1) found no row, so it locked nothing, and the row that B inserted into booking (4) was not "
        "committed before it (5).");
}

static void test_a_subquery_that_is_older_than_the_lock(void **state)
{
    static const char LEFT[] =
        "SELECT p.count - (SELECT sum(n) FROM hold) FROM product p WHERE id = 1 FOR UPDATE OF p",
                      HOLD[] = "INSERT INTO hold (n) VALUES (1)";
    (void)state;
    sent('A', LEFT, "1");
    sent('A', HOLD, "INSERT 0 1");
    waited('B', LEFT, "1");
    sent('A', "COMMIT", "COMMIT");
    sent('B', HOLD, "INSERT 0 1");
    sent('B', "COMMIT", "COMMIT");
    expect(
        "Statement 3 of B waited for its lock on product, but what it reads of hold is from before it waited: without the change of A (2), "
        "which was committed (4).");
}

static void test_a_read_in_the_snapshot_from_before_the_lock(void **state)
{
    static const char SUM[] = "SELECT sum(n) FROM hold", HOLD[] = "INSERT INTO hold (n) VALUES (1)";
    (void)state;
    for (int i = 0; i < 2; i++) {
        sent('A', LOCK, "1");
        sent('A', SUM, "0");
        sent('A', HOLD, "INSERT 0 1");
        waited('B', LOCK, "1");
        sent('A', "COMMIT", "COMMIT");
        sent('B', SUM, i ? "1" : "0");
        sent('B', HOLD, "INSERT 0 1");
        sent('B', "COMMIT", "COMMIT");
        expect(
            i ? "These are the first two that differ: A sent 'SELECT sum(n) FROM hold' (statement 2) and got '0'. B sent"
              : "B read hold (statement 6) after the COMMIT of A (5), and got the same as A before its change (2).");
    }
}

static void test_the_value_of_a_read_before_the_lock(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sent('A', READ, "1");
        if (i) /* the lock came before the change */
            sent('A', LOCK, "1");
        sent('B', "UPDATE product SET count = 0 WHERE id = 1", "UPDATE 1");
        sent('B', "COMMIT", "COMMIT");
        if (!i)
            sent('A', LOCK, "0");
        sent('A', "UPDATE product SET count = 0 WHERE id = 1", "UPDATE 1");
        sent('A', "COMMIT", "COMMIT");
        expect(
            i ? "did not recognize the cause"
              : "A read product (statement 1), B changed it (2), and the locking read of A (4) returned the new values. A wrote (5)");
    }
}

/* FOR UPDATE outside a transaction, or a COMMIT between the lock and the write. */
static void test_a_lock_that_ends_before_the_write(void **state)
{
    static const char READ_LOCKED[] = "SELECT count FROM product WHERE id = 1 FOR UPDATE",
                      TAKE_ONE[] = "UPDATE product SET count = count - 1 WHERE id = 1";
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        sent('A', READ_LOCKED, "1");
        if (separate)
            sent('A', "COMMIT", "COMMIT");
        record.steps[record.count - 1].has_stock = true;
        sent('B', READ_LOCKED, "1");
        sent('B', TAKE_ONE, "UPDATE 1");
        sent('B', "COMMIT", "COMMIT");
        sent('A', TAKE_ONE, "UPDATE 1");
        sent('A', "COMMIT", "COMMIT");
        expect(
            separate
                ? "Statement 1 of A locked rows of product and its transaction ended (2). Then B changed the table (4), "
                  "and A wrote to it by what it had read before (6). Put the locking read"
                : "Statement 1 of A locked rows of product outside a transaction, so the lock ended with it. Then B "
                  "changed the table (3)");
    }
    sent('A', READ_LOCKED, "1"); /* it reads again, with a lock */
    sent('A', "COMMIT", "COMMIT");
    sent('B', TAKE_ONE, "UPDATE 1");
    sent('B', "COMMIT", "COMMIT");
    sent('A', READ_LOCKED, "1");
    sent('A', TAKE_ONE, "UPDATE 1");
    sent('A', "COMMIT", "COMMIT");
    expect("The command did not recognize the cause");
}

static void test_one_seat_is_sold_twice(void **state)
{
    static const char FREE[] = "SELECT id FROM seat WHERE NOT taken ORDER BY id LIMIT 1",
                      TAKE_SEAT[] = "UPDATE seat SET taken = true WHERE id = 1";
    (void)state;
    sent('A', FREE, "1");
    sent('B', FREE, "1");
    sent('B', TAKE_SEAT, "UPDATE 1");
    sent('B', "COMMIT", "COMMIT");
    sent('A', TAKE_SEAT, "UPDATE 1");
    sent('A', "COMMIT", "COMMIT");
    expect_of(VERDICT_ANSWERS_LOST, "A read seat (statement 1) before B changed it (3)");
}

static void test_skip_locked(void **state)
{
    (void)state;
    sent('A', LOCK, "1");
    sent('B', "SELECT count FROM product WHERE id = 1 FOR UPDATE SKIP LOCKED", "SELECT 0");
    sent('B', SELL, "INSERT 0 1");
    sent('A', SELL, "INSERT 0 1");
    sent('B', "COMMIT", "COMMIT");
    sent('A', "COMMIT", "COMMIT");
    expect(
        "Statement 2 of B skips locked rows (SKIP LOCKED): it found none in product, because A had locked what there was (1).");
}

static void test_a_cause_outside_the_statements(void **state)
{
    (void)state;
    add_both(SELL);
    sent('A', "COMMIT", "COMMIT");
    sent('B', "COMMIT", "COMMIT");
    expect("such as its memory, a cache or another server");
    sent('A', "SELECT name FROM product", "x"); /* other columns than B changes */
    sent('B', TAKE, "UPDATE 1");
    sent('A', SELL, "INSERT 0 1");
    expect(
        "These are the first two that differ: A sent 'SELECT name FROM product' (statement 1) and got 'x'. B sent");
}

/* A statement that was cut off may end with FOR UPDATE. */
static void test_a_statement_that_was_cut_off(void **state)
{
    (void)state;
    sent('A', READ, "1");
    memset(record.steps[0].text + strlen(READ), 'x', MESSAGE_TEXT - 1 - strlen(READ));
    record.steps[0].text[MESSAGE_TEXT - 1] = '\0';
    sent('B', TAKE, "UPDATE 1");
    sent('A', SELL, "INSERT 0 1");
    expect("did not recognize the cause");
}

/* ---- other verdicts --------------------------------------------------------------------------------------------------- */

static void test_answers(void **state)
{
    (void)state;
    sent('A', SELL, "INSERT 0 1");
    sent('A', "ROLLBACK", "ROLLBACK");
    expect_of(VERDICT_ANSWERS_LOST, "A was answered 201, but its statement 1 was rolled back.");
    sent('A', TAKE, "UPDATE 0");
    expect_of(VERDICT_ANSWERS_LOST,
              "A was answered 201, but its statement 1 changed no row. Check how many rows it changed");
    sent('A', SELL, "INSERT 0 1");
    expect_of(VERDICT_ANSWERS_LOST, "The statements do not show why.");
    sent('B', "SELECT count FROM product FOR UPDATE NOWAIT", "error: could not obtain lock");
    refuse('B');
    expect_of(
        VERDICT_TURNED_AWAY,
        "B was refused (409) although units were left at the end. The answer to its statement 1 was 'error: could");
    sent('B', READ, "0");
    refuse('B');
    expect_of(VERDICT_TURNED_AWAY, "Its statements do not show why.");
}

static void test_who_waits_for_whom(void **state)
{
    (void)state;
    waited('A', LOCK, "");
    record.steps[0].after = REQUEST_BLOCKED;
    sent('B', "", "");
    record.steps[1].after = REQUEST_BLOCKED;
    expect_of(VERDICT_STUCK, "No request could continue, A waits for B (1). Take locks");
    waited('A', LOCK, "");
    record.steps[0].after = REQUEST_BLOCKED;
    sent('B', "", "");
    record.steps[1].after = REQUEST_INSIDE;
    expect_of(
        VERDICT_STUCK,
        "No request could continue, A waits for B (1), B waits in the program after (2). Another request has what it");
}

static void test_what_a_request_leaves(void **state)
{
    static const char READS[] = "SELECT count FROM product";
    (void)state;
    snprintf(record.left, sizeof record.left, "%s", READS);
    record.left_by = 1;
    expect_of(
        VERDICT_STUCK,
        "B has its answer, but its connection keeps an advisory lock, for which the next requests wait. The last "
        "statement there was 'SELECT count FROM product'. Release the lock on every path, before the answer.");
    record.left_transaction = true;
    record.left_by = ACTORS_MAX;
    expect_of(VERDICT_STUCK,
              "A request has its answer, but its connection keeps an open transaction and its locks,");
    record.left_transaction = false;
    record.left[0] = '\0';
}

/* ---- the notation --------------------------------------------------------------------------------------------------- */

static void test_polls(void **state)
{
    static const char TRY[] = "INSERT INTO lock VALUES (1)";
    (void)state;
    for (int sold = 0; sold < 2; sold++) {
        add('A', TRY);
        add('B', TRY);
        sent('B', TRY, "3 statements without success; then it gives up");
        record.steps[2].kind = TRANSITION_TIMEOUT;
        if (!sold)
            refuse('B');
        expect_of(
            sold ? VERDICT_OVERSOLD : VERDICT_TURNED_AWAY,
            sold ? "B gave up waiting for a lock that another request had (3), and sold without it."
                 : "B gave up waiting for a lock that another request had (3), and was refused as sold out");
    }
    snprintf(record.polled, sizeof record.polled, "%s", TRY);
    add('B', TRY);
    expect_of(VERDICT_STUCK,
              "No request could continue: one repeats 'INSERT INTO lock VALUES (1)' without success");
    waited('A', "UPDATE x SET y = 1", "");
    record.steps[0].after = REQUEST_BLOCKED;
    expect_of(VERDICT_STUCK, "No request could continue, A waits for B (1). Take locks");
    record.polled[0] = '\0';
}

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
        cmocka_unit_test_setup(test_a_lost_update, begin_test),
        cmocka_unit_test_setup(test_a_sale_that_follows_from_an_old_count, begin_test),
        cmocka_unit_test_setup(test_a_read_before_the_commit_of_an_earlier_change, begin_test),
        cmocka_unit_test_setup(test_a_request_that_writes_before_it_reads, begin_test),
        cmocka_unit_test_setup(test_a_statement_that_commits_alone, begin_test),
        cmocka_unit_test_setup(test_a_change_that_is_rolled_back, begin_test),
        cmocka_unit_test_setup(test_faults, begin_test),
        cmocka_unit_test_setup(test_what_the_statements_do_not_show, begin_test),
        cmocka_unit_test_setup(test_no_concurrency_is_needed, begin_test),
        cmocka_unit_test_setup(test_inside_a_statement, begin_test),
        cmocka_unit_test_setup(test_update_0_is_ignored, begin_test),
        cmocka_unit_test_setup(test_advice_that_the_service_has_followed, begin_test),
        cmocka_unit_test_setup(test_a_refused_request_leaves_what_it_wrote, begin_test),
        cmocka_unit_test_setup(test_two_lines_of_one_product, begin_test),
        cmocka_unit_test_setup(test_a_locking_read_that_finds_no_row, begin_test),
        cmocka_unit_test_setup(test_a_subquery_that_is_older_than_the_lock, begin_test),
        cmocka_unit_test_setup(test_a_read_in_the_snapshot_from_before_the_lock, begin_test),
        cmocka_unit_test_setup(test_the_value_of_a_read_before_the_lock, begin_test),
        cmocka_unit_test_setup(test_skip_locked, begin_test),
        cmocka_unit_test_setup(test_a_lock_that_ends_before_the_write, begin_test),
        cmocka_unit_test_setup(test_one_seat_is_sold_twice, begin_test),
        cmocka_unit_test_setup(test_a_cause_outside_the_statements, begin_test),
        cmocka_unit_test_setup(test_a_statement_that_was_cut_off, begin_test),
        cmocka_unit_test_setup(test_answers, begin_test),
        cmocka_unit_test_setup(test_who_waits_for_whom, begin_test),
        cmocka_unit_test_setup(test_what_a_request_leaves, begin_test),
        cmocka_unit_test_setup(test_polls, begin_test),
        cmocka_unit_test_setup(test_a_schedule_is_written_and_read, begin_test),
        cmocka_unit_test_setup(test_what_is_no_schedule, begin_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
