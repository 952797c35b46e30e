/* Sandboxes: a place for each learner, known by its token. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "service/classroom/sandbox.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const struct sandbox_caller teacher = {.is_teacher = true}, learner = {.address = "10.0.0.1"},
                                   neighbour = {.address = "10.0.0.2"};

struct user {
    struct sandboxes *sandboxes;
    const char *token;
    atomic_bool ends;
};

static void *use_until_the_end(void *context)
{
    struct user *user = context;
    while (!user->ends)
        (void)sandbox_owned(user->sandboxes, user->token);
    return NULL;
}

/* The teacher's list must not be older than a use that it shows. */
static void test_a_list_while_all_are_in_use(void **state)
{
    char token[SECRET_SIZE];
    pthread_t threads[4];
    struct sandbox_info list[SANDBOXES_MAX];
    int64_t before, least = 0;
    struct user user = {.sandboxes = sandboxes_new(30LL * 60 * 1000, 3), .token = token};
    sandbox_give(user.sandboxes, sandbox_take(user.sandboxes, &learner, &before), 7, token);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_until_the_end, &user), 0);
    for (int i = 0; i < 20000 && least >= 0; i++) {
        assert_int_equal(sandbox_list(user.sandboxes, list), 1);
        least = list[0].idle_ms < least ? list[0].idle_ms : least;
    }
    user.ends = true;
    for (int i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    assert_true(least >= 0);
    sandboxes_free(user.sandboxes);
}

static void test_a_place_for_each(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    char tokens[SANDBOXES_MAX][SECRET_SIZE];
    bool seen[SANDBOXES_MAX] = {false};
    int64_t before = -1;
    for (int i = 0; i < SANDBOXES_MAX; i++) {
        int place = sandbox_take(sandboxes, &teacher, &before);
        assert_true(place >= 0 && place < SANDBOXES_MAX && !seen[place] && before == 0);
        seen[place] = true;
        sandbox_give(sandboxes, place, 1000 + i, tokens[i]);
        assert_int_equal(strlen(tokens[i]), SECRET_SIZE - 1);
    }
    assert_int_equal(sandbox_take(sandboxes, &teacher, &before), -1);
    assert_int_equal(sandbox_count(sandboxes), SANDBOXES_MAX);
    for (int i = 0; i < SANDBOXES_MAX; i++)
        assert_true(sandbox_owned(sandboxes, tokens[i]) == 1000 + i);
    sandboxes_free(sandboxes);
}

static void test_a_place_that_is_taken_or_dropped(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    int64_t before;
    int first = sandbox_take(sandboxes, &teacher, &before),
        second = sandbox_take(sandboxes, &teacher, &before);
    assert_int_not_equal(first, second);
    sandbox_drop(sandboxes, first, 7);
    assert_int_equal(sandbox_count(sandboxes), 0);
    assert_int_equal(sandbox_take(sandboxes, &teacher, &before), first);
    assert_true(before == 7); /* a product that was made in vain is used */
    sandboxes_free(sandboxes);
}

/* A place that was left alone goes to another learner; from that moment on the token of the one before is worth nothing. */
static void test_a_place_that_was_left_alone(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(0, 3);
    char tokens[SANDBOXES_MAX][SECRET_SIZE];
    int64_t before;
    for (int i = 0; i < SANDBOXES_MAX; i++)
        sandbox_give(sandboxes, sandbox_take(sandboxes, &teacher, &before), 1000 + i, tokens[i]);
    sleep_us(1);
    assert_true(sandbox_owned(sandboxes, tokens[0]) == 1000);
    sleep_us(1);
    int place = sandbox_take(sandboxes, &teacher, &before);
    assert_true(place >= 0 && before == 1001); /* of all that are idle the one that was used first */
    assert_true(sandbox_owned(sandboxes, tokens[1]) == 0);
    sandbox_drop(sandboxes, place, before);
    assert_true(sandbox_owned(sandboxes, tokens[1]) == 0);
    sandboxes_free(sandboxes);
}

/* One address leaves places for the others, and all learners together leave some for the teacher. */
static void test_limits(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    struct sandbox_caller many = {.address = "10.0.0.3"};
    int64_t before;
    char token[SECRET_SIZE];
    for (int i = 0; i < 3; i++)
        sandbox_give(sandboxes, sandbox_take(sandboxes, &learner, &before), 1 + i, token);
    assert_int_equal(sandbox_take(sandboxes, &learner, &before), SANDBOX_ADDRESS_FULL);
    sandbox_give(sandboxes, sandbox_take(sandboxes, &neighbour, &before), 4, token);
    assert_true(sandbox_evict(sandboxes, 2));
    assert_true(sandbox_take(sandboxes, &learner, &before) >= 0); /* counts from now on */
    assert_int_equal(sandbox_take(sandboxes, &learner, &before), SANDBOX_ADDRESS_FULL);
    sandboxes_set_address_limit(sandboxes, 0); /* the teacher's choice: any number */
    for (int i = 5; i <= SANDBOXES_OF_LEARNERS; i++)
        assert_true(sandbox_take(sandboxes, &many, &before) >= 0);
    assert_int_equal(sandbox_take(sandboxes, &many, &before), SANDBOXES_FULL);
    for (int i = 0; i < SANDBOXES_RESERVED; i++)
        assert_true(sandbox_take(sandboxes, &teacher, &before) >= 0);
    assert_int_equal(sandbox_take(sandboxes, &teacher, &before), SANDBOXES_FULL);
    sandboxes_free(sandboxes);
}

static void test_exercises_are_counted_once(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    int64_t before;
    char token[SECRET_SIZE];
    int place = sandbox_take(sandboxes, &learner, &before);
    sandbox_give(sandboxes, place, 7, token);
    sandbox_note_exercise(sandboxes, 8, 1); /* nobody's */
    assert_int_equal(sandbox_exercises(sandboxes, 7), 0);
    for (uint64_t exercise = 0; exercise < 2 * SANDBOX_EXERCISES; exercise++) {
        sandbox_note_exercise(sandboxes, 7, exercise / 2);
        assert_int_equal(sandbox_exercises(sandboxes, 7), exercise / 2 + 1);
    }
    sandbox_note_exercise(sandboxes, 7, 2 * SANDBOX_EXERCISES); /* no room */
    assert_int_equal(sandbox_exercises(sandboxes, 7), SANDBOX_EXERCISES);
    sandbox_give(sandboxes, place, 7, token); /* another learner's */
    assert_int_equal(sandbox_exercises(sandboxes, 7), 0);
    sandboxes_free(sandboxes);
}

static void test_an_address_is_evicted(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    struct sandbox_caller own = {.address = "10.0.0.1", .is_teacher = true},
                          callers[4] = {learner, neighbour, learner, own};
    char tokens[4][SECRET_SIZE];
    int64_t ended[SANDBOXES_MAX], before;
    for (int i = 0; i < 4; i++)
        sandbox_give(sandboxes, sandbox_take(sandboxes, &callers[i], &before), 10 + i, tokens[i]);
    int taken = sandbox_take(sandboxes, &learner, &before); /* it has no token yet */
    assert_int_equal(sandbox_evict_address(sandboxes, "10.1.1.1", ended), 0);
    assert_int_equal(sandbox_evict_address(sandboxes, "10.0.0.1", ended), 2);
    assert_true(ended[0] == 10 && ended[1] == 12);
    assert_true(sandbox_was_evicted(sandboxes, tokens[0]) && sandbox_was_evicted(sandboxes, tokens[2]));
    assert_true(sandbox_owned(sandboxes, tokens[1]) == 11 && sandbox_owned(sandboxes, tokens[3]) == 13);
    assert_int_equal(sandbox_evict_address(sandboxes, "10.0.0.1", ended), 0);
    sandbox_drop(sandboxes, taken, 0);
    sandboxes_free(sandboxes);
}

/* Otherwise an address could take its places, wait until they are idle, and take as many again. */
static void test_idle_sandboxes_count_for_their_address(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(0, 3); /* idle at once */
    char tokens[6][SECRET_SIZE];
    int64_t before;
    for (int i = 0; i < 6; i++) {
        sandbox_give(sandboxes, sandbox_take(sandboxes, &learner, &before), 1 + i, tokens[i]);
        sleep_us(1);
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(sandbox_owned(sandboxes, tokens[i]), i < 3 ? 0 : 1 + i);
    sandboxes_free(sandboxes);
}

/* Learners who come back after a long time get no place of the teacher's. */
static void test_idle_sandboxes_leave_the_teachers_places(void **state)
{
    const struct sandbox_caller many = {.address = "10.0.0.3"};
    char tokens[SANDBOXES_MAX][SECRET_SIZE];
    int64_t before, idle_ms = 250, began_us;
    int owned;
    do { /* again, with a longer time, where the machine was so slow that some were idle once more */
        struct sandboxes *sandboxes = sandboxes_new(idle_ms *= 2, 3);
        owned = 0;
        for (int i = 0; i < SANDBOXES_MAX; i++) {
            int place = sandbox_take(sandboxes, &many, &before);
            if (place < 0) { /* only the teacher's are left */
                sleep_us(idle_ms * 1000 + 1000);
                place = sandbox_take(sandboxes, &many, &before);
            }
            sandbox_give(sandboxes, place, 1 + i, tokens[i]);
        }
        began_us = monotonic_us();
        for (int i = 0; i < SANDBOXES_MAX; i++)
            owned += sandbox_owned(sandboxes, tokens[i]) != 0;
        sandboxes_free(sandboxes);
    } while (monotonic_us() - began_us > idle_ms * 1000 / 2);
    assert_true(owned > 0 && owned <= SANDBOXES_MAX - SANDBOXES_RESERVED);
}

static void test_the_teacher_sees_and_evicts(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    struct sandbox_info list[SANDBOXES_MAX];
    int64_t before;
    char tokens[2][SECRET_SIZE];
    assert_int_equal(sandbox_list(sandboxes, list), 0);
    sandbox_give(sandboxes, sandbox_take(sandboxes, &learner, &before), 7, tokens[0]);
    sandbox_give(sandboxes, sandbox_take(sandboxes, &neighbour, &before), 8, tokens[1]);
    assert_int_equal(sandbox_list(sandboxes, list), 2);
    assert_true(list[0].product_id == 7 && list[1].product_id == 8 && list[0].idle_ms >= 0);
    assert_string_equal(list[1].address, "10.0.0.2");
    assert_true(list[0].number == 1 && list[1].number == 2 && !list[0].is_expired && !list[0].is_teachers);
    sandbox_count_order(sandboxes, 8);
    sandbox_count_order(sandboxes, 8);
    sandbox_count_order(sandboxes, 9); /* nobody's */
    assert_int_equal(sandbox_list(sandboxes, list), 2);
    assert_true(list[0].orders == 0 && list[1].orders == 2);
    assert_false(sandbox_evict(sandboxes, 9));
    assert_false(sandbox_was_evicted(sandboxes, tokens[0]));
    assert_true(sandbox_evict(sandboxes, 7));
    assert_true(sandbox_was_evicted(sandboxes, tokens[0]));
    assert_false(sandbox_was_evicted(sandboxes, tokens[1]) || sandbox_was_evicted(sandboxes, "") ||
                 sandbox_was_evicted(NULL, tokens[0]));
    assert_false(sandbox_evict(sandboxes, 7));
    assert_true(sandbox_owned(sandboxes, tokens[0]) == 0 && sandbox_owned(sandboxes, tokens[1]) == 8);
    assert_int_equal(sandbox_list(sandboxes, list), 1);
    sandbox_give(sandboxes, sandbox_take(sandboxes, &teacher, &before), 10, tokens[1]);
    assert_int_equal(sandbox_list(sandboxes, list), 2);
    assert_true(list[1].product_id == 10 && list[1].is_teachers && list[1].orders == 0);
    assert_true(sandbox_was_evicted(sandboxes, tokens[0])); /* whoever has the place now */
    sandboxes_free(sandboxes);
}

/* A learner has a number of calls of each kind, whoever has the place when they end. */
static void test_calls_are_counted(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    int64_t before;
    unsigned earlier;
    char token[SECRET_SIZE];
    sandbox_give(sandboxes, sandbox_take(sandboxes, &learner, &before), 7, token);
    sandbox_give(sandboxes, sandbox_take(sandboxes, &neighbour, &before), 8, token);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sandbox_begin_call(sandboxes, 7, false, 2, &earlier));
        assert_int_equal(earlier, i);
    }
    assert_false(sandbox_begin_call(sandboxes, 7, false, 2, &earlier));
    assert_true(sandbox_begin_call(sandboxes, 7, true, 1, &earlier));
    assert_false(sandbox_begin_call(sandboxes, 7, true, 1, &earlier));
    assert_true(sandbox_begin_call(sandboxes, 8, false, 2, &earlier) && earlier == 0);
    assert_true(sandbox_evict(sandboxes, 7));
    sandbox_end_call(sandboxes, 7, false);
    assert_true(sandbox_begin_call(sandboxes, 7, false, 2, &earlier) && earlier == 1);
    assert_false(sandbox_begin_call(sandboxes, 7, true, 1, &earlier));
    sandbox_end_call(sandboxes, 7, true);
    assert_true(sandbox_begin_call(sandboxes, 7, true, 1, &earlier));
    assert_false(sandbox_begin_call(sandboxes, 9, true, 1, &earlier)); /* nobody's */
    sandbox_end_call(sandboxes, 9, true);
    sandboxes_free(sandboxes);
}

static void test_the_class_code(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    char code[CLASS_CODE_SIZE], told[CLASS_CODE_SIZE], token[SECRET_SIZE];
    int64_t before;
    sandboxes_code(sandboxes, told);
    assert_true(!told[0] && !sandboxes_is_code(sandboxes, "")); /* without a class there is none */
    sandboxes_set_code(sandboxes, "abcd-2345");
    assert_true(sandboxes_is_code(sandboxes, "abcd-2345"));
    sandbox_give(sandboxes, sandbox_take(sandboxes, &learner, &before), 7, token);
    sandboxes_new_code(sandboxes, code);
    sandboxes_code(sandboxes, told);
    assert_string_equal(told, code);
    assert_true(strlen(code) == CLASS_CODE_SIZE - 1 && code[4] == '-' && sandboxes_is_code(sandboxes, code));
    assert_false(sandboxes_is_code(sandboxes, "abcd-2345") || sandboxes_is_code(sandboxes, ""));
    assert_true(sandbox_owned(sandboxes, token) == 7);
    sandboxes_free(sandboxes);
}

static void test_no_other_token(void **state)
{
    struct sandboxes *sandboxes = sandboxes_new(30LL * 60 * 1000, 3);
    int64_t before;
    char token[SECRET_SIZE], other[SECRET_SIZE + 1];
    sandbox_give(sandboxes, sandbox_take(sandboxes, &teacher, &before), 7, token);
    assert_true(sandbox_owned(sandboxes, token) == 7);
    assert_true(sandbox_owned(sandboxes, "") == 0 && sandbox_owned(NULL, token) == 0);
    snprintf(other, sizeof other, "%s", token);
    other[31] ^= 1;
    assert_true(sandbox_owned(sandboxes, other) == 0);
    snprintf(other, sizeof other, "%sx", token);
    assert_true(sandbox_owned(sandboxes, other) == 0);
    other[10] = '\0';
    assert_true(sandbox_owned(sandboxes, other) == 0);
    sandboxes_free(sandboxes);
    sandboxes_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_place_for_each),
        cmocka_unit_test(test_a_place_that_is_taken_or_dropped),
        cmocka_unit_test(test_a_place_that_was_left_alone),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_exercises_are_counted_once),
        cmocka_unit_test(test_an_address_is_evicted),
        cmocka_unit_test(test_idle_sandboxes_count_for_their_address),
        cmocka_unit_test(test_idle_sandboxes_leave_the_teachers_places),
        cmocka_unit_test(test_the_teacher_sees_and_evicts),
        cmocka_unit_test(test_a_list_while_all_are_in_use),
        cmocka_unit_test(test_calls_are_counted),
        cmocka_unit_test(test_the_class_code),
        cmocka_unit_test(test_no_other_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
