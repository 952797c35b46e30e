/* The row of `loadtest check`, from the statuses of the answers and from the stock before and after the run. */
#include "tests/unit/unit.h"

#include "loadtest/own/check_row.h"

#include <stdio.h>

enum { KINDS = 4 };

/* 10 units in stock; 409 is refused, and 202 is accepted where ACCEPTS says so. */
static const struct {
    const char *what;
    struct {
        long status; /* 0: no answer */
        int count;
    } answers[KINDS];
    bool accepts;
    int64_t sold, left;
    const char *verdict;
} RUNS[] = {
    {"200 is sold", {{200, 10}, {409, 30}}, false, 10, 0, "clean"},
    {"201 is sold", {{201, 10}, {409, 30}}, false, 10, 0, "clean"},
    {"202 is sold", {{202, 10}, {409, 30}}, false, 10, 0, "clean"},
    {"204 is sold", {{204, 10}, {409, 30}}, false, 10, 0, "clean"},
    {"an order that was answered 200 is not there", {{200, 10}}, false, 9, 1, "answers-lost"},
    {"an order that was answered 201 is not there", {{201, 10}}, false, 9, 1, "answers-lost"},
    {"an order that was answered 202 is not there", {{202, 10}}, false, 9, 1, "answers-lost"},
    {"an order that was answered 204 is not there", {{204, 10}}, false, 9, 1, "answers-lost"},
    {"all kinds of success count", {{200, 3}, {201, 3}, {202, 3}, {204, 1}}, false, 9, 1, "answers-lost"},
    {"an order that was refused is there", {{201, 9}, {409, 1}}, false, 10, 0, "answers-lost"},
    {"an error may have sold", {{201, 99}, {500, 1}}, false, 10, 0, "answers-lost"},
    {"one of a hundred fails", {{201, 9}, {409, 190}, {500, 1}}, false, 10, 0, "clean"},
    {"silence may have sold", {{201, 9}, {409, 190}, {0, 1}}, false, 10, 0, "clean"},
    {"too many fail", {{201, 10}, {409, 8}, {500, 2}}, false, 10, 0, "failing"},
    {"too many are silent", {{201, 10}, {409, 8}, {0, 2}}, false, 10, 0, "failing"},
    {"a redirect says nothing", {{201, 10}, {302, 2}}, false, 10, 0, "failing"},
    {"accepted", {{202, 40}}, true, 10, 0, "clean"},
    {"accepted, and units are left", {{202, 40}}, true, 9, 1, "turned-away"},
    {"refused, and units are left", {{201, 9}, {409, 1}}, false, 9, 1, "turned-away"},
    {"oversold", {{201, 11}, {409, 29}}, false, 11, -1, "oversold"},
    {"a drift below zero", {{201, 9}}, false, 9, 0, "drift"},
    {"a drift above zero", {{201, 9}}, false, 9, 2, "drift"},
};

static json_t *row_of(size_t run)
{
    static struct shop_answers answers; /* large */
    struct shop_description description = {.units = 1, .all_2xx_sold = true};
    description.answers[SHOP_REFUSED] = (struct shop_rules){.rule = {{.status = 409}}, .count = 1};
    if (RUNS[run].accepts)
        description.answers[SHOP_ACCEPTED] = (struct shop_rules){.rule = {{.status = 202}}, .count = 1};
    memset(&answers, 0, sizeof answers);
    for (size_t i = 0; i < KINDS; i++)
        for (int n = 0; n < RUNS[run].answers[i].count; n++) {
            const struct shop_reply reply = {.status = RUNS[run].answers[i].status};
            const struct shop_answer answer = {.status = reply.status,
                                               .meaning = shop_meaning_of(&description, &reply)};
            if (reply.status == 0)
                answers.unanswered++;
            else
                shop_answers_add(&answers, &answer);
        }
    const struct shop_stock before = {.left = 10, .broken = -1},
                            after = {.left = RUNS[run].left, .sold = RUNS[run].sold, .broken = -1};
    const struct check_answers meant = check_answers_of(&answers);
    const struct check_counts counts = check_counts_of(&description, &before, &after, &meant);
    return check_row_new(1, &counts, &answers, 0);
}

static void each_answer_reaches_the_verdict(void **state)
{
    for (size_t i = 0; i < COUNT(RUNS); i++) {
        json_auto_t *row = row_of(i);
        assert_non_null(row);
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        if (strcmp(verdict, RUNS[i].verdict) != 0)
            fail_msg("%s: %s", RUNS[i].what, verdict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_reaches_the_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
