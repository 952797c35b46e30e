/* The description of a service: lines of members, placeholders, defaults, and what is refused in which sentence. */
#include "tests/unit/unit.h"

#include "loadtest/cli/complain.h"
#include "loadtest/own/description.h"
#include "loadtest/own/json_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[1000];

/* In the place of the one that prints. */
void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
}

static const char NEEDED[] =
    "\"reset\": [\"DELETE FROM o\", \"UPDATE p SET n = {stock}\"],\n"
    "\"request\": {\"url\": \"http://127.0.0.1:8080/orders\", \"body\": {\"id\": \"{request}\"}},\n"
    "\"stock\": \"SELECT n FROM p\", \"sold\": \"SELECT count(*) FROM o\"";

/* Reads a file with TEXT. */
static bool read_description(const char *text, struct shop_description *ret_description)
{
    char path[] = "/tmp/shop-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    said[0] = 0;
    bool ok = shop_description_read(path, ret_description);
    unlink(path);
    return ok;
}

static bool read_with(const char *more, struct shop_description *ret_description)
{
    char text[2000];
    snprintf(text, sizeof text, "{\n%s%s}", more, NEEDED);
    return read_description(text, ret_description);
}

static void refuses(const char *more, const char *line, const char *what)
{
    struct shop_description description;
    assert_false(read_with(more, &description));
    if (!strstr(said, line) || !strstr(said, what))
        fail_msg("said '%s', not '%s' and '%s'", said, line, what);
}

static void test_lines_of_members(void **state)
{
    static const char TEXT[] =
        "{ \"a\": \"x\\\"}\\n{\",\n \"b\": [1,\n  {\"c\": [[], {}],\n\"d\": null}, true],\n\"e\": -1.5e3}";
    assert_int_equal(json_line_of(TEXT, ""), 1);
    assert_int_equal(json_line_of(TEXT, "a"), 1);
    assert_int_equal(json_line_of(TEXT, "b"), 2);
    assert_int_equal(json_line_of(TEXT, "b[1]"), 3);
    assert_int_equal(json_line_of(TEXT, "b[1].c[1]"), 3);
    assert_int_equal(json_line_of(TEXT, "b[1].d"), 4);
    assert_int_equal(json_line_of(TEXT, "b[2]"), 4);
    assert_int_equal(json_line_of(TEXT, "e"), 5);
    assert_int_equal(json_line_of(TEXT, "b[7]"), 2);
    assert_int_equal(json_line_of(TEXT, "f.g"), 1);
}

static void test_defaults(void **state)
{
    struct shop_description description;
    assert_true(
        read_with("\"//\": \"a comment\", \"database\": \"postgresql://a@127.0.0.1/b\",", &description));
    assert_null(description.start[0]);
    assert_null(description.ready);
    assert_string_equal(description.request.method, "POST");
    assert_string_equal(description.request.body, "{\"id\":\"{request}\"}");
    assert_int_equal(description.units, 1);
    assert_int_equal(description.reset_count, 2);
    assert_false(description.uses_redis);
    assert_true(description.all_2xx_sold);
    assert_int_equal(description.answers[SHOP_REFUSED].count, 1);
    assert_int_equal(description.answers[SHOP_REFUSED].rule[0].status, 409);
    assert_null(description.settled);
    shop_description_free(&description);
}

static void test_everything(void **state)
{
    struct shop_description description;
    assert_true(
        read_with("\"start\": [\"run\", \"--port={port}\"], \"env\": {\"R\": \"{redis}\", \"// R\": \"x\"},\n"
                  "\"ready\": \"http://127.0.0.1:{port}/ok\", \"units\": 3, \"sold_out\": [409, 410],\n"
                  "\"invariant\": [\"SELECT true\"], \"timeout_ms\": 100, \"start_timeout_ms\": 200,",
                  &description));
    assert_string_equal(description.start[1], "--port={port}");
    assert_null(description.start[2]);
    assert_int_equal(description.env.count, 1);
    assert_true(description.uses_redis);
    assert_int_equal(description.units, 3);
    assert_int_equal(description.answers[SHOP_REFUSED].count, 2);
    assert_int_equal(description.answers[SHOP_REFUSED].rule[1].status, 410);
    assert_int_equal(description.invariant_count, 1);
    assert_int_equal(description.timeout_ms, 100);
    assert_int_equal(description.start_timeout_ms, 200);
    shop_description_free(&description);
}

static void test_byte_order_mark(void **state)
{
    struct shop_description description;
    char text[2000];
    snprintf(text, sizeof text, "\xef\xbb\xbf{\"start\": [\"x\"], %s}", NEEDED);
    assert_true(read_description(text, &description));
    assert_string_equal(description.start[0], "x");
    shop_description_free(&description);
}

static void test_answers(void **state)
{
    struct shop_description description;
    assert_true(read_with(
        "\"start\": [\"x\"], \"settled\": \"SELECT true\", \"settle_timeout_ms\": 50, \"answers\": {\n"
        "\"sold\": [201, {\"status\": 303, \"location\": \"/thanks\", \"// x\": 1}], \"accepted\": [202],\n"
        "\"refused\": [{\"status\": 200, \"has\": \"/errors\", \"lacks\": \"/id\", \"text\": \"sold\"}]},",
        &description));
    assert_false(description.all_2xx_sold);
    assert_int_equal(description.answers[SHOP_SOLD].count, 2);
    assert_string_equal(description.answers[SHOP_SOLD].rule[1].location, "/thanks");
    assert_int_equal(description.answers[SHOP_ACCEPTED].rule[0].status, 202);
    const struct shop_rule *refused = &description.answers[SHOP_REFUSED].rule[0];
    assert_int_equal(description.answers[SHOP_REFUSED].count, 1);
    assert_string_equal(refused->has, "/errors");
    assert_string_equal(refused->lacks, "/id");
    assert_string_equal(refused->text, "sold");
    assert_string_equal(description.settled, "SELECT true");
    assert_int_equal(description.settle_timeout_ms, 50);
    shop_description_free(&description);
}

static void test_wrong_answers(void **state)
{
#define ANSWERS "\"start\": [\"x\"], \"answers\": "
    refuses(ANSWERS "[201],", "\"answers\" is an array", "Write an object");
    refuses(ANSWERS "{\n\"solt\": [201]},", ":3: \"answers.solt\" is unknown", "refused accepted sold");
    refuses(ANSWERS "{\"sold\": 201},", "\"answers.sold\"", "such as [201]");
    refuses(ANSWERS "{\"sold\": []},", "\"answers.sold\" is empty", "no answer means sold");
    refuses(ANSWERS "{\"sold\": [201,\n199]},", ":3: \"answers.sold[1]\"", "200 to 599");
    refuses(ANSWERS "{\"sold\": [{\"has\": \"/a\"}]},", "\"answers.sold[0]\"", "200 to 599");
    refuses(ANSWERS "{\"sold\": [{\"status\": 200}]},", "\"answers.sold[0]\" has a status alone",
            "Write the number");
    refuses(ANSWERS "{\"sold\": [{\"status\": 200,\n\"has\": \"a\"}]},", ":3: \"answers.sold[0].has\"",
            "JSON Pointer");
    refuses(ANSWERS "{\"sold\": [{\"status\": 200, \"text\": 1}]},", "\"answers.sold[0].text\" is a number",
            "string");
    refuses(ANSWERS "{\"sold\": [{\"status\": 200, \"hass\": \"/a\"}]},",
            "\"answers.sold[0].hass\" is unknown", "status has lacks location text");
    refuses(ANSWERS "{\"sold\": [200], \"refused\": [200]},", "\"answers.sold[0]\" is 200",
            "\"refused\" as well");
    refuses(ANSWERS "{\"accepted\": [202]},", "\"answers.accepted\" needs \"settled\"", "Add SQL");
    refuses("\"sold_out\": [400], " ANSWERS "{\"refused\": [409]},", "\"sold_out\"", "Remove one");
}

static void test_mistakes(void **state)
{
    struct shop_description description;
    refuses("", ":1:", "neither \"start\" nor \"database\"");
    refuses("\"databse\": \"x\",", ":2: \"databse\" is unknown", "valid: $schema start");
    refuses("\n\n\"start\": \"node x\",", ":4: \"start\" is a string", "array of words");
    refuses("\"start\": [\"x\", 7],", ":2: \"start[1]\" is a number", "Write a string");
    refuses("\"start\": [],", ":2: \"start\" has 0 items", "valid: 1 to 64");
    refuses("\"start\": [\"x\", \"{request}\"],", "has {request}", "valid: {port}");
    refuses("\"start\": [\"x\"], \"ready\": \"127.0.0.1\",", "\"ready\"", "http://HOST:PORT/PATH");
    refuses("\"start\": [\"x\"], \"ready\": \"http://127.0.0.1:{prot}/\",", "has {prot}", "{port}");
    refuses("\"start\": [\"x\"], \"sold_out\": [200],", "\"sold_out[0]\"", "300 to 599");
    refuses("\"start\": [\"x\"], \"units\": 0,", "\"units\"", "from 1 to");
    refuses("\"start\": [\"x\"], \"timeout_ms\": 0.5,", "\"timeout_ms\"", "whole number");
    refuses("\"start\": [\"x\"], \"env\": {\n\"A\": 1},", ":3: \"env.A\" is a number", "Write a string");
    refuses("\"start\": [\"x\"], \"schema\": \"nowhere.sql\",", "\"schema\"", "cannot be read");
    refuses("\"database\": \"mysql\",", "\"database\"", "postgresql://");
    refuses("\"redis\": \"http://x\", \"start\": [\"x\"],", "\"redis\"", "redis://");
    refuses("\"database\": \"postgresql://a@127.0.0.1/b\", \"env\": {\"A\": \"b\"},", "\"env\"",
            "Add \"start\"");
    assert_false(read_description("{\n\"a\": 1,\n\"a\": 2}", &description));
    assert_non_null(strstr(said, ":3: the file is not JSON"));
    assert_false(read_description("[]", &description));
    assert_non_null(strstr(said, "is an array. Write an object"));
    assert_false(read_description("{}", &description));
    assert_non_null(strstr(said, "\"reset\" is missing"));
    assert_false(read_description("", &description));
    assert_false(shop_description_read("/nowhere/shop.json", &description));
    assert_non_null(strstr(said, "cannot read /nowhere/shop.json"));
}

static void expands(const char *text, const char *expected)
{
    const struct shop_values values = {.postgres = "postgresql://ann:pw@127.0.0.1:5433/shop",
                                       .redis = NULL,
                                       .port = 80,
                                       .instance = 2,
                                       .stock = -1,
                                       .request = 7};
    char *got = shop_expand(text, &values);
    assert_string_equal(got, expected);
    free(got);
}

static void test_placeholders(void **state)
{
    expands("", "");
    expands("{port}-{instance}-{request}", "80-2-7");
    expands("{{port}} {stock} {redis} {\"a\":{}} {Port} {port",
            "{80} {stock} {redis} {\"a\":{}} {Port} {port");
    expands("jdbc:postgresql://{pghost}:{pgport}/{pgdatabase}?user={pguser}&password={pgpassword}",
            "jdbc:postgresql://127.0.0.1:5433/shop?user=ann&password=pw");
    expands("{postgres}", "postgresql://ann:pw@127.0.0.1:5433/shop");
    assert_true(shop_mentions("{{port}", "port"));
    assert_false(shop_mentions("{ports} {port", "port"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_members), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),       cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_placeholders),     cmocka_unit_test(test_answers),
        cmocka_unit_test(test_wrong_answers),    cmocka_unit_test(test_byte_order_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
