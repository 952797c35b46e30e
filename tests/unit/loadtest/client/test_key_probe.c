/* Which answers to a repeated Idempotency-Key are wrong. */
#include "tests/unit/unit.h"

#include "loadtest/client/key_probe.h"

#include <stdio.h>

/* In the place of a service: answers in sequence, to the first order, to its repetition, for another product, after the reset. */
static struct keyed_order answers[4];
static int next, resets;

bool service_client_reset(struct service_client *client, int64_t product, int64_t stock, const char *kind)
{
    resets++;
    return true;
}

bool service_client_order_again(struct service_client *client, const char *strategy, int64_t product,
                                int64_t quantity, const char *key, struct keyed_order *ret_order)
{
    assert_int_equal(product, next == 2 ? 8 : 7);
    assert_string_equal(key, "k");
    *ret_order = answers[next++];
    return true;
}

#define MADE(number)                                                                                         \
    {                                                                                                        \
        .status = 201, .id = (number)                                                                        \
    }
#define MISMATCH                                                                                             \
    {                                                                                                        \
        .status = 422, .mismatch = true                                                                      \
    }

static void each_answer_is_judged(void **state)
{
    static const struct {
        const char *what;
        struct keyed_order answers[4];
        const char *finding; /* part of it */
    } CASES[] = {
        {"all is well", {MADE(1), MADE(1), MISMATCH, MADE(2)}, ""},
        {"the first order is refused", {{.status = 409}}, ""},
        {"made twice", {MADE(1), MADE(2), MISMATCH, MADE(3)}, "did not get the first order"},
        {"the repetition is refused",
         {MADE(1), {.status = 409}, MISMATCH, MADE(3)},
         "did not get the first order"},
        {"replayed for another product", {MADE(1), MADE(1), MADE(1), MADE(2)}, "of another product"},
        {"sold for another product", {MADE(1), MADE(1), MADE(2), MADE(3)}, "of another product"},
        {"another refusal", {MADE(1), MADE(1), {.status = 409}, MADE(3)}, "of another product"},
        {"replayed after the reset", {MADE(1), MADE(1), MISMATCH, MADE(1)}, "that a reset deleted"},
        {"refused after the reset", {MADE(1), MADE(1), MISMATCH, {.status = 409}}, "that a reset deleted"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        char finding[KEY_FINDING];
        memcpy(answers, CASES[i].answers, sizeof answers);
        next = resets = 0;
        assert_true(key_probe(NULL, &(struct key_probe){.product = 7, .other = 8, .key = "k"}, finding));
        if (!strstr(finding, CASES[i].finding) || (!*CASES[i].finding && *finding))
            fail_msg("%s: '%s'", CASES[i].what, finding);
        assert_int_equal(resets, next > 1 ? 3 : 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
