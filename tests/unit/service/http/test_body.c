/* Reading what a client sends, strictly: bodies, path ids and query integers. An exchange is made by hand. */
#include "tests/unit/service/http/fake_exchange.h"

#define ORDER "{\"product_id\":1,\"quantity\":2"

/* The members of an order, as POST /orders reads them. */
struct read_order {
    int64_t product_id, quantity;
    const char *receiver_name, *receiver_mobile;
};

static json_t *read_body(struct fake_exchange *fake, struct read_order *to)
{
    *to = (struct read_order){-1, -1, "unread", "unread"};
    const struct member members[] = {
        {"product_id", BODY_INTEGER, true, &to->product_id, 1, INT64_MAX},
        {"quantity", BODY_INTEGER, true, &to->quantity, 1, 1000000},
        {"receiver_name", BODY_STRING, false, &to->receiver_name, 0, 200},
        {"receiver_mobile", BODY_STRING, false, &to->receiver_mobile, 3, 40},
        {0},
    };
    return api_body(&fake->x, members);
}

static void assert_taken_bytes(const char *body, size_t size, struct read_order *ret_order)
{
    struct fake_exchange fake = {.service = NULL};
    fake_request(&fake, "POST", "/orders", body, size);
    AUTO_JSON json = read_body(&fake, ret_order);
    if (!json)
        fail_msg("'%s' is refused: %.*s", body, (int)fake.x.reply_size, fake.x.reply);
    assert_int_equal(fake.x.status, 0);
    fake_free(&fake);
    /* Strings live in the JSON, which ends here. */
    ret_order->receiver_name = ret_order->receiver_mobile = NULL;
}

static void assert_taken(const char *body, int64_t product_id, int64_t quantity)
{
    struct read_order order;
    assert_taken_bytes(body, strlen(body), &order);
    assert_true(order.product_id == product_id);
    assert_true(order.quantity == quantity);
}

static void assert_refused_bytes(const char *body, size_t size, int status)
{
    struct fake_exchange fake = {.service = NULL};
    struct read_order order;
    fake_request(&fake, "POST", "/orders", body, size);
    AUTO_JSON json = read_body(&fake, &order);
    char what[200];
    snprintf(what, sizeof what, "%.150s", body ? body : "no body");
    if (json)
        fail_msg("%s: taken", what);
    assert_problem(&fake, status, status == 422 ? "invalid-order" : "bad-request", what);
    fake_free(&fake);
}

static void assert_refused(const char *body, int status)
{
    assert_refused_bytes(body, strlen(body), status);
}

/* BODIES ends with NULL. */
static void assert_all_refused(const char *const *bodies)
{
    for (; *bodies; bodies++)
        assert_refused(*bodies, 400);
}

/* Each of VALUES (ended by NULL) is refused, as the product's id and as the quantity. */
static void assert_integers_refused(const char *const *values, int status)
{
    for (; *values; values++) {
        char body[200];
        snprintf(body, sizeof body, "{\"product_id\":%s,\"quantity\":2}", *values);
        assert_refused(body, status);
        snprintf(body, sizeof body, "{\"product_id\":1,\"quantity\":%s}", *values);
        assert_refused(body, status);
    }
}

/* ---- bodies ----------------------------------------------------------------------------------------------- */

static void test_good_bodies(void **state)
{
    assert_taken(ORDER "}", 1, 2);
    assert_taken(" \t\r\n" ORDER " } \n", 1, 2);
    assert_taken("{\"quantity\":1000000,\"product_id\":9223372036854775807}", INT64_MAX, 1000000);
    assert_taken("{\"product_id\":1,\"quantity\":1}", 1, 1);
    assert_taken("{\"\\u0070roduct_id\":3,\"quantity\":4}", 3, 4); /* an escape in a name is the same name */
}

static void test_strings(void **state)
{
    struct fake_exchange fake = {.service = NULL};
    struct read_order order;
    static const char body[] = ORDER
        ",\"receiver_name\":\"J\\u00f6rg \\ud83d\\ude00 \xc3\xb6\\n\",\"receiver_mobile\":\"123\"}";
    fake_request(&fake, "POST", "/orders", body, strlen(body));
    AUTO_JSON json = read_body(&fake, &order);
    assert_non_null(json);
    assert_string_equal(order.receiver_name, "J\xc3\xb6rg \xf0\x9f\x98\x80 \xc3\xb6\n");
    assert_string_equal(order.receiver_mobile, "123");
    fake_free(&fake);
}

static void test_optional_members(void **state)
{
    static const char *const bodies[] = {ORDER "}",
                                         ORDER ",\"receiver_name\":null,\"receiver_mobile\":null}"};
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct fake_exchange fake = {.service = NULL};
        struct read_order order;
        fake_request(&fake, "POST", "/orders", bodies[i], strlen(bodies[i]));
        AUTO_JSON json = read_body(&fake, &order);
        assert_non_null(json);
        assert_string_equal(order.receiver_name, "unread"); /* left as it was */
        assert_string_equal(order.receiver_mobile, "unread");
        fake_free(&fake);
    }
    int64_t think_ms = 77;
    struct fake_exchange fake = {.service = NULL};
    const struct member members[] = {{"think_ms", BODY_INTEGER, false, &think_ms, 0, 100}, {0}};
    fake_request(&fake, "PUT", "/strategy", "{}", 2);
    json_t *json = api_body(&fake.x, members);
    assert_non_null(json);
    assert_true(think_ms == 77);
    json_decref(json);
    fake_free(&fake);
    /* "A member that must be an integer refuses … null", an optional one, too. */
    fake_request(&fake, "PUT", "/strategy", "{\"think_ms\":null}", 17);
    assert_null(api_body(&fake.x, members));
    assert_problem(&fake, 400, "bad-request", "null");
    fake_free(&fake);
}

static void test_booleans(void **state)
{
    static const struct {
        const char *body;
        bool taken, value;
    } cases[] = {{"{}", true, false},
                 {"{\"every_step\":true}", true, true},
                 {"{\"every_step\":false}", true, false},
                 {"{\"every_step\":1}", false, false},
                 {"{\"every_step\":\"true\"}", false, false},
                 {"{\"every_step\":null}", false, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool every_step = false;
        struct fake_exchange fake = {.service = NULL};
        const struct member members[] = {{"every_step", BODY_BOOLEAN, false, &every_step, 0, 0}, {0}};
        fake_request(&fake, "POST", "/steps", cases[i].body, strlen(cases[i].body));
        json_t *json = api_body(&fake.x, members);
        assert_int_equal(json != NULL, cases[i].taken);
        assert_int_equal(every_step, cases[i].value);
        if (!json)
            assert_problem(&fake, 400, "bad-request", cases[i].body);
        json_decref(json);
        fake_free(&fake);
    }
}

static void test_not_json(void **state)
{
    /* clang-format off */
    static const char *const bodies[] = {
        "", " ", "\n", "{", "}", "{}x", "[", "]", "nonsense", "\"", "'", "{product_id:1}", "{'product_id':1}",
        "{\"product_id\":1,}", "{,}", "{\"product_id\"}", "{\"product_id\":}", "{\"product_id\" 1}", "{:1}",
        "{1:1}", ORDER "}{}", ORDER "} x", ORDER "}}", ORDER, ORDER ",}", "{\"product_id\":01,\"quantity\":2}",
        "{\"product_id\":+1,\"quantity\":2}", "{\"product_id\":0x1,\"quantity\":2}",
        "{\"product_id\":1.,\"quantity\":2}", "{\"product_id\":.5,\"quantity\":2}",
        "{\"product_id\":1e,\"quantity\":2}", "{\"product_id\":NaN,\"quantity\":2}",
        "{\"product_id\":Infinity,\"quantity\":2}", "{\"product_id\":-,\"quantity\":2}",
        "{\"product_id\":True,\"quantity\":2}", ORDER ",\"receiver_name\":\"\\x\"}",
        ORDER ",\"receiver_name\":\"\\u12\"}", ORDER ",\"receiver_name\":\"\n\"}",
        ORDER ",\"receiver_name\":\"\x01\"}", ORDER ",\"receiver_name\":\"open}", ORDER "/* comment */}",
        ORDER "} // comment",
        "\xef\xbb\xbf" ORDER "}", /* a byte order mark */
        /* not UTF-8: a lone byte, cut short, overlong, a surrogate, beyond Unicode */
        ORDER ",\"receiver_name\":\"\xff\"}", ORDER ",\"receiver_name\":\"\xc3\"}",
        ORDER ",\"receiver_name\":\"\xc0\xaf\"}", ORDER ",\"receiver_name\":\"\xed\xa0\x80\"}",
        ORDER ",\"receiver_name\":\"\xf5\x80\x80\x80\"}", "\xff\xfe{\x01}",
        ORDER ",\"receiver_name\":\"\\ud800\"}", ORDER ",\"receiver_name\":\"\\udc00\"}",
        ORDER ",\"receiver_name\":\"\\ud800\\u0041\"}", NULL};
    /* clang-format on */
    assert_all_refused(bodies);
    struct fake_exchange fake = {.service = NULL};
    struct read_order order;
    fake_request(&fake, "POST", "/orders", NULL, 0); /* no body at all */
    assert_null(read_body(&fake, &order));
    assert_problem(&fake, 400, "bad-request", "no body");
    fake_free(&fake);
}

static void test_not_an_object(void **state)
{
    /* clang-format off */
    static const char *const bodies[] = {
        "[]", "[" ORDER "}]", "null", "true", "1", "\"a\"", "1.5", "[[[[]]]]", NULL};
    /* clang-format on */
    assert_all_refused(bodies);
}

static void test_missing_and_unknown_members(void **state)
{
    /* clang-format off */
    static const char *const bodies[] = {
        "{}", "{\"product_id\":1}", "{\"quantity\":1}", "{\"receiver_name\":\"x\"}", ORDER ",\"quantity \":1}",
        ORDER ",\"Quantity\":1}", ORDER ",\"\":1}", ORDER ",\"price\":\"0.01\"}", ORDER ",\"price\":null}",
        ORDER ",\"__proto__\":{}}", "{\"product_i\":1,\"quantity\":1}", "{\"product_idd\":1,\"quantity\":1}", NULL};
    /* clang-format on */
    assert_all_refused(bodies);
    /* A name that is long, and is cut for the answer, perhaps inside a character. */
    for (size_t length = 50; length < 70; length++) {
        char body[400] = ORDER ",\"";
        for (size_t i = 0; i < length; i++)
            strcat(body, i == length - 1 ? "x\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80" : "n");
        strcat(body, "\":1}");
        assert_refused(body, 400);
    }
}

static void test_duplicate_members(void **state)
{
    /* clang-format off */
    static const char *const bodies[] = {
        ORDER ",\"quantity\":2}", ORDER ",\"quantity\":3}", ORDER ",\"quantity\":null}",
        ORDER ",\"\\u0071uantity\":2}", ORDER ",\"receiver_name\":\"a\",\"receiver_name\":\"a\"}",
        ORDER ",\"x\":{\"a\":1,\"a\":1}}", NULL};
    /* clang-format on */
    assert_all_refused(bodies);
}

static void test_types(void **state)
{
    static const char *const no_integers[] = {"1.5",  "1.0",       "1e0",   "1E2",    "-0.0", "\"1\"",
                                              "\"\"", "true",      "false", "null",   "[]",   "[1]",
                                              "{}",   "{\"a\":1}", "1e400", "-1e400", NULL};
    static const char *const no_strings[] = {"1",  "1.5",     "true", "false",
                                             "[]", "[\"a\"]", "{}",   "{\"a\":\"b\"}"};
    char body[200];
    assert_integers_refused(no_integers, 400);
    for (size_t i = 0; i < COUNT(no_strings); i++) {
        snprintf(body, sizeof body, ORDER ",\"receiver_name\":%s}", no_strings[i]);
        assert_refused(body, 400);
    }
}

static void test_ranges(void **state)
{
    static const char *const out[] = {"0", "-1", "-0", "-9223372036854775808", NULL};
    static const char *const beyond[] = {"9223372036854775808", "-9223372036854775809",
                                         "18446744073709551617",
                                         "100000000000000000000000000000000000000000000000000", NULL};
    assert_integers_refused(out, 422);
    assert_refused("{\"product_id\":1,\"quantity\":1000001}", 422);
    assert_refused("{\"product_id\":1,\"quantity\":9223372036854775807}", 422);
    assert_refused("{\"product_id\":1,\"quantity\":4294967297}", 422); /* not 1 of 32 bits */
    assert_integers_refused(beyond, 400); /* more than 64 bits: no integer that could be read */
}

/* A string's length is counted in characters, as the schema and the document count it. */
static void test_lengths_of_strings(void **state)
{
    static const char *const characters[] = {"x",       "\xc3\xb6",      "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                             "\\u00f6", "\\ud83d\\ude00"};
    for (size_t i = 0; i < COUNT(characters); i++)
        for (int length = 0; length <= 202; length += length < 198 ? 66 : 1) {
            char body[200 + 13 * 202] = ORDER ",\"receiver_name\":\"";
            for (int j = 0; j < length; j++)
                strcat(body, characters[i]);
            strcat(body, "\"}");
            struct read_order order;
            if (length <= 200)
                assert_taken_bytes(body, strlen(body), &order);
            else
                assert_refused(body, 422);
        }
    assert_refused(ORDER ",\"receiver_mobile\":\"\"}", 422); /* from 3 to 40 here */
    assert_refused(ORDER ",\"receiver_mobile\":\"12\"}", 422);
    assert_taken(ORDER ",\"receiver_mobile\":\"123\"}", 1, 2);
    assert_taken(ORDER ",\"receiver_mobile\":\"1234567890123456789012345678901234567890\"}", 1, 2);
    assert_refused(ORDER ",\"receiver_mobile\":\"12345678901234567890123456789012345678901\"}", 422);
}

/* NUL ends strings below us, so it is nowhere: not in a value, not in a name, not in or after the text. */
static void test_nul(void **state)
{
    assert_refused(ORDER ",\"receiver_name\":\"a\\u0000b\"}", 400);
    assert_refused(ORDER ",\"receiver_name\\u0000x\":\"b\"}", 400);
    assert_refused(ORDER ",\"receiver_name\\u0000\":\"b\"}", 400);
    static const char inside[] = ORDER "\0}", after[] = ORDER "}\0",
                      in_string[] = ORDER ",\"receiver_name\":\"a\0b\"}", then_more[] = ORDER "}\0{}";
    assert_refused_bytes(inside, sizeof inside - 1, 400);
    assert_refused_bytes(after, sizeof after - 1, 400);
    assert_refused_bytes(in_string, sizeof in_string - 1, 400);
    assert_refused_bytes(then_more, sizeof then_more - 1, 400);
    assert_refused_bytes("\0", 1, 400);
}

/* However deep, it is refused and does not exhaust the stack. */
static void test_nesting(void **state)
{
    static char body[64 * 1024];
    static const char *const opens[] = {"[", "{\"a\":"};
    for (size_t i = 0; i < COUNT(opens); i++)
        for (size_t depth = 1; depth * strlen(opens[i]) < sizeof body - 100; depth = depth * 3 + 1) {
            size_t used = 0;
            for (size_t j = 0; j < depth; j++)
                used += (size_t)sprintf(body + used, "%s", opens[i]);
            assert_refused_bytes(body, used, 400); /* not closed */
            if (depth < 20000 && i == 0) {
                memset(body + used, ']', depth);
                assert_refused_bytes(body, used + depth, 400);
                char *in_member = malloc(2 * depth + 100);
                assert_non_null(in_member);
                int size = sprintf(in_member, ORDER ",\"receiver_name\":%.*s}", (int)(2 * depth), body);
                assert_refused_bytes(in_member, (size_t)size, 400);
                free(in_member);
            }
        }
}

static void test_the_largest_body(void **state)
{
    static char body[HTTP_BODY_MAX];
    int used = sprintf(body, ORDER);
    memset(body + used, ' ', sizeof body - (size_t)used - 1);
    body[sizeof body - 1] = '}';
    struct read_order order;
    assert_taken_bytes(body, sizeof body, &order);
    assert_true(order.quantity == 2);
    memset(body, '\xff', sizeof body);
    assert_refused_bytes(body, sizeof body, 400);
    memset(body, '9', sizeof body);
    assert_refused_bytes(body, sizeof body, 400);
    memset(body, '"', sizeof body);
    assert_refused_bytes(body, sizeof body, 400);
}

/* A body that is cut anywhere is refused, and never read beyond its end (the sanitizers watch). */
static void test_every_prefix(void **state)
{
    static const char whole[] = ORDER
        ",\"receiver_name\":\"\\u00f6\xe2\x82\xac\",\"receiver_mobile\":\"12345\"}";
    struct read_order order;
    assert_taken_bytes(whole, strlen(whole), &order);
    for (size_t size = 0; size < strlen(whole); size++)
        assert_refused_bytes(whole, size, 400);
}

/* ---- path ids --------------------------------------------------------------------------------------------- */

static void test_path_ids(void **state)
{
    /* clang-format off */
    static const struct {
        const char *text;
        int64_t id; /* 0: it is none */
    } ids[] = {
        {"1", 1}, {"42", 42}, {"9223372036854775807", INT64_MAX}, {"9223372036854775808", 0},
        {"99999999999999999999", 0}, {"0", 0}, {"-1", 0}, {"+1", 0}, {"01", 0}, {"00", 0}, {"1.0", 0},
        {"1e1", 0}, {"0x1", 0}, {"a", 0}, {"1a", 0}, {" 1", 0}, {"1 ", 0}, {"%31", 0}, {"1%00", 0}, {"", 0},
        {"\xd9\xa1", 0}, {"\xff", 0}, {"'", 0}, {"--", 0}};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct fake_exchange fake = {.service = NULL};
        fake_request(&fake, "GET", "/orders/x", NULL, 0);
        strcpy(fake.x.argument, ids[i].text);
        int64_t id = -1;
        if (api_path_id(&fake.x, PROBLEM_NO_SUCH_ORDER, &id)) {
            assert_true(id == ids[i].id && id > 0);
            assert_int_equal(fake.x.status, 0);
        } else {
            if (ids[i].id)
                fail_msg("'%s' is refused", ids[i].text);
            assert_problem(&fake, 404, "no-such-order", ids[i].text);
        }
        fake_free(&fake);
    }
}

/* ---- query integers --------------------------------------------------------------------------------------- */

static void test_query_integers(void **state)
{
    /* clang-format off */
    static const struct {
        const char *query;
        int64_t value; /* PRESET where it is absent, BAD where it is refused */
    } queries[] = {
#define PRESET 5
#define BAD (-1000)
        {NULL, PRESET}, {"", PRESET}, {"other=1", PRESET}, {"n=-3", -3}, {"n=0", 0}, {"n=100", 100},
        {"n=%31%30", 10}, {"n=-4", BAD}, {"n=101", BAD}, {"n=", BAD}, {"n", BAD}, {"n=-", BAD}, {"n=%2B1", BAD},
        {"n=+1", BAD}, {"n=%201", BAD}, {"n=1%20", BAD}, {"n=1+", BAD}, {"n=1x", BAD}, {"n=x", BAD},
        {"n=0x10", BAD}, {"n=1e1", BAD}, {"n=1.0", BAD}, {"n=--1", BAD}, {"n=- 1", BAD},
        {"n=99999999999999999999", BAD}, {"n=-99999999999999999999", BAD}, {"n=9223372036854775808", BAD},
        {"n=1&n=1", BAD}, {"n=1%00", BAD}, {"n=%", BAD}, {"n=null", BAD},
        {"n=00000000000000000000000000000000000000000000000000001", BAD}};
    /* clang-format on */
    for (size_t i = 0; i < COUNT(queries); i++) {
        struct fake_exchange fake = {.service = NULL};
        fake_request(&fake, "GET", "/orders", NULL, 0);
        fake.x.query = queries[i].query ? strdup(queries[i].query) : NULL;
        int64_t value = -1;
        bool taken = api_query_integer(&fake.x, "n", PRESET, -3, 100, &value);
        const char *what = queries[i].query ? queries[i].query : "none";
        if (taken != (queries[i].value != BAD) || (taken && value != queries[i].value))
            fail_msg("'%s': %s, %lld", what, taken ? "taken" : "refused", (long long)value);
        if (!taken)
            assert_problem(&fake, 400, "bad-request", what);
        else
            assert_int_equal(fake.x.status, 0);
        fake_free(&fake);
    }
}

static void test_the_list_of_strategies(void **state)
{
    char expected[8192] = "";
    for (size_t i = 0; i < strategy_count; i++) {
        strcat(expected, i ? ", " : "");
        strcat(expected, strategies[i].name);
    }
    assert_string_equal(api_strategy_names(), expected); /* whole, not cut */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_bodies),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_optional_members),
        cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_not_an_object),
        cmocka_unit_test(test_missing_and_unknown_members),
        cmocka_unit_test(test_duplicate_members),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_lengths_of_strings),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_the_largest_body),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_path_ids),
        cmocka_unit_test(test_query_integers),
        cmocka_unit_test(test_the_list_of_strategies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
