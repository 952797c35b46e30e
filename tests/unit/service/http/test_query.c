/* Query parameters: decoded strictly, bounded, and refused where two readers might read them differently. */
#include "tests/unit/unit.h"

#include "service/http/server.h"

static const struct {
    const char *query; /* NULL: the path had no "?" */
    int found;
    const char *value; /* of the parameter a */
} cases[] = {
    {NULL, 0, NULL},
    {"", 0, NULL},
    {"&", 0, NULL},
    {"&&&", 0, NULL},
    {"b=1", 0, NULL},
    {"aa=1", 0, NULL},
    {"A=1", 0, NULL},
    {"=1", 0, NULL},
    {"=a", 0, NULL},
    {"b=a=1", 0, NULL},
    {"%61=1", 0, NULL}, /* names are not decoded: nobody writes them so but to get past a check */
    {"a", 1, ""},
    {"a=", 1, ""},
    {"a&b", 1, ""},
    {"a=1", 1, "1"},
    {"&a=1&", 1, "1"},
    {"b=2&a=1", 1, "1"},
    {"a=1&b=2&c", 1, "1"},
    {"aa=2&a=1", 1, "1"},
    {"a=1=2", 1, "1=2"},
    {"a==", 1, "="},
    {"a=1?b=2", 1, "1?b=2"},
    {"a=1;b=2", 1, "1;b=2"},
    {"a=read-write", 1, "read-write"},
    /* escapes */
    {"a=%41", 1, "A"},
    {"a=%4a%4A%6f", 1, "JJo"},
    {"a=x%20y", 1, "x y"},
    {"a=x+y", 1, "x y"},
    {"a=%2B", 1, "+"},
    {"a=%26%3D", 1, "&="},
    {"a=%25", 1, "%"},
    {"a=%2541", 1, "%41"}, /* once, not twice */
    {"a=%c3%b6", 1, "\xc3\xb6"},
    {"a=\xc3\xb6", 1, "\xc3\xb6"},
    {"a=%ff", 1, "\xff"},
    {"a=%01%7f", 1, "\x01\x7f"},
    /* malformed */
    {"a=%", -1, NULL},
    {"a=%4", -1, NULL},
    {"a=%4&b=1", -1, NULL},
    {"a=%&b=1", -1, NULL},
    {"a=%&41", -1, NULL}, /* an escape does not reach into the next parameter */
    {"a=%g1", -1, NULL},
    {"a=%1g", -1, NULL},
    {"a=%%", -1, NULL},
    {"a=% 1", -1, NULL},
    {"a=%-1", -1, NULL},
    {"a=%+1", -1, NULL},
    {"a=%0x", -1, NULL},
    {"a=x%", -1, NULL},
    {"a=%\xc3\xb6", -1, NULL},
    /* NUL ends strings */
    {"a=%00", -1, NULL},
    {"a=x%00y", -1, NULL},
    {"a=1%00", -1, NULL},
    /* twice */
    {"a=1&a=2", -1, NULL},
    {"a=1&a=1", -1, NULL},
    {"a=1&b=2&a", -1, NULL},
    {"a&a", -1, NULL},
    {"a=1&a=%", -1, NULL},
    {"a=%&a=1", -1, NULL},
    /* bounds: the value may have 15 bytes here, decoded */
    {"a=123456789012345", 1, "123456789012345"},
    {"a=1234567890123456", -1, NULL},
    {"a=%31%32%33%34%35%36%37%38%39%30%31%32%33%34%35", 1, "123456789012345"},
    {"a=%31%32%33%34%35%36%37%38%39%30%31%32%33%34%35%36", -1, NULL},
    {"a=12345678901234567890123456789012345678901234567890", -1, NULL},
    {"b=1234567890123456789012345678901234567890&a=1", 1, "1"}, /* only the one that is asked for */
    {"b=%&a=1", 1, "1"},
};

static void test_cases(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char query[200], value[16 + 8];
        struct exchange x = {.query = NULL};
        if (cases[i].query) {
            strcpy(query, cases[i].query);
            x.query = query;
        }
        memset(value, '#', sizeof value);
        int found = http_query(&x, "a", value, 16);
        if (found != cases[i].found || (found == 1 && strcmp(value, cases[i].value) != 0))
            fail_msg("'%s': %d, '%.16s'", cases[i].query ? cases[i].query : "none", found, value);
        for (size_t j = 16; j < sizeof value; j++)
            assert_int_equal(value[j], '#');
        if (x.query)
            assert_string_equal(query, cases[i].query); /* it is read, not changed */
    }
}

static void test_every_escape(void **state)
{
    for (int c = 0; c < 256; c++)
        for (int form = 0; form < 2; form++) {
            char query[16], value[4];
            static const char *const digits[] = {"0123456789abcdef", "0123456789ABCDEF"};
            query[0] = 'a', query[1] = '=', query[2] = '%';
            query[3] = digits[form][c >> 4];
            query[4] = digits[form][c & 15];
            query[5] = '\0';
            struct exchange x = {.query = query};
            assert_int_equal(http_query(&x, "a", value, sizeof value), c ? 1 : -1);
            if (c) {
                assert_int_equal((unsigned char)value[0], c);
                assert_int_equal(value[1], '\0');
            }
        }
}

static void test_the_smallest_value(void **state)
{
    char empty[] = "a=", one[] = "a=1", value[1];
    assert_int_equal(http_query(&(struct exchange){.query = empty}, "a", value, sizeof value), 1);
    assert_string_equal(value, "");
    assert_int_equal(http_query(&(struct exchange){.query = one}, "a", value, sizeof value), -1);
}

static void test_names(void **state)
{
    static const char *const names[] = {"limit", "format", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *query;
        bool all_known;
    } queries[] = {
        {NULL, true},
        {"", true},
        {"&", true},
        {"limit=1", true},
        {"limit", true},
        {"limit=1&format=json", true},
        {"&&format=x&", true},
        {"limit=1&limit=2", true}, /* twice: refused where it is read */
        {"limits=1", false},
        {"limi=1", false},
        {"Limit=1", false},
        {"%6cimit=1", false},
        {"limit=1&x", false},
        {"x&limit=1", false},
        {"=1", false},
        {"=", false},
        {"limit=1&=", false},
        {"limit+=1", false},
        {"limitformat", false},
    };
    for (size_t i = 0; i < COUNT(queries); i++) {
        char query[80];
        struct exchange x = {.query = NULL};
        if (queries[i].query)
            x.query = strcpy(query, queries[i].query);
        if (http_query_names(&x, names) != queries[i].all_known)
            fail_msg("'%s'", queries[i].query);
    }
    char query[] = "a", empty[] = "&";
    assert_false(http_query_names(&(struct exchange){.query = query}, none));
    assert_true(http_query_names(&(struct exchange){.query = empty}, none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_every_escape),
        cmocka_unit_test(test_the_smallest_value),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
