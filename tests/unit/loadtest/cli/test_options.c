/* Command lines: durations, numbers, every type of option, and what is refused. */
#include "tests/unit/unit.h"

#include "loadtest/cli/options.h"
#include "loadtest/testbed/testbed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct inner {
    const char *name, *colour;
    struct texts urls;
};

struct settings {
    bool loud;
    int64_t count, pause_ms;
    double skew, share_percent;
    struct inner inner;
};

static const char *const COLOURS[] = {"red", "green", NULL};

static const struct option_row OUTER_ROWS[] = {
    {"--loud", NULL, OPTION_FLAG, offsetof(struct settings, loud), 0, 0, NULL, "shout"},
    {"--count", "N", OPTION_NUMBER, offsetof(struct settings, count), 1, 10, NULL, "how many"},
    {"--pause", "T", OPTION_DURATION, offsetof(struct settings, pause_ms), 10, 60000, NULL, "how long"},
    {"--skew", "S", OPTION_REAL, offsetof(struct settings, skew), 0, 10, NULL, "how uneven"},
    {"--share", "P%", OPTION_PERCENT, offsetof(struct settings, share_percent), 1, 200, NULL, "how much"},
};

static const struct option_row INNER_ROWS[] = {
    {"--name", "TEXT", OPTION_TEXT, offsetof(struct inner, name), 0, 0, NULL, "who"},
    {"--colour", "C", OPTION_CHOICE, offsetof(struct inner, colour), 0, 0, COLOURS, "which"},
    {"--url", "URL", OPTION_TEXTS, offsetof(struct inner, urls), 0, 0, NULL, "where"},
};

static const struct option_rows OUTER = OPTION_ROWS("Outer", OUTER_ROWS),
                                INNER = OPTION_ROWS("Inner", INNER_ROWS);

static const struct command_line LINE = {
    .name = "test",
    .operands = "A B",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "Tests.",
    .groups = {{&OUTER, 0}, {&INNER, offsetof(struct settings, inner)}},
};

static struct settings settings;
static struct texts operands;

/* Parses the words of TEXT, which are separated by single blanks. */
static enum options_outcome parse(const char *text)
{
    static char word[] = "test", copy[256];
    char *argv[32] = {word}, *rest = copy;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", text);
    while (rest && *rest)
        argv[argc++] = strsep(&rest, " ");
    settings = (struct settings){.count = 3, .pause_ms = 250, .inner.colour = "green"};
    operands = (struct texts){.count = 0};
    return options_parse(&LINE, argc, argv, &settings, &operands);
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } GOOD[] = {{"250ms", 250}, {"2s", 2000}, {"1m", 60000}, {"3h", 10800000}, {"0s", 0}};
    static const char *const BAD[] = {"",
                                      "s",
                                      "2",
                                      "2 s",
                                      "-2s",
                                      "2S",
                                      "1.5s",
                                      "+2s",
                                      "2sec",
                                      "9223372036854775807h",
                                      "99999999999999999999s"};
    int64_t ms;
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        assert_true(parse_duration(GOOD[i].text, &ms));
        assert_int_equal(ms, GOOD[i].ms);
    }
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (parse_duration(BAD[i], &ms))
            fail_msg("'%s' was taken for %lld ms", BAD[i], (long long)ms);

    static const int64_t ROUND_TRIP[] = {0, 1, 250, 999, 1000, 1500, 60000, 61000, 3600000, 7200000};
    char buffer[32];
    for (size_t i = 0; i < COUNT(ROUND_TRIP); i++) {
        assert_true(parse_duration(duration_text(ROUND_TRIP[i], buffer), &ms));
        assert_int_equal(ms, ROUND_TRIP[i]);
    }
    assert_string_equal(duration_text(90000, buffer), "90s");
    assert_string_equal(duration_text(120000, buffer), "2m");
}

static void test_numbers(void **state)
{
    int64_t number;
    assert_true(parse_number("9223372036854775807", &number));
    assert_true(number == INT64_MAX);
    static const char *const BAD[] = {"", " 1", "1 ", "+1", "-1", "0x1", "1e3", "1.0", "9223372036854775808"};
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (parse_number(BAD[i], &number))
            fail_msg("'%s' was taken for %lld", BAD[i], (long long)number);
}

static void test_real_numbers_and_percentages(void **state)
{
    assert_int_equal(parse("--skew 0.75 --share=12.5% one"), OPTIONS_OK);
    assert_true(settings.skew == 0.75 && settings.share_percent == 12.5);
    assert_int_equal(parse("--skew 0 --share 200% one"), OPTIONS_OK);
    assert_true(settings.skew == 0 && settings.share_percent == 200);
    static const char *const BAD[] = {"--skew 10.1", "--skew -1",  "--skew +1",    "--skew 1e1",
                                      "--skew nan",  "--skew 1%",  "--skew=",      "--skew x",
                                      "--share 70",  "--share 0%", "--share 201%", "--share %"};
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (parse(BAD[i]) != OPTIONS_BAD)
            fail_msg("'%s' was accepted", BAD[i]);
}

static void test_every_type(void **state)
{
    assert_int_equal(parse("--loud --count 7 --pause=2s --name Ada --colour red --url a --url=b one two"),
                     OPTIONS_OK);
    assert_true(settings.loud);
    assert_int_equal(settings.count, 7);
    assert_int_equal(settings.pause_ms, 2000);
    assert_string_equal(settings.inner.name, "Ada");
    assert_string_equal(settings.inner.colour, "red");
    assert_int_equal(settings.inner.urls.count, 2);
    assert_string_equal(settings.inner.urls.item[1], "b");
    assert_int_equal(operands.count, 2);
    assert_string_equal(operands.item[0], "one");
}

static void test_defaults_stay(void **state)
{
    assert_int_equal(parse("one"), OPTIONS_OK);
    assert_false(settings.loud);
    assert_int_equal(settings.count, 3);
    assert_int_equal(settings.pause_ms, 250);
    assert_null(settings.inner.name);
    assert_string_equal(settings.inner.colour, "green");
}

static void test_words_that_look_like_options(void **state)
{
    assert_int_equal(parse("- --name -x"), OPTIONS_OK); /* stdin, and a value that starts with a dash */
    assert_string_equal(operands.item[0], "-");
    assert_string_equal(settings.inner.name, "-x");
    assert_int_equal(parse("-- --loud"), OPTIONS_OK);
    assert_string_equal(operands.item[0], "--loud");
    assert_false(settings.loud);
}

static void test_what_is_refused(void **state)
{
    static const char *const BAD[] = {
        "one --nosuch",   "one --coun 3",  "one --count",  "one --count 0",
        "one --count 11", "one --count x", "one --count=", "one --pause 5ms",
        "one --pause 2m", "one --pause 2", "one --name=",  "one --colour blue",
        "one --loud=yes", "one two three", "--loud",       "one -x",
    };
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (parse(BAD[i]) != OPTIONS_BAD)
            fail_msg("'%s' was not refused", BAD[i]);
}

static void test_help(void **state)
{
    assert_int_equal(parse("--help"), OPTIONS_HELP);
    assert_int_equal(parse("--count 99 --help"), OPTIONS_HELP); /* asked for, whatever else is wrong */
    assert_int_equal(parse("-- --help"), OPTIONS_OK);
}

static void test_service_addresses(void **state)
{
    static const char *const GOOD[] = {"http://127.0.0.1:8080", "http://localhost:1/", "http://[::1]:8080"};
    static const char *const BAD[] = {
        "127.0.0.1:8080",
        "https://a:1",
        "http://a",
        "http://:80",
        "http://a:x",
        "http://a:1/orders",
        "http://a:1?x",
        "http://u:p@a:1",
        "http://[::1:8080",
        "http://a:123456",
        "http://a:1 http://b:2",
        "",
    };
    struct testbed_settings testbed = TESTBED_DEFAULTS;
    testbed.urls.count = 1;
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        testbed.urls.item[0] = GOOD[i];
        if (!testbed_settings_valid(&testbed))
            fail_msg("%s was refused", GOOD[i]);
    }
    for (size_t i = 0; i < COUNT(BAD); i++) {
        testbed.urls.item[0] = BAD[i];
        if (testbed_settings_valid(&testbed))
            fail_msg("%s was not refused", BAD[i]);
    }
}

/* What is refused is explained, at length: not to the reader of the test's output. */
static int own_stderr;

static int hush(void **state)
{
    own_stderr = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return own_stderr < 0 || nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0 || close(nowhere) != 0;
}

static int speak_again(void **state)
{
    return dup2(own_stderr, STDERR_FILENO) < 0 || close(own_stderr) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_real_numbers_and_percentages),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_defaults_stay),
        cmocka_unit_test(test_words_that_look_like_options),
        cmocka_unit_test_setup_teardown(test_what_is_refused, hush, speak_again),
        cmocka_unit_test_setup_teardown(test_service_addresses, hush, speak_again),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
