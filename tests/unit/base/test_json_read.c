/* Reading JSON while memory runs out, at every call for some: what comes out is the whole of the text or nothing, whatever is
 * asked for next, and whether there is memory again or not. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static long calls, first_to_fail, last_to_fail; /* counted from 1; 0: none */

static void *scarce_malloc(size_t size)
{
    calls++;
    return calls >= first_to_fail && calls <= last_to_fail ? NULL : malloc(size);
}

#define malloc scarce_malloc
#include "base/json.c" /* NOLINT(bugprone-suspicious-include): its own calls for memory are to fail */
#undef malloc

enum { TEXT_ROOM = 4 * SHORT_TEXT, EACH_CALL_UP_TO = 700, FEW = 60 };

static char text[TEXT_ROOM + 1];
static size_t length;

static void add(const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        size_t size = strlen(what);
        assert_true(length + size <= TEXT_ROOM);
        memcpy(text + length, what, size);
        length += size;
    }
    text[length] = '\0';
}

static void begin(const char *what)
{
    length = 0;
    add(what, 1);
}

static void read_with(const json_t *good, long first, long last)
{
    json_error_t error = {.line = 0};
    calls = 0;
    first_to_fail = first;
    last_to_fail = last;
    json_t *json = json_read(text, length, 0, &error);
    bool failed = first > 0 && calls >= first;
    first_to_fail = last_to_fail = 0;
    if (failed && (json || json_error_code(&error) != json_error_out_of_memory))
        fail_msg("%.40s: calls %ld to %ld fail, and it is read: %s", text, first, last, error.text);
    if (!failed && !json_equal(json, good))
        fail_msg("%.40s: no call of %ld to %ld fails, and it is not read: %s", text, first, last, error.text);
    json_decref(json);
}

/* Where a text asks for memory very often, not each call fails: the first ones, and some of the others. */
static void read_in_want(void)
{
    json_error_t error;
    calls = 0;
    json_t *good = json_read(text, length, 0, &error);
    assert_non_null(good);
    long count = calls;
    for (long n = 1; n <= count + 1; n += n < EACH_CALL_UP_TO ? 1 : 1 + count / FEW) {
        read_with(good, n, LONG_MAX); /* from there on there is none */
        read_with(good, n, n);        /* this one is too large, and others are not */
    }
    read_with(good, 0, 0);
    json_decref(good);
}

static void list_of(const char *element, size_t count)
{
    begin("[");
    for (size_t i = 0; i < count; i++) {
        add(i ? "," : "", 1);
        add(element, 1);
    }
    add("]", 1);
}

static void strings_as_long_as_the_buffer(void **state)
{
    for (size_t first = 0; first < 70; first++)
        for (size_t second = first < 28 || first > 32 ? 40 : 26; second < 48; second++) {
            begin("[\"");
            add("A", first);
            add("\",\"", 1);
            add("D", second);
            add("\"]", 1);
            read_in_want();
        }
    begin("{\"x\":[\"");
    add("B", 29);
    add("\",\"", 1);
    add("D", 42);
    add("\"]}", 1);
    read_in_want();
}

/* The quote behind it is the one for which there is no room. */
static void one_string_that_fills_it(void **state)
{
    for (size_t size = 16; size < (size_t)2 * SHORT_TEXT; size *= 2)
        for (size_t less = 0; less < 4; less++) {
            begin("[\"");
            add("s", size - less);
            add("\"]", 1);
            read_in_want();
        }
}

static void other_texts(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "[[[[[{\"a\":{\"b\":[null,true,false]}}]]]]]",
        "{\"product_id\":1,\"quantity\":2,\"receiver_name\":\"J\\u00f6rg \\ud83d\\ude00 and a name of more than that\"}",
        "[0.1234567890123456789012345678901234567890123456789012345678901,-1.5e10,123456789012345678]",
        "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"1234567\":[],\"k\":11,\"l\":{\"m\":12}}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        begin(texts[i]);
        read_in_want();
    }
}

static void long_lists(void **state)
{
    static const char *const elements[] = {"null",
                                           "\"a string of 29 characters, no\"",
                                           "\"\"",
                                           "[]",
                                           "{}",
                                           "-17",
                                           "[\"a string of 29 characters, no\",{\"and\":[1]}]"};
    for (size_t i = 0; i < COUNT(elements); i++) {
        list_of(elements[i], SHORT_TEXT / (strlen(elements[i]) + 1));
        read_in_want();
    }
}

/* What takes most of a reserve: two arrays of nulls, each just longer than a table. */
static void a_greedy_text_finds_room(void **state)
{
    json_error_t error;
    begin("[[");
    for (size_t i = 0; i < 4097; i++)
        add(i ? ",null" : "null", 1);
    add("]", 1);
    add(",null", 8192);
    add(",\"", 1);
    add("s", SHORT_TEXT - length - 2);
    add("\"]", 1);
    assert_true(length == SHORT_TEXT);

    calls = 0;
    first_to_fail = 6; /* the text's buffer, and two arrays with a table each */
    last_to_fail = LONG_MAX;
    reads = true;
    json_t *json = json_loadb(text, length, 0, &error);
    reads = false;
    first_to_fail = last_to_fail = 0;
    assert_true(ran_out && reserve.begin == for_short);
    size_t used = (size_t)(reserve.next - reserve.begin);
    assert_true(used > (size_t)5 * SHORT_TEXT && used < sizeof for_short);
    json_decref(json);
    ran_out = false;
    reserve.begin = reserve.next = reserve.end = NULL;
    pthread_mutex_unlock(&mutex);
    read_in_want();
}

/* It needs a separate reserve of memory; without it the reading does not begin. */
static void a_text_that_is_long(void **state)
{
    list_of("null", TEXT_ROOM / 5 - 1);
    read_in_want();
    begin("[\"");
    add("s", (size_t)2 * SHORT_TEXT - 1);
    add("\",\"", 1);
    add("t", SHORT_TEXT);
    add("\"]", 1);
    read_in_want();
}

/* Who has used it leaves it as it was. */
static void one_after_the_other(void **state)
{
    json_error_t error;
    list_of("\"a string of 29 characters, no\"", 40);
    json_t *good = json_read(text, length, 0, &error);
    for (int i = 0; i < 1000; i++)
        read_with(good, 3 + i % 20, LONG_MAX);
    json_decref(good);
}

static void what_is_wrong_is_told(void **state)
{
    json_error_t error;
    begin("{\"a\":1,}");
    assert_null(json_read(text, length, 0, &error));
    assert_int_equal(json_error_code(&error), json_error_invalid_syntax);
    begin("{\"a\":1,\"a\":2}");
    assert_null(json_read(text, length, JSON_REJECT_DUPLICATES, &error));
    assert_int_equal(json_error_code(&error), json_error_duplicate_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_as_long_as_the_buffer),
        cmocka_unit_test(one_string_that_fills_it),
        cmocka_unit_test(other_texts),
        cmocka_unit_test(long_lists),
        cmocka_unit_test(a_greedy_text_finds_room),
        cmocka_unit_test(a_text_that_is_long),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(what_is_wrong_is_told),
    };
    alarm(STUCK_S);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
