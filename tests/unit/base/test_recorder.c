/* The recorder of requests: what it keeps, its bounds, and where it cuts a text. */
#include "tests/unit/unit.h"

#include "base/recorder.h"

static void assert_shortened(const char *text, size_t size, const char *expected)
{
    char kept[64];
    assert_true(size <= sizeof kept);
    memset(kept, 'x', sizeof kept);
    recorder_shorten(text, kept, size);
    assert_string_equal(kept, expected);
    assert_true(strlen(kept) < size);
}

static void test_a_text_that_fits_is_whole(void **state)
{
    assert_shortened("", 4, "");
    assert_shortened("abc", 4, "abc");
    assert_shortened("größer", 9, "größer");
    assert_shortened("…", 4, "…");
}

static void test_a_longer_text_ends_between_characters(void **state)
{
    assert_shortened("abcd", 4, "…");
    assert_shortened("abcdefgh", 8, "abcd…");
    for (size_t size = 4; size < 20;
         size++) { /* a cut at each byte of characters of two, three and four bytes */
        char kept[32];
        recorder_shorten("aößé€€𝄞𝄞ö€aaa", kept, size);
        assert_true(strlen(kept) < size);
        assert_string_equal(kept + strlen(kept) - strlen("…"), "…");
        json_t *text = json_string(kept); /* which refuses what is not UTF-8 */
        assert_non_null(text);
        json_decref(text);
    }
    assert_shortened("a€€b", 7, "a…");
    assert_shortened("a€€b", 8, "a€…");
    assert_shortened("a€€b", 9, "a€€b");
}

static void test_white_space_and_strange_bytes(void **state)
{
    assert_shortened("SELECT 1,\n       2\tFROM t", 32, "SELECT 1, 2 FROM t");
    assert_shortened("a\x01"
                     "b\x7f",
                     32, "a?b?");
    assert_shortened("a\xff\xc3", 32, "a??");
    assert_shortened("\xed\xa0\x80", 32, "???");           /* a surrogate */
    assert_shortened("\xc0\x80\xe0\x80\x80", 32, "?????"); /* overlong */
    assert_shortened("\xf4\x90\x80\x80", 32, "????");      /* above U+10FFFF */
}

/* Such characters could move or hide the text after them, in a terminal and on a page. */
static void test_characters_that_control_the_text(void **state)
{
    assert_shortened("a\xc2\x85"
                     "b\xc2\x9b"
                     "c",
                     32, "a?b?c");                                    /* C1 controls */
    assert_shortened("a\u202eb\u202cc\u2066d\u2069", 32, "a?b?c?d?"); /* override, embedding, isolate */
    assert_shortened("\u200e\u200f\u061c\u2028\u2029", 32, "?????");  /* marks; line and paragraph ends */
    assert_shortened("\u200b\u200d\u202a\u202c", 5, "????");          /* each takes one byte */
    assert_shortened("\u00a0\u2010\u202f\u206a", 32, "\u00a0\u2010\u202f\u206a"); /* their neighbours */
}

static const char *text_of(const json_t *request, const char *name)
{
    return json_string_value(json_object_get(request, name));
}

static void test_without_a_recorder_nothing_is_recorded(void **state)
{
    assert_null(thread_recorder);
    assert_int_equal(record_request("redis", NULL, "PING", NULL, 0), 0);
    record_answer(0, "PONG");
    record_answer(1, "PONG");
}

static void test_requests_with_values_and_answers(void **state)
{
    const void *connection;
    int here;
    thread_recorder = recorder_new();
    assert_non_null(thread_recorder);
    unsigned first = record_request("postgresql", &here, "SELECT  $1, $2", (const char *const[]){"7", NULL},
                                    2);
    unsigned second = record_request("redis", NULL, "PING", NULL, 0);
    unsigned answered;
    assert_int_equal(recorder_count(thread_recorder, &answered), 2);
    assert_int_equal(answered, 0);
    record_answer(first, "1 row");
    assert_int_equal(recorder_count(thread_recorder, &answered), 2);
    assert_int_equal(answered, first);

    json_t *request = recorder_request(thread_recorder, 0, &connection);
    assert_ptr_equal(connection, &here);
    assert_string_equal(text_of(request, "to"), "postgresql");
    assert_string_equal(text_of(request, "text"), "SELECT $1, $2");
    assert_string_equal(text_of(request, "answer"), "1 row");
    const json_t *values = json_object_get(request, "values");
    assert_int_equal(json_array_size(values), 2);
    assert_string_equal(json_string_value(json_array_get(values, 0)), "7");
    assert_true(json_is_null(json_array_get(values, 1)));
    json_decref(request);

    request = recorder_request(thread_recorder, second - 1, &connection);
    assert_true(json_is_null(json_object_get(request, "answer")));
    json_decref(request);
    assert_null(recorder_request(thread_recorder, 2, &connection));

    recorder_clear(thread_recorder);
    assert_int_equal(recorder_count(thread_recorder, &answered), 0);
    assert_int_equal(answered, 0);
    assert_null(recorder_request(thread_recorder, 0, &connection));
    record_answer(first, "too late");
    recorder_free(thread_recorder);
    thread_recorder = NULL;
}

static void test_everything_is_bounded(void **state)
{
    char longer[4000];
    const char *values[RECORDED_VALUES_MAX + 5];
    const void *connection;
    unsigned answered;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = longer;
    thread_recorder = recorder_new();
    for (int i = 0; i < RECORDED_MAX + 3; i++)
        record_answer(record_request("redis", NULL, longer, values, COUNT(values)), longer);
    assert_int_equal(recorder_count(thread_recorder, &answered), RECORDED_MAX + 3);
    assert_int_equal(answered, RECORDED_MAX + 3);
    json_t *request = recorder_request(thread_recorder, RECORDED_MAX - 1, &connection);
    const json_t *kept = json_object_get(request, "values");
    assert_int_equal(strlen(text_of(request, "text")), RECORDED_TEXT_MAX);
    assert_int_equal(strlen(text_of(request, "answer")), RECORDED_ANSWER_MAX);
    assert_int_equal(json_array_size(kept), RECORDED_VALUES_MAX);
    assert_int_equal(json_string_length(json_array_get(kept, 0)), RECORDED_VALUE_MAX);
    json_decref(request);
    assert_null(recorder_request(thread_recorder, RECORDED_MAX, &connection));
    recorder_free(thread_recorder);
    thread_recorder = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_that_fits_is_whole),
        cmocka_unit_test(test_a_longer_text_ends_between_characters),
        cmocka_unit_test(test_white_space_and_strange_bytes),
        cmocka_unit_test(test_characters_that_control_the_text),
        cmocka_unit_test(test_without_a_recorder_nothing_is_recorded),
        cmocka_unit_test(test_requests_with_values_and_answers),
        cmocka_unit_test(test_everything_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
