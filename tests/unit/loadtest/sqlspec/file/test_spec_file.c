/* The format of SQL specifications: what a file may contain, and the line and sentence of each mistake. */
#include "tests/unit/unit.h"

#include "loadtest/sqlspec/file/spec_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char WHOLE[] =
    "# a comment with { and \"\n"
    "setup { CREATE TABLE t (n int);\n"
    "  INSERT INTO t VALUES (1); }\n"
    "setup { VACUUM t }\n"
    "teardown {DROP TABLE t}\n"
    "invariant { SELECT n > 0 FROM t }\n"
    "session \"first one\" setup { BEGIN } step \"a \"\"x\"\"\" { SELECT 1 } step b_2$ { COMMIT }\n"
    "teardown { SELECT 2 }\n"
    "session s2\n"
    "step c { SELECT '#' } # comment\n"
    "step \"step\" {}\n"
    "permutation \"a \"\"x\"\"\" c \"step\" b_2$\n"
    "permutation b_2$(*) c(b_2$, b_2$ notices 3,*)\n";

static bool parse(const char *text, struct spec *ret_spec, char error[SPEC_ERROR_SIZE])
{
    return spec_parse("f.spec", text, ret_spec, error);
}

static void test_a_whole_file(void **state)
{
    (void)state;
    struct spec spec;
    char error[SPEC_ERROR_SIZE];
    if (!parse(WHOLE, &spec, error))
        fail_msg("%s", error);
    assert_int_equal(spec.setup_count, 2);
    assert_string_equal(spec.setups[0].sql, "CREATE TABLE t (n int);\n  INSERT INTO t VALUES (1);");
    assert_int_equal(spec.setups[1].line, 4);
    assert_string_equal(spec.teardown.sql, "DROP TABLE t");
    assert_int_equal(spec.invariant_count, 1);
    assert_int_equal(spec.invariants[0].line, 6);
    assert_int_equal(spec.session_count, 2);
    assert_string_equal(spec.sessions[0].name, "first one");
    assert_string_equal(spec.sessions[0].setup.sql, "BEGIN");
    assert_string_equal(spec.sessions[0].teardown.sql, "SELECT 2");
    assert_null(spec.sessions[1].setup.sql);
    assert_int_equal(spec.step_count, 4);
    assert_string_equal(spec.steps[0].name, "a \"x\"");
    assert_string_equal(spec.steps[1].name, "b_2$");
    assert_string_equal(spec.steps[2].block.sql, "SELECT '#'");
    assert_int_equal(spec.steps[2].session, 1);
    assert_int_equal(spec.steps[3].number, 1);
    assert_string_equal(spec.steps[3].block.sql, "");
    assert_int_equal(spec.permutation_count, 2);
    assert_int_equal(spec.permutations[0].count, 4);
    assert_int_equal(spec.permutations[0].steps[3].step, 1);
    assert_int_equal(spec.permutations[1].line, 13);
    const struct permutation_step *steps = spec.permutations[1].steps;
    assert_int_equal(steps[0].marker_count, 1);
    assert_int_equal(steps[0].markers[0].kind, MARKER_ONCE);
    assert_int_equal(steps[1].marker_count, 3);
    assert_int_equal(steps[1].markers[0].kind, MARKER_STEP);
    assert_int_equal(steps[1].markers[0].step, 1);
    assert_int_equal(steps[1].markers[1].kind, MARKER_NOTICES);
    assert_int_equal(steps[1].markers[1].notices, 3);
    spec_free(&spec);
}

/* Spaces at the ends of a block are left out, but line ends stay, as the isolation tester reports them. */
static void test_the_ends_of_a_block(void **state)
{
    (void)state;
    struct spec spec;
    char error[SPEC_ERROR_SIZE];
    assert_true(parse("session s step a {\t \n SELECT 1 \n\t}", &spec, error));
    assert_string_equal(spec.steps[0].block.sql, "\n SELECT 1 \n");
    assert_int_equal(spec.steps[0].block.line, 1);
    spec_free(&spec);
}

/* SQL whose braces do not end the block, and what follows a block. */
static void test_braces_in_sql(void **state)
{
    (void)state;
    static const char *const SQL[] = {
        "SELECT '}'",
        "SELECT '{\"stock\": 1}'::json",
        "SELECT '{1,2}'::int[]",
        "SELECT 'it''s }'",
        "SELECT E'\\'}'",
        "SELECT \"}\" FROM \"a\"\"}\"",
        "SELECT `}`",
        "DO $$ BEGIN RAISE '}'; END $$",
        "SELECT $a$ } $$ } $a$",
        "SELECT 1 /* } /* } */ } */",
        "SELECT 1 -- don't }\n",
        "SELECT $1, a$b",
        "SELECT 'C:\\', 1",
    };
    for (size_t i = 0; i < sizeof SQL / sizeof SQL[0]; i++) {
        struct spec spec;
        char error[SPEC_ERROR_SIZE], text[200];
        (void)snprintf(text, sizeof text,
                       "-- a comment }\nsession s step a { %s } # }\nstep b { SELECT '}' }", SQL[i]);
        if (!parse(text, &spec, error))
            fail_msg("%s: %s", SQL[i], error);
        assert_string_equal(spec.steps[0].block.sql, SQL[i]);
        assert_string_equal(spec.steps[1].block.sql, "SELECT '}'");
        spec_free(&spec);
    }
}

/* SQL that has no end in this way: the next brace ends the block, as in the isolation tester. */
static void test_a_block_with_an_open_quotation(void **state)
{
    (void)state;
    static const char *const SQL[] = {"SELECT 1 -- don't", "SELECT 'it", "SELECT $$", "SELECT 1 /* one"};
    for (size_t i = 0; i < sizeof SQL / sizeof SQL[0]; i++) {
        struct spec spec;
        char error[SPEC_ERROR_SIZE], text[200];
        (void)snprintf(text, sizeof text, "session s step a { %s }\nstep b { SELECT 2 }", SQL[i]);
        if (!parse(text, &spec, error))
            fail_msg("%s: %s", SQL[i], error);
        assert_int_equal(spec.step_count, 2);
        assert_string_equal(spec.steps[0].block.sql, SQL[i]);
        spec_free(&spec);
    }
}

static const struct {
    const char *text, *error;
} MISTAKES[] = {
    {"", "f.spec:1: the file ends where 'session'"},
    {"\nsetup SELECT", "f.spec:2: expected SQL in braces instead of 'SELECT'"},
    {"setup {\nSELECT 1;\n", "f.spec:1: the block that begins here does not end"},
    {"session s step a { SELECT 1 } }'", "f.spec:1: '}' ends no block"},
    {"session \"s\nstep a {}", "f.spec:1: a name in quotation marks does not end"},
    {"session s\nstep a {}\nstep a {}", "f.spec:3: a step 'a' exists already"},
    {"session s step a {}\nsession t step a {}", "f.spec:2: a step 'a' exists already"},
    {"session s step a {}\n\nsession s step b {}", "f.spec:3: a session 's' exists already"},
    {"session s\nsession t step b {}", "f.spec:2: expected a step of the session instead of 'session'"},
    {"session step {}", "f.spec:1: expected the name of the session instead of 'step'"},
    {"session s\nstep \"\" {}", "f.spec:2: a name in quotation marks is empty"},
    {"session s step a {}\npermutation a b", "f.spec:2: no session has a step 'b'"},
    {"session s step a {}\npermutation", "f.spec:2: the file ends where the name of a step"},
    {"session s step a {} step b {}\npermutation a(b) b",
     "step 'a' cannot wait for 'b', a step of its session"},
    {"session s step a {} session t step b {}\npermutation a(b notices 0) b", "has to be 1 or more"},
    {"session s step a {} session t step b {}\npermutation a(b notices) b", "expected a number of notices"},
    {"session s step a {} session t step b {}\npermutation a(b b", ", or ) instead of 'b'"},
    {"session s step a {}\npermutation a\nstep b {}", "f.spec:3: expected 'permutation' instead of 'step'"},
    {"session s step a {}\nsetup {}", "f.spec:2: expected 'step', 'session', 'teardown' or 'permutation'"},
    {"session s step a {}; ", "f.spec:1: ';' is not valid here"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof MISTAKES[0]; i++) {
        struct spec spec;
        char error[SPEC_ERROR_SIZE];
        if (parse(MISTAKES[i].text, &spec, error))
            fail_msg("accepted: %s", MISTAKES[i].text);
        if (!strstr(error, MISTAKES[i].error))
            fail_msg("'%s': said '%s', not '%s'", MISTAKES[i].text, error, MISTAKES[i].error);
        spec_free(&spec);
    }
}

/* Every prefix of a file ends in an error or in fewer parts, and nothing is read behind its end (with the sanitizers). */
static void test_files_that_end_early(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof WHOLE; length++) {
        struct spec spec;
        char error[SPEC_ERROR_SIZE], *text = strndup(WHOLE, length);
        assert_non_null(text);
        assert_true(parse(text, &spec, error) == (error[0] == 0));
        spec_free(&spec);
        free(text);
    }
}

static void test_too_many(void **state)
{
    (void)state;
    static char text[200000];
    struct spec spec;
    char error[SPEC_ERROR_SIZE];
    size_t used = (size_t)snprintf(text, sizeof text, "session s");
    for (int i = 0; i <= SPEC_STEPS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " step a%d {}", i);
    assert_false(parse(text, &spec, error));
    assert_non_null(strstr(error, "more than 256 steps"));
    spec_free(&spec);
    used = 0;
    for (int i = 0; i <= SPEC_SESSIONS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " session s%d step a%d {}", i, i);
    assert_false(parse(text, &spec, error));
    assert_non_null(strstr(error, "more than 24 sessions"));
    spec_free(&spec);
}

static void test_a_schedule(void **state)
{
    (void)state;
    struct spec spec;
    struct spec_permutation permutation;
    char error[SPEC_ERROR_SIZE];
    assert_true(parse(WHOLE, &spec, error));
    assert_true(spec_parse_permutation(&spec, "c b_2$ c", &permutation, error));
    assert_int_equal(permutation.count, 3);
    assert_int_equal(permutation.steps[1].step, 1);
    free(permutation.steps);
    assert_false(spec_parse_permutation(&spec, "c d", &permutation, error));
    assert_string_equal(error, "the schedule:1: no session has a step 'd'");
    assert_false(spec_parse_permutation(&spec, " ", &permutation, error));
    spec_free(&spec);
}

static void test_a_file_that_cannot_be_read(void **state)
{
    (void)state;
    struct spec spec;
    char error[SPEC_ERROR_SIZE];
    assert_false(spec_read("/nowhere/f.spec", &spec, error));
    assert_string_equal(error, "/nowhere/f.spec cannot be read: No such file or directory");
    spec_free(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_file),
        cmocka_unit_test(test_the_ends_of_a_block),
        cmocka_unit_test(test_braces_in_sql),
        cmocka_unit_test(test_a_block_with_an_open_quotation),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_files_that_end_early),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_a_schedule),
        cmocka_unit_test(test_a_file_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
