/* Comparing the statements of a replay with those of the saved schedule. */
#include "tests/unit/unit.h"

#include "loadtest/own/schedules/changed_statement.h"

#include <stdio.h>
#include <string.h>

static struct run_record record;
static json_t *saved;

static void sent_before(const char *actor, const char *text)
{
    assert_int_equal(json_array_append_new(saved, json_pack("{s:s, s:s}", "actor", actor, "text", text)), 0);
}

static void sends(char actor, const char *text)
{
    struct run_step *step = &record.steps[record.count++];
    step->actor = (unsigned)(actor - 'A');
    snprintf(step->text, sizeof step->text, "%s", text);
}

/* PART NULL: no statement is different. */
static void expect(const char *part)
{
    char text[CHANGED_TEXT];
    changed_statement(saved, &record, text);
    if (part ? !strstr(text, part) : *text != '\0')
        fail_msg("'%s' instead of '%s'", text, part ? part : "");
    record = (struct run_record){0};
    assert_int_equal(json_array_clear(saved), 0);
}

static void save_a_lost_update(void)
{
    sent_before("A", "SELECT count FROM product WHERE id = 1");
    sent_before("B", "SELECT count FROM product WHERE id = 1");
    sent_before("B", "UPDATE product SET count = 0, note = 'B'");
    sent_before("B", "COMMIT");
    sent_before("A", "UPDATE product SET count = 0, note = 'A'");
}

static void test_one_more_statement(void **state)
{
    (void)state;
    save_a_lost_update();
    sends('A', "SELECT count FROM product WHERE id = 1");
    sends('B', "SELECT 1 FROM order_item LIMIT 1");
    sends('B', "SELECT count FROM product WHERE id = 1");
    expect(
        "Request B now sends 'SELECT 1 FROM order_item LIMIT 1' as statement 1, where it sent 'SELECT count FROM product WHERE id "
        "= 1' when");
}

static void test_a_later_statement(void **state)
{
    (void)state;
    save_a_lost_update();
    sends('A', "SELECT count FROM product WHERE id = 1");
    sends('B', "SELECT count FROM product WHERE id = 1");
    sends('A', "COMMIT");
    sends('A', "UPDATE product SET count = 0");
    expect("Request A now sends 'COMMIT' as statement 2");
}

static void test_what_may_differ(void **state)
{
    (void)state;
    save_a_lost_update();
    sent_before("B", "SELECT $1::int [7]");
    sends('B', "SELECT count FROM product WHERE id = 22");
    sends('A', "SELECT count FROM product WHERE id = 22");
    sends('B', "UPDATE product SET count = 17, note = 'another'");
    sends('B', "COMMIT");
    sends('B', "SELECT $1::int [8, x]");
    sends('B', "SELECT 'one more at the end'");
    expect(NULL);
}

static void test_a_refused_request_ends_earlier(void **state)
{
    static const char *const ENDS[] = {"COMMIT", "rollback"};
    (void)state;
    for (size_t i = 0; i < COUNT(ENDS); i++) {
        save_a_lost_update();
        sends('B', "SELECT count FROM product WHERE id = 1");
        sends('B', ENDS[i]);
        sends('B', "DEL lock");
        record.steps[2].server = RUNS_REDIS;
        expect(NULL);
    }
}

static void test_commands_to_redis(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        sent_before("A", "SET lock:1 a0b1 NX PX 10000");
        sends('A', i == 0 ? "SET lock:1 ffee NX PX 10000" : "SETNX lock:1 a0b1");
        record.steps[0].server = RUNS_REDIS;
        expect(i == 0 ? NULL : "Request A now sends 'SETNX lock:1 a0b1' as statement 1");
    }
}

static void test_faults_have_no_number(void **state)
{
    (void)state;
    sent_before("A", "(fault: the key expires) lock:1");
    sent_before("A", "SELECT 1");
    sends('A', "(fault: the key expires) lock:1 lock:2");
    record.steps[0].kind = TRANSITION_EXPIRE;
    sends('A', "SELECT 2");
    expect(NULL);
}

/* The gate keeps the beginning of a long statement: a longer literal moves where it ends. */
static void test_a_text_that_was_cut_off(void **state)
{
    char one[MESSAGE_TEXT], other[MESSAGE_TEXT];
    (void)state;
    memset(one, 'x', sizeof one - 1);
    memcpy(one, "SELECT '1234567', ", 18);
    one[sizeof one - 1] = '\0';
    memset(other, 'x', sizeof other - 1);
    memcpy(other, "SELECT '1', ", 12);
    other[sizeof other - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        sent_before("A", i == 0 ? one : other);
        sends('A', i == 0 ? other : one);
        expect(NULL);
    }
}

static int make_saved(void **state)
{
    (void)state;
    saved = json_array();
    return saved ? 0 : -1;
}

static int free_saved(void **state)
{
    (void)state;
    json_decref(saved);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_more_statement),      cmocka_unit_test(test_a_later_statement),
        cmocka_unit_test(test_what_may_differ),         cmocka_unit_test(test_a_refused_request_ends_earlier),
        cmocka_unit_test(test_commands_to_redis),       cmocka_unit_test(test_faults_have_no_number),
        cmocka_unit_test(test_a_text_that_was_cut_off),
    };
    return cmocka_run_group_tests(tests, make_saved, free_saved);
}
