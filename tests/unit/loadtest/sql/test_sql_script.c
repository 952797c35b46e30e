/* Where statements end in a file of SQL, and which lines are the rows of COPY. */
#include "tests/unit/unit.h"

#include "loadtest/sql/sql_script.h"

#include <stdio.h>

/* Writes the parts of TEXT, each in brackets with its line before it, and the rows behind it. */
static void splits(const char *text, const char *expected)
{
    struct sql_script script = {.at = text, .line = 1};
    struct sql_part part;
    char got[2000] = "";
    size_t length = 0;
    while (sql_script_next(&script, &part)) {
        length += (size_t)snprintf(got + length, sizeof got - length, "%d%s[%.*s]", part.line,
                                   part.is_command ? "!" : "", (int)part.length, part.text);
        if (part.data)
            length += (size_t)snprintf(got + length, sizeof got - length, "<%.*s>", (int)part.data_length,
                                       part.data);
    }
    assert_string_equal(got, expected);
}

static void test_statements(void **state)
{
    splits("", "");
    splits(" ; -- x\n;", "");
    splits("SELECT 1", "1[SELECT 1]");
    splits("a;b ;\n\nc;", "1[a]1[b ]3[c]");
    splits("-- it's;\na /* ; /* ; */ ' */;b", "2[a /* ; /* ; */ ' */]2[b]");
    splits("a 'x;''y;' \"z;\" ; b", "1[a 'x;''y;' \"z;\" ]1[b]");
    splits("a 'x\\'; b", "1[a 'x\\']1[b]");
    splits("a E'x\\';' ; b", "1[a E'x\\';' ]1[b]");
    splits("a 'open;\nb", "1[a 'open;\nb]");
    splits("a $$x;$y$;$$; b $t$ $$;\n $t$; c $1; d", "1[a $$x;$y$;$$]1[b $t$ $$;\n $t$]2[c $1]2[d]");
    splits("CREATE RULE r AS ON INSERT TO t DO (a; b); c",
           "1[CREATE RULE r AS ON INSERT TO t DO (a; b)]1[c]");
    splits("CREATE TABLE function (begin int); CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC a; END; b",
           "1[CREATE TABLE function (begin int)]1[CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC a; END]1[b]");
    splits("BEGIN; a; END; b", "1[BEGIN]1[a]1[END]1[b]");
    splits(
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END; b",
        "1[CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END]1[b]");
}

static void test_commands(void **state)
{
    splits("\\restrict abc\na;\n\\unrestrict abc\n", "1![\\restrict abc]2[a]3![\\unrestrict abc]");
    splits("a\n\\connect b\n;c", "1[a\n\\connect b\n]3[c]");
}

static void test_rows(void **state)
{
    splits("COPY t (a) FROM stdin;\n1\n'\n\\N;\n\\.\n\nb;", "1[COPY t (a) FROM stdin]<1\n'\n\\N;\n>7[b]");
    splits("copy t from STDIN with (format csv) ;\n\\.\nb", "1[copy t from STDIN with (format csv) ]<>3[b]");
    splits("COPY t FROM stdin;\n1", "1[COPY t FROM stdin]<1>");
    splits("COPY t FROM stdin", "1[COPY t FROM stdin]<>");
    splits("SELECT a FROM stdin;\nb", "1[SELECT a FROM stdin]2[b]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
