/* What the answers of a service mean, by the rules of its description and without any. */
#include "tests/unit/unit.h"

#include "loadtest/own/answer_meaning.h"

#include <stdio.h>

static const struct shop_description PLAIN = {
    .answers = {[SHOP_REFUSED] = {.rule = {{.status = 409}}, .count = 1}}, .all_2xx_sold = true};

static enum shop_meaning meaning(const struct shop_description *description, long status, const char *body,
                                 const char *location)
{
    return shop_meaning_of(description,
                           &(struct shop_reply){.status = status, .body = body, .location = location});
}

static void test_without_rules(void **state)
{
    for (long status = 100; status < 600; status++) {
        enum shop_meaning expected = status >= 200 && status < 300 ? SHOP_SOLD
                                     : status == 409               ? SHOP_REFUSED
                                                                   : SHOP_UNCLEAR;
        assert_int_equal(meaning(&PLAIN, status, NULL, NULL), expected);
    }
}

static struct shop_description with(enum shop_meaning which, struct shop_rule rule)
{
    struct shop_description description = PLAIN;
    description.all_2xx_sold = which != SHOP_SOLD;
    description.answers[which] = (struct shop_rules){.rule = {rule}, .count = 1};
    return description;
}

static void test_statuses(void **state)
{
    const struct shop_description sold = with(SHOP_SOLD, (struct shop_rule){.status = 303}),
                                  accepted = with(SHOP_ACCEPTED, (struct shop_rule){.status = 202});
    assert_int_equal(meaning(&sold, 303, "", "http://a/b"), SHOP_SOLD);
    assert_int_equal(meaning(&sold, 201, "", NULL), SHOP_UNCLEAR);
    assert_int_equal(meaning(&sold, 409, "", NULL), SHOP_REFUSED);
    assert_int_equal(meaning(&accepted, 202, "", NULL), SHOP_ACCEPTED);
    assert_int_equal(meaning(&accepted, 201, "", NULL), SHOP_SOLD);
}

/* The path leads to these values, or it does not. */
static void test_pointers(void **state)
{
    static const struct {
        const char *pointer, *body;
        bool has;
    } CASES[] = {
        {"/a", "{\"a\": 1}", true},
        {"/a", "{\"a\": 0}", true},
        {"/a", "{\"a\": true}", true},
        {"/a", "{\"a\": false}", false},
        {"/a", "{\"a\": null}", false},
        {"/a", "{\"a\": \"\"}", false},
        {"/a", "{\"a\": []}", false},
        {"/a", "{\"a\": {}}", false},
        {"/a", "{\"a\": [null]}", true},
        {"/a/0", "{\"a\": [7]}", true},
        {"/a/1", "{\"a\": [7]}", false},
        {"/a/00", "{\"a\": [7]}", false},
        {"/a/-", "{\"a\": [7]}", false},
        {"/a/b", "{\"a\": 7}", false},
        {"/a/b/c", "{\"a\": {\"b\": {\"c\": \"x\"}}}", true},
        {"/", "{\"\": 1}", true},
        {"/x~1y/m~0n/~01", "{\"x/y\": {\"m~n\": {\"~1\": 1}}}", true},
        {"/b", "{\"a\": 1}", false},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct shop_description has = with(SHOP_SOLD,
                                                 (struct shop_rule){.status = 200, .has = CASES[i].pointer}),
                                      lacks = with(SHOP_SOLD, (struct shop_rule){.status = 200,
                                                                                 .lacks = CASES[i].pointer});
        if ((meaning(&has, 200, CASES[i].body, NULL) == SHOP_SOLD) != CASES[i].has ||
            (meaning(&lacks, 200, CASES[i].body, NULL) == SHOP_SOLD) == CASES[i].has)
            fail_msg("%s in %s", CASES[i].pointer, CASES[i].body);
    }
    /* What is not JSON neither has nor lacks anything. */
    const struct shop_description lacks = with(SHOP_SOLD,
                                               (struct shop_rule){.status = 200, .lacks = "/errors"});
    assert_int_equal(meaning(&lacks, 200, "<html>", NULL), SHOP_UNCLEAR);
    assert_int_equal(meaning(&lacks, 200, NULL, NULL), SHOP_UNCLEAR);
    assert_int_equal(meaning(&lacks, 201, "{}", NULL), SHOP_UNCLEAR);
}

static void test_redirects_and_texts(void **state)
{
    struct shop_description form = with(SHOP_SOLD, (struct shop_rule){.status = 303, .location = "/thanks"});
    form.answers[SHOP_REFUSED].rule[0] = (struct shop_rule){.status = 200, .text = "sold out"};
    assert_int_equal(meaning(&form, 303, "", "http://127.0.0.1:80/thanks?a=1"), SHOP_SOLD);
    assert_int_equal(meaning(&form, 303, "", "http://127.0.0.1:80/cart"), SHOP_UNCLEAR);
    assert_int_equal(meaning(&form, 303, "", NULL), SHOP_UNCLEAR);
    assert_int_equal(meaning(&form, 200, "<p>sold out</p>", NULL), SHOP_REFUSED);
    assert_int_equal(meaning(&form, 200, "<p>thanks</p>", NULL), SHOP_UNCLEAR);
}

/* A rule with a condition comes before one without, and all rules before "2xx means sold". */
static void test_which_rule_comes_first(void **state)
{
    struct shop_description both = with(SHOP_SOLD, (struct shop_rule){.status = 200, .has = "/id"});
    both.answers[SHOP_REFUSED].rule[0] = (struct shop_rule){.status = 200};
    assert_int_equal(meaning(&both, 200, "{\"id\": 1}", NULL), SHOP_SOLD);
    assert_int_equal(meaning(&both, 200, "{}", NULL), SHOP_REFUSED);
    const struct shop_description errors = with(SHOP_REFUSED,
                                                (struct shop_rule){.status = 200, .has = "/errors"});
    assert_int_equal(meaning(&errors, 200, "{\"errors\": [1]}", NULL), SHOP_REFUSED);
    assert_int_equal(meaning(&errors, 200, "{\"errors\": []}", NULL), SHOP_SOLD);
}

static void hints(const struct shop_description *description, struct shop_reply reply, const char *expected)
{
    char hint[SHOP_HINT];
    shop_hint_of(description, &reply, hint);
    assert_string_equal(hint, expected);
}

static void test_hints(void **state)
{
    hints(&PLAIN, (struct shop_reply){.status = 201, .body = "{\"id\": 1, \"errors\": []}"}, "");
    hints(&PLAIN, (struct shop_reply){.status = 202}, "202 to \"accepted\" in \"answers\", and \"settled\"");
    hints(&PLAIN, (struct shop_reply){.status = 200, .body = "{\"data\": {\"buy\": {\"errors\": [{}]}}}"},
          "{\"status\": 200, \"has\": \"/data/buy/errors\"} to \"refused\" in \"answers\"");
    hints(&PLAIN, (struct shop_reply){.status = 200, .body = "{\"success\": false}"},
          "{\"status\": 200, \"lacks\": \"/success\"} to \"refused\" in \"answers\"");
    hints(&PLAIN, (struct shop_reply){.status = 302, .location = "http://127.0.0.1:8080/thanks"},
          "{\"status\": 302, \"location\": \"/thanks\"} to \"sold\" or \"refused\" in \"answers\"");
    hints(&PLAIN, (struct shop_reply){.status = 409, .body = "{\"error\": \"sold out\"}"}, "");
    hints(&PLAIN, (struct shop_reply){.status = 500, .body = "{\"error\": \"x\"}"}, "");
    /* "%.40s" ends within the 'é', and JSON refuses a part of a character. */
    hints(&PLAIN,
          (struct shop_reply){.status = 200,
                              .body = "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaé\": {\"errors\": [1]}}"},
          "{\"status\": 200, \"has\": \"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/errors\"} to \"refused\" in "
          "\"answers\"");
    hints(&PLAIN, (struct shop_reply){.status = 302, .location = "/caf\xe9"},
          "{\"status\": 302, \"location\": \"/caf\"} to \"sold\" or \"refused\" in \"answers\"");
    /* The file says what it means. */
    const struct shop_description sold = with(SHOP_SOLD, (struct shop_rule){.status = 202});
    hints(&sold, (struct shop_reply){.status = 202}, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_rules),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_redirects_and_texts),
        cmocka_unit_test(test_which_rule_comes_first),
        cmocka_unit_test(test_hints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
