/* RESP as the gate reads it: commands and replies, whole and in parts, what they say, and what is refused. */
#include "tests/unit/unit.h"

#include "loadtest/own/gate/message_text.h"
#include "loadtest/own/gate/redis_messages.h"

#include <stdlib.h>
#include <string.h>

/* COUNT bytes without one behind them, so that a read beyond their end is seen; to be freed. */
static char *only(const char *bytes, size_t count)
{
    char *part = malloc(count + (count == 0));
    assert_non_null(part);
    memcpy(part, bytes, count);
    return part;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static struct redis_command command;

static const char *described(const char *bytes)
{
    static char text[MESSAGE_TEXT];
    text[0] = '\0';
    assert_int_equal(redis_command_read(bytes, strlen(bytes), &command), strlen(bytes));
    redis_describe_command(&command, text);
    return text;
}

static void test_commands(void **state)
{
    assert_string_equal(described("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nab\r\n"), "SET k ab");
    assert_string_equal(described("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"), "GET \"\"");
    assert_string_equal(described("*2\r\n$4\r\nECHO\r\n$5\r\na\r\n b\r\n"), "ECHO \"a b\"");
    assert_string_equal(described("PING\r\n"), "PING");
    assert_string_equal(described("  set k \"a \\\" b\"\r\n"), "set k \"a \\\" b\"");
    assert_string_equal(described("get k\n"), "get k");
    assert_string_equal(described("\r\n"), "");
    assert_string_equal(described("*0\r\n"), "");
    assert_string_equal(described("*-1\r\n"), "");
}

/* Each beginning of a command is incomplete, and none reads beyond its end. */
static void test_parts_of_commands(void **state)
{
    static const char *const ALL[] = {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n1234\r\n7890\r\n", "get k\r\n"};
    for (size_t i = 0; i < 2; i++)
        for (size_t count = 0; count < strlen(ALL[i]); count++) {
            char *part = only(ALL[i], count);
            assert_int_equal(redis_command_read(part, count, &command), 0);
            free(part);
        }
}

static void test_wrong_commands(void **state)
{
    static const char *const ALL[] = {"*x\r\n",
                                      "*1\r\n:1\r\n",
                                      "*1\r\n$-1\r\n",
                                      "*1\r\n$3\r\nPINGX\r\n",
                                      "*1\r\n*1\r\n",
                                      "*99999999\r\n",
                                      "*2000000\r\n",
                                      "*1\r\n$9000000\r\n",
                                      "*1\r\n$+1\r\nx\r\n",
                                      "*1 \r\n$4\r\nPING\r\n",
                                      "*1\n$4\r\nPING\r\n",
                                      "*-2\r\n"};
    for (size_t i = 0; i < COUNT(ALL); i++)
        assert_true(redis_command_read(ALL[i], strlen(ALL[i]), &command) == MESSAGE_WRONG);
    static char endless[REDIS_INLINE_MAX + 2];
    memset(endless, 'a', sizeof endless);
    assert_int_equal(redis_command_read(endless, 1000, &command), 0);
    assert_true(redis_command_read(endless, sizeof endless, &command) == MESSAGE_WRONG);
}

static void test_long_commands(void **state)
{
    char bytes[4000] = "*200\r\n$3\r\nDEL\r\n";
    for (int i = 1; i < 200; i++)
        strcat(bytes, "$1\r\nk\r\n");
    assert_int_equal(redis_command_read(bytes, strlen(bytes), &command), strlen(bytes));
    assert_int_equal(command.count, 200);
    assert_int_equal(redis_keys_of(&command).count, REDIS_WORDS_KEPT - 1);
    assert_string_equal(described("*2\r\n$3\r\nGET\r\n$62\r\n"
                                  "0123456789012345678901234567890123456789012345678901234567890!\r\n"),
                        "GET 012345678901234567890123456789012345678901234567890123456789…");
}

static void expect_keys(const char *text, size_t first, size_t count, bool may_lock)
{
    (void)described(text);
    const struct redis_keys keys = redis_keys_of(&command);
    assert_int_equal(keys.count, count);
    if (count > 0)
        assert_int_equal(keys.first, first);
    assert_int_equal(redis_may_lock(&command), may_lock);
}

static void test_keys(void **state)
{
    expect_keys("SET k v NX PX 100\r\n", 1, 1, true);
    expect_keys("set k v px 100 nx\r\n", 1, 1, true);
    expect_keys("SET k NX\r\n", 1, 1, false);
    expect_keys("SETNX k v\r\n", 1, 1, true);
    expect_keys("EVAL s 2 a b arg\r\n", 3, 2, true);
    expect_keys("EVALSHA s 0 arg\r\n", 3, 0, true);
    expect_keys("EVAL s 9 a\r\n", 3, 1, true);
    expect_keys("EVAL s x a\r\n", 0, 0, true);
    expect_keys("EVAL s -1 a\r\n", 0, 0, true);
    expect_keys("DEL a b\r\n", 1, 2, false);
    expect_keys("BLPOP a b 0\r\n", 1, 2, false);
    expect_keys("HSET h f v\r\n", 1, 1, true);
    expect_keys("GET a\r\n", 1, 1, false);
    expect_keys("DBSIZE\r\n", 0, 0, false);
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *bytes, *text;
} REPLIES[] = {
    {"+OK\r\n", "OK"},
    {"-ERR no such\r\n", "error: ERR no such"},
    {":-12\r\n", "-12"},
    {"$-1\r\n", "nil"},
    {"*-1\r\n", "nil"},
    {"_\r\n", "nil"},
    {"$0\r\n\r\n", ""},
    {"$5\r\na\r\nbc\r\n", "a bc"},
    {"*0\r\n", "[]"},
    {"*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n", "[a, [1, 2]]"},
    {"*2\r\n*0\r\n$-1\r\n", "[[], nil]"},
    {"%1\r\n+a\r\n:1\r\n", "[a, 1]"},
    {"~2\r\n#t\r\n#f\r\n", "[true, false]"},
    {",1.5\r\n", "1.5"},
    {"(123456789012345678901234567890\r\n", "123456789012345678901234567890"},
    {"=7\r\ntxt:abc\r\n", "abc"},
    {"!5\r\nERR x\r\n", "error: ERR x"},
    {">2\r\n+message\r\n+a\r\n", "[message, a]"},
    {"|1\r\n+ttl\r\n:5\r\n:7\r\n", "[ttl, 5, 7]"},
    {"$2\r\n\xff\x01\r\n", "?\?"},
};

static void test_replies(void **state)
{
    for (size_t i = 0; i < COUNT(REPLIES); i++) {
        char text[MESSAGE_TEXT] = "";
        const char *bytes = REPLIES[i].bytes;
        size_t length = strlen(bytes);
        assert_int_equal(redis_reply_length(bytes, length), length);
        redis_describe_reply(bytes, length, text);
        assert_string_equal(text, REPLIES[i].text);
        assert_int_equal(redis_is_push(bytes), *bytes == '>');
        for (size_t count = 0; count < length; count++) {
            char *part = only(bytes, count);
            assert_int_equal(redis_reply_length(part, count), 0);
            free(part);
        }
    }
}

static void test_wrong_replies(void **state)
{
    static const char *const ALL[] = {"hello\r\n", "$-2\r\n", "*-2\r\n", "%-1\r\n", "$3\r\nabcd\r\n",
                                      "\r\n",      "$?\r\n",  "+OK\n",   "$\r\n",   "*1\r\n.\r\n"};
    for (size_t i = 0; i < COUNT(ALL); i++)
        assert_true(redis_reply_length(ALL[i], strlen(ALL[i])) == MESSAGE_WRONG);
    char deep[1000] = "";
    for (int i = 0; i <= REDIS_NESTING_MAX; i++)
        strcat(deep, "*1\r\n");
    assert_true(redis_reply_length(deep, strlen(deep)) == MESSAGE_WRONG);
    assert_int_equal(redis_reply_length(deep + 4, strlen(deep) - 4), 0);
}

static void test_long_replies_are_cut(void **state)
{
    char bytes[4000] = "*500\r\n", text[MESSAGE_TEXT] = "";
    for (int i = 0; i < 500; i++)
        strcat(bytes, ":77\r\n");
    assert_int_equal(redis_reply_length(bytes, strlen(bytes)), strlen(bytes));
    redis_describe_reply(bytes, strlen(bytes), text);
    assert_true(strlen(text) <= MESSAGE_TEXT - 1 && strncmp(text, "[77, 77, ", 9) == 0);
}

static void test_ends_of_subscriptions(void **state)
{
    static const char LAST[] = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n",
                      NOT_LAST[] = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n",
                      FIRST[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:0\r\n";
    assert_true(redis_ends_subscriptions(LAST, sizeof LAST - 1));
    assert_false(redis_ends_subscriptions(NOT_LAST, sizeof NOT_LAST - 1));
    assert_false(redis_ends_subscriptions(FIRST, sizeof FIRST - 1));
    assert_false(redis_ends_subscriptions("+OK\r\n", 5));
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

static struct gate_connection seen;
static long long memory[1024];

/* What the protocol says of the first unit of BYTES. */
static struct wire_unit unit_of(const char *bytes)
{
    assert_true(redis_protocol.state_size <= sizeof memory);
    return redis_protocol.next_unit(memory, &seen, bytes, strlen(bytes));
}

static void begin(void)
{
    memset(memory, 0, sizeof memory);
    seen = (struct gate_connection){.used = true};
}

static void expect_held(const char *bytes, const char *text)
{
    const struct wire_unit unit = unit_of(bytes);
    assert_int_equal(unit.way, UNIT_HELD);
    assert_int_equal(unit.length, strlen(bytes));
    assert_string_equal(seen.text, text);
    seen.running = true; /* it is released */
}

static void expect_pass(const char *bytes)
{
    const struct wire_unit unit = unit_of(bytes);
    assert_int_equal(unit.way, UNIT_PASSES);
    assert_int_equal(unit.length, strlen(bytes));
}

static void answer(const char *bytes)
{
    assert_int_equal(redis_protocol.next_answer(memory, &seen, bytes, strlen(bytes)), strlen(bytes));
}

static void test_a_command_is_a_unit(void **state)
{
    begin();
    expect_pass("HELLO 3 AUTH u p\r\n");
    expect_pass("CLIENT SETINFO LIB-NAME x\r\n");
    expect_pass("\r\n");
    assert_int_equal(unit_of("GET a\r\n").length, 0); /* the replies to the others are not there */
    answer("%1\r\n+server\r\n+redis\r\n");
    answer("+OK\r\n");
    expect_held("SET lock:17:0f3a-b2 t NX\r\n", "SET lock:17:0f3a-b2 t NX");
    assert_string_equal(seen.shape, "SET lock::");
    assert_memory_equal(seen.keys, "lock:17:0f3a-b2\0", sizeof "lock:17:0f3a-b2");
    assert_true(seen.may_lock);
    answer(">2\r\n+invalidate\r\n+x\r\n");
    assert_true(seen.running);
    answer("_\r\n");
    assert_false(seen.running);
    assert_string_equal(seen.answer, "nil");
}

static void test_a_pipeline_is_one_unit_after_the_other(void **state)
{
    begin();
    static const char BOTH[] = "GET a\r\nGET b\r\n";
    assert_int_equal(unit_of(BOTH).length, 7);
    seen.running = true;
    assert_int_equal(unit_of(BOTH + 7).length, 0);
    answer("$1\r\nx\r\n");
    expect_held(BOTH + 7, "GET b");
}

static void test_exec_is_the_unit_of_a_transaction(void **state)
{
    begin();
    expect_pass("MULTI\r\n");
    expect_pass("SET a 1 NX\r\n");
    expect_pass("INCR b\r\n");
    answer("+OK\r\n");
    answer("+QUEUED\r\n");
    assert_int_equal(unit_of("EXEC\r\n").length, 0);
    answer("+QUEUED\r\n");
    expect_held("EXEC\r\n", "MULTI; SET a 1 NX; INCR b; EXEC");
    assert_memory_equal(seen.keys, "a\0b\0", 5);
    assert_true(seen.may_lock);
    answer("*2\r\n+OK\r\n:1\r\n");
    assert_string_equal(seen.answer, "[OK, 1]");
    expect_held("GET b\r\n", "GET b");
    assert_false(seen.may_lock);
    answer("$1\r\n1\r\n");
    expect_pass("MULTI\r\n");
    expect_pass("SET c 1\r\n");
    expect_pass("DISCARD\r\n");
    for (int i = 0; i < 3; i++)
        answer("+OK\r\n");
    expect_held("EXEC\r\n", "EXEC");
}

/* Redis keeps MULTI and WATCH for a connection, so a request that crashes must not leave them to the next one. */
static void test_what_redis_remembers_of_a_connection(void **state)
{
    begin();
    expect_pass("MULTI\r\n");
    assert_true(seen.remembers);
    expect_pass("UNWATCH\r\n"); /* it is queued */
    answer("+OK\r\n");
    answer("+QUEUED\r\n");
    expect_held("EXEC\r\n", "MULTI; UNWATCH; EXEC");
    assert_true(seen.remembers);
    answer("*1\r\n+OK\r\n");
    assert_false(seen.remembers);
    expect_held("WATCH a\r\n", "WATCH a");
    assert_false(seen.remembers);
    answer("+OK\r\n");
    assert_true(seen.remembers);
    expect_held("GET a\r\n", "GET a");
    answer("_\r\n");
    assert_true(seen.remembers);
    expect_pass("UNWATCH\r\n");
    answer("+OK\r\n");
    assert_false(seen.remembers);
    expect_held("GET a\r\n", "GET a");
    answer("_\r\n");
    assert_false(seen.remembers);
    expect_pass("MULTI\r\n");
    expect_pass("DISCARD\r\n");
    assert_false(seen.remembers);
}

static void test_subscriptions_pass(void **state)
{
    begin();
    expect_pass("SUBSCRIBE c\r\n");
    expect_pass("PING\r\n");
    answer("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    answer("*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    answer("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    expect_pass("UNSUBSCRIBE c\r\n");
    answer("*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
    expect_held("GET a\r\n", "GET a");
    begin(); /* RESP3: both at the same time */
    expect_pass("HELLO 3\r\n");
    answer("%0\r\n");
    expect_pass("SUBSCRIBE c\r\n");
    answer(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    expect_held("GET a\r\n", "GET a");
    answer(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    assert_true(seen.running);
    answer("_\r\n");
    assert_false(seen.running);
}

static void test_commands_that_wait(void **state)
{
    static const char *const WAIT[] = {"BLPOP a 0\r\n", "wait 1 0\r\n",
                                       "XREAD COUNT 1 BLOCK 0 STREAMS s $\r\n"};
    for (size_t i = 0; i < 3; i++) {
        begin();
        (void)unit_of(WAIT[i]);
        assert_true(seen.may_wait);
    }
    (void)(begin(), unit_of("XREAD STREAMS s 0\r\n"));
    assert_false(seen.may_wait);
}

static void test_what_cannot_be_held(void **state)
{
    begin();
    assert_true(unit_of("\x16\x03\x01\x02").length == MESSAGE_WRONG);
    assert_true(strstr(seen.problem, "TLS") != NULL);
    begin();
    assert_true(unit_of("CLIENT REPLY OFF\r\n").length == MESSAGE_WRONG);
    assert_true(strstr(seen.problem, "CLIENT REPLY") != NULL);
    begin();
    expect_pass("CLIENT REPLY ON\r\n");
    answer("+OK\r\n");
    expect_held("GET a\r\n", "GET a");
    answer("-MOVED 15495 127.0.0.1:7002\r\n");
    assert_true(strstr(seen.problem, "MOVED") != NULL);
}

static void test_a_refused_command(void **state)
{
    begin();
    expect_held("GET a\r\n", "GET a");
    seen.running = false;
    assert_int_equal(redis_protocol.refuse(memory)[0], '-');
    expect_held("GET b\r\n", "GET b");
}

static void test_texts(void **state)
{
    char text[MESSAGE_TEXT] = "";
    message_append(text, "a\n\t b\0c\x7f\xc3\xa4\xed\xa0\x80", 13);
    assert_string_equal(text, "a b?c?\xc3\xa4?\?\?");
    for (int i = 0; i < MESSAGE_TEXT; i++)
        message_append_text(text, "\xe2\x80\xa6");
    assert_true(strlen(text) < MESSAGE_TEXT && strlen(text) + 3 >= MESSAGE_TEXT);
    assert_memory_equal(text + strlen(text) - 3, "\xe2\x80\xa6", 3); /* no part of a character */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_parts_of_commands),
        cmocka_unit_test(test_wrong_commands),
        cmocka_unit_test(test_long_commands),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_wrong_replies),
        cmocka_unit_test(test_long_replies_are_cut),
        cmocka_unit_test(test_ends_of_subscriptions),
        cmocka_unit_test(test_a_command_is_a_unit),
        cmocka_unit_test(test_a_pipeline_is_one_unit_after_the_other),
        cmocka_unit_test(test_exec_is_the_unit_of_a_transaction),
        cmocka_unit_test(test_what_redis_remembers_of_a_connection),
        cmocka_unit_test(test_subscriptions_pass),
        cmocka_unit_test(test_commands_that_wait),
        cmocka_unit_test(test_what_cannot_be_held),
        cmocka_unit_test(test_a_refused_command),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
