/* The class board: learners, solved lessons, votes, what is sent to all, and the bounds of each. */
#include "tests/unit/unit.h"

#include "service/classroom/board.h"

#include <stdio.h>

static const struct board_question question = {
    .answer_count = 3, .text = "What will B read?", .answers = {"0", "1", "it waits"}};

static const struct board_learner *learner_of(const struct board_view *view, int64_t product_id)
{
    for (int i = 0; i < view->learner_count; i++)
        if (view->learners[i].product_id == product_id)
            return &view->learners[i];
    return NULL;
}

static void test_texts(void **state)
{
    char text[BOARD_NAME_SIZE];
    static const struct {
        const char *given, *kept; /* NULL: refused */
    } cases[] = {
        {"Ada", "Ada"},
        {"  Ada Lovelace ", "Ada Lovelace"},
        {"Zoë 李", "Zoë 李"},
        {"\xf0\x9f\x90\x8d", "\xf0\x9f\x90\x8d"},
        {"", NULL},
        {"   ", NULL},
        {"a\nb", NULL},
        {"a\tb", NULL},
        {"\x1b[31mred", NULL},
        {"a\x7f", NULL},
        {"\xe2\x80\x8b", NULL},     /* U+200B has no width */
        {"a\xc2\x85", NULL},        /* U+0085, next line */
        {"a\xe2\x80\xae", NULL},    /* U+202E turns the text around: NOLINT(misc-misleading-bidirectional) */
        {"a\xe2\x81\xa6", NULL},    /* U+2066, the same: NOLINT(misc-misleading-bidirectional) */
        {"a\xff", NULL},            /* not UTF-8 */
        {"a\xc3", NULL},            /* cut inside a character */
        {"\xc0\xaf", NULL},         /* longer than needed */
        {"\xed\xa0\x80", NULL},     /* half of a pair of UTF-16 */
        {"\xf4\x90\x80\x80", NULL}, /* beyond Unicode */
        {"0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789"},
        {"01234567890123456789012345678901234567890", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool valid = board_text(cases[i].given, text, sizeof text);
        if (valid != (cases[i].kept != NULL))
            fail_msg("'%s' is %s", cases[i].given, valid ? "taken" : "refused");
        if (valid)
            assert_string_equal(text, cases[i].kept);
    }
}

static void test_learners_join_and_leave(void **state)
{
    struct board *board = board_new(1000);
    struct board_view view;
    assert_true(board_join(board, 7, "Ada") && board_join(board, 8, "Bob") && board_join(board, 9, "Cem"));
    assert_int_equal(board_solve(board, 8, 1 << 3, BOARD_LESSONS), BOARD_DONE);
    board_leave(board, 7);
    board_leave(board, 77);
    board_look(board, &view);
    assert_int_equal(view.learner_count, 2);
    assert_string_equal(view.learners[0].name, "Bob");
    assert_int_equal(view.learners[0].solved, 1 << 3);
    assert_string_equal(view.learners[1].name, "Cem");
    assert_true(board_join(board, 8, "Dora")); /* the place has another learner, who has solved nothing */
    board_look(board, &view);
    assert_int_equal(view.learner_count, 2);
    assert_string_equal(learner_of(&view, 8)->name, "Dora");
    assert_int_equal(learner_of(&view, 8)->solved, 0);
    board_free(board);
}

static void test_there_is_room_for_all_sandboxes_and_no_more(void **state)
{
    struct board *board = board_new(0);
    struct board_view view;
    for (int i = 0; i < SANDBOXES_MAX; i++)
        assert_true(board_join(board, 100 + i, "one"));
    assert_false(board_join(board, 5, "one too many"));
    assert_true(board_join(board, 100, "again"));
    for (int i = 0; i < SANDBOXES_MAX; i++)
        board_leave(board, 100 + i);
    board_look(board, &view);
    assert_int_equal(view.learner_count, 0);
    board_free(board);
}

static void test_solved_lessons_add_up(void **state)
{
    struct board *board = board_new(0);
    struct board_view view, again;
    board_join(board, 7, "Ada");
    assert_int_equal(board_solve(board, 7, 1 << 1, BOARD_LESSONS), BOARD_DONE);
    assert_int_equal(board_solve(board, 7, UINT64_C(1) << BOARD_LESSONS, BOARD_LESSONS), BOARD_DONE);
    board_look(board, &view);
    assert_true(view.learners[0].solved == (1 << 1 | UINT64_C(1) << BOARD_LESSONS));
    assert_int_equal(board_solve(board, 7, 1 << 1, BOARD_LESSONS), BOARD_DONE);
    board_look(board, &again);
    assert_true(again.version == view.version); /* nothing new */
    assert_int_equal(board_solve(board, 8, 1 << 1, BOARD_LESSONS), BOARD_NO_LEARNER);
    assert_int_equal(board_solve(board, 7, 1 << 2, 2), BOARD_NO_EXERCISE);
    assert_int_equal(board_solve(board, 7, 1 << 1, 0), BOARD_DONE); /* known already */
    board_free(board);
}

static void test_votes(void **state)
{
    struct board *board = board_new(0);
    struct board_view view;
    int vote;
    board_join(board, 7, "Ada");
    board_join(board, 8, "Bob");
    assert_int_equal(board_close(board, 0), BOARD_NO_QUESTION);
    assert_int_equal(board_vote(board, 7, 0, 0), BOARD_NO_QUESTION);
    int64_t id = board_ask(board, &question);
    assert_int_equal(board_vote(board, 7, id, 1), BOARD_DONE);
    assert_int_equal(board_vote(board, 7, id, 2), BOARD_DONE); /* changed */
    assert_int_equal(board_vote(board, 7, id, 3), BOARD_NO_ANSWER);
    assert_int_equal(board_vote(board, 7, id, -1), BOARD_NO_ANSWER);
    assert_int_equal(board_vote(board, 7, id + 1, 0), BOARD_NO_QUESTION);
    assert_int_equal(board_vote(board, 9, id, 0), BOARD_NO_LEARNER);
    board_news(board, 7, &view, &vote);
    assert_int_equal(vote, 2);
    assert_true(view.question.is_open);
    board_news(board, 8, &view, &vote);
    assert_int_equal(vote, BOARD_NONE); /* another's vote is not told */
    assert_int_equal(view.learner_count, 0);
    assert_int_equal(board_close(board, 3), BOARD_NO_ANSWER);
    assert_int_equal(board_close(board, 1), BOARD_DONE);
    assert_int_equal(board_vote(board, 8, id, 1), BOARD_CLOSED);
    assert_int_equal(board_close(board, BOARD_NONE), BOARD_DONE); /* an earlier answer stays */
    board_look(board, &view);
    assert_false(view.question.is_open);
    assert_int_equal(view.question.right, 1);
    assert_int_equal(learner_of(&view, 7)->vote, 2);
    int64_t next = board_ask(board, &question);
    assert_true(next > id);
    board_look(board, &view);
    assert_int_equal(learner_of(&view, 7)->vote, BOARD_NONE);
    assert_int_equal(view.question.right, BOARD_NONE);
    board_free(board);
}

static void test_a_question_is_removed_open_or_closed(void **state)
{
    struct board *board = board_new(0);
    struct board_view view;
    int vote;
    board_join(board, 7, "Ada");
    assert_int_equal(board_clear(board), BOARD_NO_QUESTION);
    int64_t id = board_ask(board, &question);
    board_vote(board, 7, id, 1);
    int64_t asked = board_news_version(board);
    assert_int_equal(board_clear(board), BOARD_DONE);
    assert_true(board_news_version(board) > asked); /* learners hear of it */
    board_news(board, 7, &view, &vote);
    assert_int_equal(view.question.id, 0);
    assert_int_equal(vote, BOARD_NONE);
    assert_int_equal(board_vote(board, 7, id, 1), BOARD_NO_QUESTION);
    assert_int_equal(board_close(board, 1), BOARD_NO_QUESTION);
    assert_int_equal(board_clear(board), BOARD_NO_QUESTION);
    int64_t next = board_ask(board, &question);
    assert_true(next > id); /* a page that shows the old one cannot vote on the new one */
    assert_int_equal(board_close(board, 1), BOARD_DONE);
    assert_int_equal(board_clear(board), BOARD_DONE);
    board_look(board, &view);
    assert_int_equal(view.question.id, 0);
    assert_int_equal(view.question.right, BOARD_NONE);
    board_free(board);
}

/* A learner's page polls with the version that it has: what others do must not make its answer long. */
static void test_versions(void **state)
{
    struct board *board = board_new(5000);
    struct board_view view;
    int64_t first = board_news_version(board);
    assert_true(first == 5000);
    board_join(board, 7, "Ada");
    board_solve(board, 7, 2, BOARD_LESSONS);
    assert_true(board_news_version(board) == first);
    int64_t id = board_ask(board, &question), asked = board_news_version(board);
    assert_true(asked > first);
    board_vote(board, 7, id, 0);
    assert_true(board_news_version(board) == asked);
    board_close(board, BOARD_NONE);
    int64_t closed = board_news_version(board);
    assert_true(closed > asked);
    board_look(board, &view);
    int64_t version = view.version;
    assert_true(board_send(board, PUSH_STRATEGY, "mutex") == 1 && board_send(board, PUSH_NOTHING, "") == 2);
    assert_true(board_news_version(board) == closed + 2);
    board_look(board, &view);
    assert_true(view.version > version);
    assert_int_equal(view.push.kind, PUSH_NOTHING);
    board_free(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_learners_join_and_leave),
        cmocka_unit_test(test_there_is_room_for_all_sandboxes_and_no_more),
        cmocka_unit_test(test_solved_lessons_add_up),
        cmocka_unit_test(test_votes),
        cmocka_unit_test(test_a_question_is_removed_open_or_closed),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
