/* Tests the evidence that a phase of a load run gives against a strategy, and the sentence that describes it. */
#include "tests/unit/unit.h"

#include "loadtest/load/finding.h"

#include <stdio.h>
#include <string.h>

/* A sell-out of 100 units: the answers to its orders, the audit, and the last calls. */
#define SALE .ran = true, .sells_out = true, .stock = 100, .quantity = 1
#define ANSWERS(made, out, ...)                                                                              \
    .load.answers = {.requests = 400, .created = (made), .sold_out = (out), ##__VA_ARGS__}
#define BOOKS(number, rest, ...)                                                                             \
    .books = {.initial = 100, .sold = (number), .orders = (number), .left = (rest), ##__VA_ARGS__}
#define EVEN .balanced = true
#define WELL ANSWERS(100, 300), BOOKS(100, 0, EVEN)
#define LAST_CALL(...)                                                                                       \
    .last_call = {__VA_ARGS__}, .last_calls = sizeof((enum answer[]){__VA_ARGS__}) / sizeof(enum answer)

static const struct {
    const char *what;
    enum guarantee guarantee;
    int64_t tries;
    const char *lock;
    struct phase phase;
    const char *finding; /* part of the sentence; "" for none */
} CASES[] = {
    {"all well", GUARANTEE_SAFE, 1, NULL, {SALE, WELL}, ""},
    {"all well, and the last calls too",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, WELL, LAST_CALL(ANSWER_SOLD_OUT, ANSWER_SOLD_OUT)},
     ""},
    {"not all was sold, and nobody was refused",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, ANSWERS(10, 0), BOOKS(10, 90, EVEN)},
     ""},
    {"one unit is left, and two were wanted",
     GUARANTEE_SAFE,
     1,
     NULL,
     {.ran = true,
      .sells_out = true,
      .stock = 25,
      .quantity = 2,
      ANSWERS(12, 52),
      .books = {.initial = 25, .sold = 24, .orders = 12, .left = 1, .balanced = true}},
     ""},
    {"busy, and then the last call is served",
     GUARANTEE_SAFE,
     50,
     NULL,
     {SALE, ANSWERS(99, 0, .conflict = 301, .busy = 301), BOOKS(99, 1, EVEN), LAST_CALL(ANSWER_CREATED)},
     ""},
    {"a lock's server is later than an order waits that hardly waits",
     GUARANTEE_SAFE,
     1,
     "etcd",
     {SALE, .hasty = true, ANSWERS(100, 297, .unavailable = 3, .errors = 3), BOOKS(100, 0, EVEN)},
     ""},
    {"it did not run", GUARANTEE_SAFE, 1, NULL, {.ran = false}, ""},

    {"sold out, and units are left",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, ANSWERS(99, 301), BOOKS(99, 1, EVEN)},
     "the service answered \"sold out\" to orders of 1, although 1 units are left"},
    {"sold out, and then sold",
     GUARANTEE_WHILE_LEASE_HOLDS,
     1,
     "redis-lock",
     {SALE, ANSWERS(100, 300, .created_late = 7), BOOKS(100, 0, EVEN)},
     "created 7 orders that were sent later"},
    {"the last unit cannot be sold",
     GUARANTEE_SAFE,
     50,
     NULL,
     {SALE, ANSWERS(99, 0, .conflict = 301, .busy = 301), BOOKS(99, 1, EVEN), LAST_CALL(ANSWER_CONFLICT)},
     "the service answered \"conflict\" to an order without competitors, although 1 units are left"},
    {"a lost update brings units back",
     GUARANTEE_UNSAFE,
     1,
     NULL,
     {SALE, ANSWERS(100, 300, .created_late = 7), BOOKS(100, 50)},
     ""},
    {"a lock stays",
     GUARANTEE_WHILE_LEASE_HOLDS,
     1,
     "redis-lock",
     {SALE, WELL, LAST_CALL(ANSWER_SOLD_OUT, ANSWER_LOCK_BUSY)},
     "the lock redis-lock was not released"},
    {"deadlocks",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, ANSWERS(100, 298, .conflict = 2, .busy = 2), BOOKS(100, 0, EVEN)},
     "2 orders ended in a conflict"},
    {"conflicts of a row that tries again",
     GUARANTEE_SAFE,
     50,
     NULL,
     {SALE, ANSWERS(100, 298, .conflict = 2, .busy = 2), BOOKS(100, 0, EVEN)},
     ""},
    {"errors",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, ANSWERS(100, 297, .other = 3, .errors = 3), BOOKS(100, 0, EVEN)},
     "3 orders failed although no fault was injected"},
    {"an error of the last call alone",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, WELL, LAST_CALL(ANSWER_OTHER)},
     "the service answered \"other\" to an order without competitors"},
    {"oversold",
     GUARANTEE_SAFE,
     1,
     NULL,
     {SALE, ANSWERS(125, 275), BOOKS(125, 0, .oversold = 25)},
     "sold 125 of 100 units, but the stock shows 0 left"},
    {"amounts",
     GUARANTEE_UNSAFE,
     1,
     NULL,
     {SALE, ANSWERS(100, 300), BOOKS(100, 0, EVEN, .amounts_wrong = 4)},
     "4 orders have an amount"},
    {"an answer is missing",
     GUARANTEE_UNSAFE,
     1,
     NULL,
     {SALE, ANSWERS(100, 300), BOOKS(101, 0, EVEN)},
     "the service acknowledged 100 orders, but the database has 101"},
    {"nothing was sold",
     GUARANTEE_UNSAFE,
     1,
     NULL,
     {SALE, ANSWERS(0, 0, .lock_busy = 400, .busy = 400), BOOKS(0, 100, EVEN)},
     "the service created no order"},
};

static void test_findings(void **state)
{
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct subject subject = {
            .guarantee = CASES[i].guarantee, .tries = CASES[i].tries, .lock = CASES[i].lock};
        struct evidence evidence = {.guarantee = subject.guarantee, .instances = 2, .available = true};
        char finding[FINDING_MAX] = "";
        find(&CASES[i].phase, &subject, &evidence, finding);
        bool broken = verdict_of(&evidence) == VERDICT_BROKEN, named = CASES[i].finding[0] != 0;
        if (!strstr(finding, CASES[i].finding) || broken != named || named != (finding[0] != 0))
            fail_msg("%s: %s, '%s'", CASES[i].what, verdict_name(verdict_of(&evidence)), finding);
    }
}

/* The first phase that breaks a promise names it. */
static void test_the_first_finding_stays(void **state)
{
    struct subject subject = {.guarantee = GUARANTEE_SAFE, .tries = 1};
    struct evidence evidence = {.guarantee = GUARANTEE_SAFE, .instances = 2, .available = true};
    struct phase amounts = {SALE, ANSWERS(100, 300), BOOKS(100, 0, EVEN, .amounts_wrong = 4)};
    struct phase errors = {SALE, ANSWERS(100, 300, .errors = 3), BOOKS(100, 0, EVEN)};
    char finding[FINDING_MAX] = "";
    find(&amounts, &subject, &evidence, finding);
    find(&errors, &subject, &evidence, finding);
    assert_non_null(strstr(finding, "4 orders have an amount"));
    assert_true(evidence.amounts_wrong && evidence.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_the_first_finding_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
