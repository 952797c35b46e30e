/* Which statements have an effect, and which requests poll PostgreSQL in vain. */
#include "tests/unit/unit.h"

#include "loadtest/own/polls/idle_polls.h"

#include <stdio.h>
#include <string.h>

enum { A, B, C };
static struct idle_polls polls;
static struct routines routines;

static int set_up(void **state)
{
    polls = (struct idle_polls){.tables_alone = true};
    return 0;
}

/* A statement of ACTOR that has ended; its connection is in a transaction AFTER, and was BEFORE. */
static void sends_in(unsigned actor, const char *text, const char *answer, const char *sqlstate, bool before,
                     bool after)
{
    idle_polls_ended(&polls, actor, actor, text, before, after,
                     statement_effect(&routines, text, answer, sqlstate),
                     statement_writes_one_table(&routines, text));
}

static void sends(unsigned actor, const char *text, const char *answer)
{
    sends_in(actor, text, answer, "", false, false);
}

static bool repeats(unsigned actor, const char *text)
{
    return poll_history_repeats(&polls.history[actor], text, false) != 0;
}

/* ---- effects ------------------------------------------------------------------------------------------------ */

static void test_effects(void **state)
{
    static const struct {
        const char *text, *answer, *sqlstate;
        enum statement_effect effect;
    } CASES[] = {
        {"SELECT count FROM product WHERE id = 1", "1", "", EFFECT_NONE},
        {"WITH a AS (SELECT 1) SELECT * FROM a;", "1", "", EFFECT_NONE},
        {"SAVEPOINT a", "SAVEPOINT", "", EFFECT_NONE},
        {"ROLLBACK TO SAVEPOINT a", "ROLLBACK", "", EFFECT_NONE},
        {"INSERT INTO lock VALUES ($1) ON CONFLICT DO NOTHING [a]", "INSERT 0 0", "", EFFECT_VAIN},
        {"insert into lock values (1)", "error: duplicate key", "23505", EFFECT_VAIN},
        {"UPDATE lock SET owner = 'a'", "UPDATE 0", "", EFFECT_VAIN},
        {"DELETE FROM lock", "DELETE 0", "", EFFECT_VAIN},
        {"SELECT 1 FROM lock FOR UPDATE", "SELECT 0", "", EFFECT_VAIN},
        {"SELECT 1 FROM lock FOR UPDATE SKIP LOCKED", "SELECT 0", "", EFFECT_REFUSED},
        {"SELECT 1 FROM lock FOR UPDATE NOWAIT", "error: could not obtain lock", "55P03", EFFECT_REFUSED},
        {"SELECT pg_try_advisory_lock(1)", "f", "", EFFECT_REFUSED},
        {"SELECT pg_try_advisory_lock(1)", "t", "", EFFECT_CHANGES},
        {"SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2)", "f, t", "", EFFECT_CHANGES},
        {"SELECT 1 FROM lock FOR UPDATE", "1", "", EFFECT_LOCKS},
        {"WITH a AS (SELECT 1 FROM lock FOR UPDATE) SELECT * FROM a", "1", "", EFFECT_CHANGES},
        {"WITH a AS (SELECT 1) SELECT 1 FROM lock, a FOR SHARE", "1", "", EFFECT_CHANGES},
        {"INSERT INTO lock VALUES (1)", "INSERT 0 1", "", EFFECT_CHANGES},
        {"UPDATE lock SET owner = 'a' RETURNING id", "7", "", EFFECT_CHANGES},
        {"UPDATE lock SET owner = 'a'", "UPDATE 10", "", EFFECT_CHANGES},
        {"UPDATE lock SET owner = 'a'", "error: could not serialize access", "40001", EFFECT_CHANGES},
        {"INSERT INTO lock VALUES (1)", "error: foreign key", "23503", EFFECT_CHANGES},
        {"SELECT pg_advisory_unlock(1)", "f", "", EFFECT_CHANGES},
        {"SELECT nextval('a')", "1", "", EFFECT_CHANGES},
        {"SELECT take_lock('a')", "f", "", EFFECT_CHANGES},
        {"UPDATE watched SET a = 1", "UPDATE 0", "", EFFECT_CHANGES},
        {"WITH a AS (DELETE FROM lock RETURNING 1) SELECT * FROM a", "SELECT 0", "", EFFECT_CHANGES},
        {"DELETE FROM lock; DELETE FROM sale", "DELETE 0", "", EFFECT_CHANGES},
        {"(continues the statement before)", "SELECT 0", "", EFFECT_CHANGES},
        {"", "", "", EFFECT_CHANGES},
        {"COMMIT", "COMMIT", "", EFFECT_ENDS},
        {"ROLLBACK", "ROLLBACK", "", EFFECT_ENDS},
        {"COMMIT", "error: could not serialize access", "40001", EFFECT_CHANGES},
    };
    assert_true(routines_add(&routines, "take_lock", "", "function"));
    assert_true(routines_add(&routines, "watched", "", "trigger"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum statement_effect effect = statement_effect(&routines, CASES[i].text, CASES[i].answer,
                                                        CASES[i].sqlstate);
        if (effect != CASES[i].effect)
            fail_msg("'%s' → '%s' is %d instead of %d", CASES[i].text, CASES[i].answer, (int)effect,
                     (int)CASES[i].effect);
    }
    routines_free(&routines);
}

static void test_a_text_that_is_cut_off_may_do_anything(void **state)
{
    char text[400];
    memset(text, 'a', sizeof text);
    memcpy(text, "DELETE FROM lock WHERE ", 23);
    text[399] = '\0';
    assert_int_equal(statement_effect(NULL, text, "DELETE 0", ""), EFFECT_CHANGES);
    assert_false(statement_writes_one_table(NULL, text));
}

/* ---- polls ---------------------------------------------------------------------------------------------------- */

static const char TAKE[] = "INSERT INTO lock VALUES ($1, $2) ON CONFLICT DO NOTHING [p1, 1a2b3c4d5e]";

static void test_a_try_in_vain_is_held_until_another_request_changes_the_table(void **state)
{
    assert_false(repeats(B, TAKE));
    sends(B, TAKE, "INSERT 0 0");
    assert_true(repeats(B, TAKE));
    assert_false(repeats(A, TAKE)); /* it has not tried yet */
    sends(A, "SELECT count FROM product", "1");
    sends(A, "UPDATE product SET count = 0", "UPDATE 1"); /* another table */
    assert_true(repeats(B, TAKE));
    sends(A, "DELETE FROM public.\"lock\" WHERE owner = 'a'", "DELETE 1");
    assert_false(repeats(B, TAKE));
}

static void test_what_is_not_known_to_leave_the_table_alone_wakes(void **state)
{
    sends(B, TAKE, "INSERT 0 0");
    sends(A, "CALL release()", "CALL");
    assert_false(repeats(B, TAKE));
    sends(B, TAKE, "INSERT 0 0");
    polls.tables_alone = false; /* foreign keys, partitions */
    sends(A, "UPDATE product SET count = 0", "UPDATE 1");
    assert_false(repeats(B, TAKE));
    sends(B, TAKE, "INSERT 0 0");
    idle_polls_changed(&polls); /* a fault */
    assert_false(repeats(B, TAKE));
}

static void test_a_word_in_a_parameter_names_no_table(void **state)
{
    static const char QUOTED[] = "UPDATE lock SET owner = 'product' WHERE [1] = $1 [a, product]";
    sends(B, QUOTED, "UPDATE 0");
    sends(A, "UPDATE product SET count = 0", "UPDATE 1");
    assert_true(repeats(B, QUOTED));
    sends(C, "UPDATE lock SET a = 1 WHERE EXISTS (SELECT 1 FROM product WHERE tags = ARRAY [1])", "UPDATE 0");
    sends(A, "UPDATE product SET count = 0", "UPDATE 1");
    assert_false(
        repeats(C, "UPDATE lock SET a = 1 WHERE EXISTS (SELECT 1 FROM product WHERE tags = ARRAY [1])"));
}

static void test_a_table_between_quotation_marks_that_end_no_text(void **state)
{
    static const char *const POLLS[] = {"UPDATE lock SET a = 1 /* don't */ FROM product WHERE b = 'x'",
                                        "UPDATE lock SET a = E'\\'' FROM product WHERE b = 'x'"};
    (void)state;
    for (size_t i = 0; i < sizeof POLLS / sizeof *POLLS; i++) {
        sends(B, POLLS[i], "UPDATE 0");
        assert_true(repeats(B, POLLS[i]));
        sends(A, "UPDATE /* don't */ product SET count = 0", "UPDATE 1");
        assert_false(repeats(B, POLLS[i]));
    }
    sends(B, "UPDATE lock SET a = 1 WHERE b = 'x", "UPDATE 0"); /* what follows is not known */
    sends(A, "UPDATE product SET count = 0", "UPDATE 1");
    assert_false(repeats(B, "UPDATE lock SET a = 1 WHERE b = 'x"));
}

static void test_a_change_counts_when_it_is_committed(void **state)
{
    sends(B, TAKE, "INSERT 0 0");
    sends_in(A, "DELETE FROM lock", "DELETE 1", "", false, true);
    assert_true(repeats(B, TAKE));
    sends_in(A, "SELECT 1", "1", "", true, true);
    sends_in(A, "COMMIT", "COMMIT", "", true, false);
    assert_false(repeats(B, TAKE));
}

static void test_a_statement_that_reads_more_waits_with_an_old_snapshot(void **state)
{
    static const char LEAST[] = "INSERT INTO lock SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM lock)";
    sends(B, LEAST, "INSERT 0 0");
    sends_in(A, "DELETE FROM lock", "DELETE 1", "", false, true);
    assert_false(repeats(B, LEAST));
}

static void test_a_round_of_three_transactions(void **state)
{
    static const char ENDED[] = "DELETE FROM lock WHERE until < $1 [2026-11-28 00:52:42.1+00]",
                      LATER[] = "DELETE FROM lock WHERE until < $1 [2026-11-28 00:53:00.7+00]",
                      MINE[] = "UPDATE lock SET until = $1 [1795827162000]";
    sends_in(B, ENDED, "DELETE 0", "", false, true);
    assert_false(poll_history_repeats(&polls.history[B], "COMMIT", true));
    sends_in(B, "COMMIT", "COMMIT", "", true, false);
    assert_false(repeats(B, MINE));
    sends_in(B, MINE, "UPDATE 0", "", false, true);
    assert_false(poll_history_repeats(&polls.history[B], "COMMIT", true));
    sends_in(B, "COMMIT", "COMMIT", "", true, false);
    sends_in(B, TAKE, "error: duplicate key", "23505", false, true);
    assert_true(idle_polls_ends_nothing(&polls, B));
    sends_in(B, "ROLLBACK", "ROLLBACK", "", true, false);
    assert_true(repeats(B, LATER));
    assert_true(poll_history_has(&polls.history[B], "COMMIT", true));
    assert_false(poll_history_has(&polls.history[B], "SELECT count FROM product", false));
}

static void test_other_parameters_are_another_statement(void **state)
{
    sends(B, "INSERT INTO stock VALUES ($1) ON CONFLICT DO NOTHING [1]", "INSERT 0 0");
    assert_false(repeats(B, "INSERT INTO stock VALUES ($1) ON CONFLICT DO NOTHING [2]"));
    sends(B, "UPDATE stock SET a = 1 WHERE id = '018f-aaaa1'", "UPDATE 0");
    assert_false(repeats(B, "UPDATE stock SET a = 1 WHERE id = '018f-aaaa2'"));
    for (int i = 0; i < 2; i++) /* a new owner for each try */
        sends(B, "UPDATE stock SET a = 1 WHERE id = '018f-aaaa1'", "UPDATE 0");
    assert_true(repeats(B, "UPDATE stock SET a = 1 WHERE id = '018f-aaaa2'"));
}

static void test_a_row_may_be_read_again(void **state)
{
    for (int i = 0; i < 3; i++) {
        assert_false(repeats(B, "SELECT locked FROM lock"));
        sends(B, "SELECT locked FROM lock", "t");
    }
    assert_true(repeats(B, "SELECT locked FROM lock"));
}

static void test_a_retry_after_a_conflict_is_no_poll(void **state)
{
    static const char READ[] = "SELECT count FROM product",
                      WRITE[] = "UPDATE product SET count = 0 WHERE count = 1";
    sends(B, READ, "1");
    sends(A, WRITE, "UPDATE 1");
    sends(B, WRITE, "UPDATE 0");
    assert_false(repeats(B, READ)); /* it was read before the change */
    sends_in(C, READ, "1", "", false, true);
    sends_in(C, WRITE, "error: could not serialize access", "40001", true, true);
    sends_in(C, "ROLLBACK", "ROLLBACK", "", true, false);
    assert_false(repeats(C, READ));
}

static void test_a_lock_of_a_transaction_that_ends(void **state)
{
    static const char TRY[] = "SELECT 1 FROM lock FOR UPDATE NOWAIT";
    sends_in(A, "SELECT 1 FROM lock FOR UPDATE", "1", "", false, true);
    sends_in(B, TRY, "error: could not obtain lock", "55P03", false, false);
    sends(C, TAKE, "INSERT 0 0");
    assert_true(repeats(B, TRY) && repeats(C, TAKE));
    assert_false(idle_polls_ends_nothing(&polls, A));
    sends_in(A, "COMMIT", "COMMIT", "", true, false);
    assert_false(repeats(B, TRY));
    assert_true(repeats(C, TAKE));
}

static void test_an_own_effect_begins_again(void **state)
{
    sends(B, TAKE, "INSERT 0 0");
    sends(B, "INSERT INTO tries VALUES (1)", "INSERT 0 1");
    assert_false(repeats(B, TAKE));
    sends_in(B, "UPDATE lock SET a = 1", "UPDATE 1", "", false, true);
    sends_in(B, "DELETE FROM lock WHERE a = 2", "DELETE 0", "", true, true);
    assert_false(idle_polls_ends_nothing(&polls, B));
}

static void test_a_connection_that_is_closed_in_a_transaction(void **state)
{
    assert_false(idle_polls_drop(&polls, A));
    sends_in(A, "UPDATE product SET a = 1", "UPDATE 1", "", false, true);
    assert_true(idle_polls_drop(&polls, A));
    assert_false(idle_polls_drop(&polls, A));
    sends(B, TAKE, "INSERT 0 0");
    sends_in(A, "COMMIT", "COMMIT", "", true, false);
    assert_true(repeats(B, TAKE));
}

static void test_tables(void **state)
{
    assert_true(poll_table("INSERT INTO a.lock(x) VALUES (1)") ==
                poll_table("delete from \"a\".\"LOCK\" where x"));
    assert_true(poll_table("UPDATE ONLY lock SET x") == poll_table("UPDATE lock SET x"));
    assert_true(poll_table("UPDATE lock SET x") != poll_table("UPDATE locks SET x"));
    assert_true(poll_table("SELECT 1") == 0 && poll_table("UPDATE ") == 0);
}

static void test_a_long_history_is_cut_off(void **state)
{
    char text[64];
    for (int i = 0; i < 2 * POLL_HISTORY; i++) {
        snprintf(text, sizeof text, "SELECT %d FROM lock", i);
        sends(B, text, "1");
    }
    assert_int_equal(polls.history[B].count, POLL_HISTORY);
}

static void test_known_polls(void **state)
{
    struct known_polls known = {0};
    known_polls_add(&known, 7, POLL_GIVES_UP);
    known_polls_add(&known, 7, POLL_GOES_ON);
    assert_int_equal(known_polls_end(&known, 7), POLL_GIVES_UP);
    assert_int_equal(known_polls_end(&known, 8), POLL_UNKNOWN);
    for (uint64_t i = 0; i < 2 * POLLS_MAX; i++)
        known_polls_add(&known, i, POLL_GOES_ON);
    assert_int_equal(known.count, POLLS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_a_text_that_is_cut_off_may_do_anything),
        cmocka_unit_test_setup(test_a_try_in_vain_is_held_until_another_request_changes_the_table, set_up),
        cmocka_unit_test_setup(test_what_is_not_known_to_leave_the_table_alone_wakes, set_up),
        cmocka_unit_test_setup(test_a_word_in_a_parameter_names_no_table, set_up),
        cmocka_unit_test_setup(test_a_table_between_quotation_marks_that_end_no_text, set_up),
        cmocka_unit_test_setup(test_a_change_counts_when_it_is_committed, set_up),
        cmocka_unit_test_setup(test_a_statement_that_reads_more_waits_with_an_old_snapshot, set_up),
        cmocka_unit_test_setup(test_a_round_of_three_transactions, set_up),
        cmocka_unit_test_setup(test_other_parameters_are_another_statement, set_up),
        cmocka_unit_test_setup(test_a_row_may_be_read_again, set_up),
        cmocka_unit_test_setup(test_a_retry_after_a_conflict_is_no_poll, set_up),
        cmocka_unit_test_setup(test_a_lock_of_a_transaction_that_ends, set_up),
        cmocka_unit_test_setup(test_an_own_effect_begins_again, set_up),
        cmocka_unit_test_setup(test_a_connection_that_is_closed_in_a_transaction, set_up),
        cmocka_unit_test(test_tables),
        cmocka_unit_test_setup(test_a_long_history_is_cut_off, set_up),
        cmocka_unit_test(test_known_polls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
