/* How the gate of a user's service reads PostgreSQL's messages. */
#include "tests/unit/unit.h"

#include "loadtest/own/gate/postgres_messages.h"

#include <arpa/inet.h>
#include <string.h>

struct stream {
    char bytes[4096];
    size_t count;
};

static void add(struct stream *stream, const void *bytes, size_t count)
{
    assert_true(stream->count + count <= sizeof stream->bytes);
    memcpy(stream->bytes + stream->count, bytes, count);
    stream->count += count;
}

static void add_message(struct stream *stream, char type, const void *body, size_t size)
{
    uint32_t length = htonl((uint32_t)size + 4);
    add(stream, &type, 1);
    add(stream, &length, sizeof length);
    if (size > 0)
        add(stream, body, size);
}

/* Parse, and Bind with one text parameter or none. */
static void add_portal(struct stream *stream, const char *text, const char *parameter)
{
    struct stream parse = {0}, bind = {0};
    uint16_t none = 0, one = htons(1);
    add(&parse, "", 1);
    add(&parse, text, strlen(text) + 1);
    add(&parse, &none, 2);
    add_message(stream, 'P', parse.bytes, parse.count);
    add(&bind, "\0", 2); /* the portal's and the statement's name */
    add(&bind, &none, 2);
    add(&bind, parameter ? &one : &none, 2);
    if (parameter) {
        uint32_t length = htonl((uint32_t)strlen(parameter));
        add(&bind, &length, 4);
        add(&bind, parameter, strlen(parameter));
    }
    add(&bind, &none, 2);
    add_message(stream, 'B', bind.bytes, bind.count);
}

static void add_execute(struct stream *stream)
{
    add_message(stream, 'E', "\0\0\0\0\0", 5);
}

/* A statement as JDBC and node-postgres send it. */
static void add_statement(struct stream *stream, const char *text, const char *parameter)
{
    add_portal(stream, text, parameter);
    add_execute(stream);
}

static char whole[STATEMENTS_TEXT];

static void expect(const struct stream *stream, const char *text, bool trivial)
{
    struct prepared_statements prepared = {0};
    char described[MESSAGE_TEXT];
    assert_int_equal(unit_length(stream->bytes, stream->count), stream->count);
    assert_int_equal(describe_unit(&prepared, stream->bytes, stream->count, described, whole), trivial);
    assert_string_equal(described, text);
}

static void test_a_simple_query(void **state)
{
    (void)state;
    struct stream query = {0}, begin = {0}, two = {0};
    add_message(&query, 'Q', "SELECT\n  1", 11);
    expect(&query, "SELECT 1", false);
    add_message(&begin, 'Q', "begin", 6);
    expect(&begin, "", true);
    add_message(&two, 'Q', "BEGIN; SELECT 1", 16);
    expect(&two, "BEGIN; SELECT 1", false);
}

/* White space becomes one blank, so a comment without its end would hide what follows: sqlc sends such a line before each statement. Tracers
 * put a comment before the first word, by which a COMMIT is known. */
static void test_comments_are_left_out(void **state)
{
    static const struct {
        const char *sent, *described;
    } CASES[] = {
        {"-- name: Claim :one\nSELECT claim($1) -- it's one\n", "SELECT claim($1) [7]"},
        {"SELECT '--a', \"--b\", E'\\'--c' -- d\n, 2", "SELECT '--a', \"--b\", E'\\'--c' , 2 [7]"},
        {"SELECT 1 /* it's -- e */ -- f\r\n; COMMIT", "SELECT 1 ; COMMIT [7]"},
        {"/* app='shop' */ COMMIT", "COMMIT [7]"},
        {"SELECT/* a /* nested */ one */1", "SELECT 1 [7]"},
        {"DO $$ BEGIN -- it's\n PERFORM claim(); END $$", "DO $$ BEGIN PERFORM claim(); END $$ [7]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct stream stream = {0};
        add_statement(&stream, CASES[i].sent, "7");
        add_message(&stream, 'S', NULL, 0);
        expect(&stream, CASES[i].described, false);
    }
    struct stream query = {0}, begin = {0};
    add_message(&query, 'Q', "-- a\nSELECT 1", 14);
    expect(&query, "SELECT 1", false);
    add_message(&begin, 'Q', "-- name: Begin\n/*a*/ BEGIN", 27);
    expect(&begin, "", true);
}

static void test_begin_in_one_unit_with_a_statement(void **state)
{
    (void)state;
    struct stream stream = {0};
    add_statement(&stream, "BEGIN", NULL);
    add_statement(&stream, "SELECT count FROM product WHERE id = $1", "7");
    add_message(&stream, 'S', NULL, 0);
    expect(&stream, "SELECT count FROM product WHERE id = $1 [7]", false);
}

static void test_two_statements_of_a_pipeline(void **state)
{
    (void)state;
    struct stream stream = {0};
    add_statement(&stream, "SELECT 1", NULL);
    add_statement(&stream, "SET search_path = shop", NULL);
    add_statement(&stream, "COMMIT", NULL);
    add_message(&stream, 'S', NULL, 0);
    expect(&stream, "SELECT 1; COMMIT", false);
}

static void test_nothing_is_executed(void **state)
{
    (void)state;
    struct stream stream = {0};
    add_message(&stream, 'P', "name\0SELECT 1\0\0\0", 16);
    add_message(&stream, 'S', NULL, 0);
    expect(&stream, "", true);
}

/* PostgreSQL takes the snapshot of a SELECT at Bind, and returns rows at Execute, which may come in a later unit. */
static void test_a_portal_is_executed_in_a_later_unit(void **state)
{
    static const struct {
        const char *statement, *bound, *executed;
    } CASES[] = {
        {"SELECT 1", "SELECT 1", "(continues the statement before)"},
        {"BEGIN", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct prepared_statements prepared = {0};
        struct stream binds = {0}, executes = {0};
        char described[MESSAGE_TEXT];
        bool trivial = *CASES[i].bound == '\0';
        add_portal(&binds, CASES[i].statement, NULL);
        add_message(&binds, 'D', "P", 2);
        add_message(&binds, 'H', NULL, 0);
        add_execute(&executes);
        add_message(&executes, 'S', NULL, 0);
        assert_int_equal(describe_unit(&prepared, binds.bytes, binds.count, described, whole), trivial);
        assert_string_equal(described, CASES[i].bound);
        for (int times = 0; times < 2; times++) { /* a cursor */
            assert_int_equal(describe_unit(&prepared, executes.bytes, executes.count, described, whole),
                             trivial);
            assert_string_equal(described, CASES[i].executed);
        }
    }
}

/* The unit binds one portal, and executes another one of before. */
static void test_two_portals(void **state)
{
    (void)state;
    struct stream stream = {0};
    add_portal(&stream, "SET search_path = shop", NULL);
    add_message(&stream, 'E', "cursor\0\0\0\0\0", 11);
    add_message(&stream, 'S', NULL, 0);
    expect(&stream, "(continues the statement before)", false);
}

static void test_a_number_of_a_sequence(void **state)
{
    static const struct {
        const char *text;
        bool trivial;
    } CASES[] = {
        {"select nextval ('order_seq')", true},
        {"SELECT NEXTVAL('order_seq') AS id;", true},
        {"select  nextval($1)", true},
        {"SELECT nextval('from_seq')", true},
        {"SELECT nextval('order_seq') FROM product FOR UPDATE", false},
        {"SELECT nextval('order_seq')\nFROM\nproduct FOR UPDATE", false},
        {"SELECT nextval('order_seq')\fFROM product FOR UPDATE", false},
        {"SELECT nextval('order_seq')FROM product FOR UPDATE", false},
        {"SELECT nextval('order_seq'), pg_advisory_lock(1)", false},
        {"SELECT nextval('order_seq') WHERE pg_try_advisory_lock(1)", false},
        {"SELECT nextval('order_seq'); DELETE FROM product", false},
        {"SELECT last_value FROM order_seq", false},
        {"SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
         true}, /* the pool of asyncpg */
        {"SELECT pg_advisory_unlock_all(); SELECT 1", false},
        {"ROLLBACK; SELECT pg_advisory_unlock_all()", false},
        {"SELECT pg_advisory_unlock(1)", false},
        {"SET a = ';'; DELETE FROM product", false},
        {"RESET ALL;", true},
        {"SELECT nextval", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct stream stream = {0};
        add_message(&stream, 'Q', CASES[i].text, strlen(CASES[i].text) + 1);
        struct prepared_statements prepared = {0};
        char described[MESSAGE_TEXT];
        assert_int_equal(describe_unit(&prepared, stream.bytes, stream.count, described, whole),
                         CASES[i].trivial);
        assert_int_equal(*described == '\0', CASES[i].trivial);
    }
}

/* Such a unit is no separate transaction, so the gate adds none. */
static void test_a_unit_that_begins_a_transaction(void **state)
{
    static const struct {
        const char *first, *second;
        bool begins;
    } CASES[] = {
        {"BEGIN", "SELECT sell(1)", true},
        {"START TRANSACTION READ WRITE", "SELECT sell(1)", true},
        {"SET search_path = shop", "SELECT sell(1)", false},
        {"SELECT 1", "SELECT sell(1)", false},
    };
    (void)state;
    struct prepared_statements prepared = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct stream stream = {0};
        char described[MESSAGE_TEXT];
        add_portal(&stream, CASES[i].first, NULL);
        add_execute(&stream);
        add_portal(&stream, CASES[i].second, NULL);
        add_execute(&stream);
        add_message(&stream, 'S', NULL, 0);
        assert_false(describe_unit(&prepared, stream.bytes, stream.count, described, whole));
        assert_int_equal(prepared.begins, CASES[i].begins);
    }
}

static void test_a_unit_that_is_not_complete(void **state)
{
    (void)state;
    struct stream stream = {0};
    add_statement(&stream, "SELECT 1", NULL);
    assert_int_equal(unit_length(stream.bytes, stream.count), 0);
    add_message(&stream, 'S', NULL, 0);
    for (size_t count = 0; count < stream.count; count++)
        assert_int_equal(unit_length(stream.bytes, count), 0);
    assert_int_equal(unit_length("Q\0\0\0\3", 5), MESSAGE_WRONG);
    assert_int_equal(unit_length("Q\x7f\0\0\0", 5), MESSAGE_WRONG);
}

static void test_the_tag_of_begin_is_not_shown(void **state)
{
    (void)state;
    struct stream begin = {0}, update = {0};
    char text[MESSAGE_TEXT] = "";
    add_message(&begin, 'C', "BEGIN", 6);
    describe_tag(begin.bytes, begin.count, text);
    assert_string_equal(text, "");
    add_message(&update, 'C', "UPDATE 1", 9);
    describe_tag(update.bytes, update.count, text);
    assert_string_equal(text, "UPDATE 1");
}

static void test_a_row_and_an_error(void **state)
{
    (void)state;
    struct stream row = {0}, error = {0};
    char text[MESSAGE_TEXT] = "";
    add_message(&row, 'D', "\0\2\0\0\0\1\x37\xff\xff\xff\xff", 11);
    describe_row(row.bytes, row.count, text);
    assert_string_equal(text, "7, NULL");
    text[0] = '\0';
    row.count = 0;
    add_message(&row, 'D', "\0\1\0\0\0\4\0\0\1\2", 10); /* an int4 in binary */
    describe_row(row.bytes, row.count, text);
    assert_string_equal(text, "258");
    add_message(&error, 'E', "SERROR\0C40P01\0Mdeadlock detected\0", 34);
    assert_true(describe_error(error.bytes, error.count, text));
    assert_string_equal(text, "error: deadlock detected");
}

/* ---- statements to their ends ------------------------------------------------------------------------------- */

static void expect_statements(struct prepared_statements *prepared, const struct stream *unit,
                              const char *statements)
{
    char described[MESSAGE_TEXT];
    (void)describe_unit(prepared, unit->bytes, unit->count, described, whole);
    assert_string_equal(whole, statements);
}

static void test_statements_to_their_ends(void **state)
{
    static struct prepared_statements prepared;
    static char text[2000];
    struct stream bound = {0}, two = {0}, known = {0}, unknown = {0};
    (void)state;
    memset(text, 'x', sizeof text - 1);
    add_statement(&bound, text, "7");
    expect_statements(&prepared, &bound, text);
    assert_true(strlen(text) > MESSAGE_TEXT); /* which a description is cut to */
    add_statement(&two, "BEGIN", NULL);
    add_statement(&two, "SELECT 1", NULL);
    add_statement(&two, "SELECT 2", NULL);
    expect_statements(&prepared, &two, "SELECT 1; SELECT 2");
    add_message(&known, 'B', "\0\0\0\0\0\0\0", 8); /* the statement without a name, as it was prepared last */
    add_execute(&known);
    expect_statements(&prepared, &known, "SELECT 2");
    add_message(&unknown, 'B', "\0other\0\0\0\0\0\0", 13);
    add_execute(&unknown);
    expect_statements(&prepared, &unknown, "");
    memset(&prepared, 0, sizeof prepared);
    prepared.count = 1; /* a statement that was too long to keep */
    expect_statements(&prepared, &known, "");
}

/* ---- units ---------------------------------------------------------------------------------------------------- */

static struct gate_connection seen;
static long long memory[48 * 1024];

/* A connection that has started. */
static void begin(void)
{
    assert_true(postgres_protocol.state_size <= sizeof memory);
    memset(memory, 0, sizeof memory);
    seen = (struct gate_connection){.used = true};
    static const char STARTUP[] = "\0\0\0\x08\0\3\0\0";
    assert_int_equal(postgres_protocol.next_unit(memory, &seen, STARTUP, 8).way, UNIT_PASSES);
}

/* The length of the unit whose turn it is at the beginning of STREAM; 0: it is none's. */
static size_t turn(const struct stream *stream)
{
    return postgres_protocol.next_unit(memory, &seen, stream->bytes, stream->count).length;
}

static void answer(char type, const char *body, size_t size)
{
    struct stream stream = {0};
    add_message(&stream, type, body, size);
    assert_int_equal(postgres_protocol.next_answer(memory, &seen, stream.bytes, stream.count), stream.count);
}

static void test_a_unit_waits_for_the_answer_to_the_one_before(void **state)
{
    (void)state;
    begin();
    struct stream first = {0}, second = {0};
    add_message(&first, 'Q', "SELECT 1", 9);
    add_message(&second, 'Q', "SELECT 2", 9);
    assert_int_equal(turn(&first), first.count);
    seen.running = true;
    assert_int_equal(turn(&second), 0);
    assert_string_equal(seen.text, "SELECT 1");
    answer('C', "SELECT 1", 9);
    assert_int_equal(turn(&second), 0);
    answer('Z', "I", 1);
    assert_false(seen.running);
    assert_int_equal(turn(&second), second.count);
    assert_string_equal(seen.text, "SELECT 2");
}

/* PostgreSQL answers Flush without ReadyForQuery. */
static void test_a_unit_follows_a_flush_at_once(void **state)
{
    (void)state;
    begin();
    struct stream prepares = {0}, executes = {0};
    add_message(&prepares, 'P', "\0SELECT 1\0\0", 12);
    add_message(&prepares, 'H', NULL, 0);
    add_statement(&executes, "SELECT 1", NULL);
    add_message(&executes, 'S', NULL, 0);
    assert_int_equal(turn(&prepares), prepares.count);
    assert_int_equal(turn(&executes), executes.count);
    assert_int_equal(turn(&executes), 0);
}

/* A pipeline can ask for answers with Flush, and send more before they come. */
static void test_a_statement_waits_for_the_result_of_one_that_flush_ends(void **state)
{
    (void)state;
    begin();
    struct stream executes = {0}, sync = {0};
    add_statement(&executes, "SELECT 1", NULL);
    add_message(&executes, 'H', NULL, 0);
    add_message(&sync, 'S', NULL, 0);
    assert_int_equal(turn(&executes), executes.count);
    seen.running = true;
    answer('2', NULL, 0);
    assert_int_equal(turn(&executes), 0);
    answer('C', "SELECT 1", 9);
    assert_false(seen.running);
    assert_int_equal(turn(&executes), executes.count);
    seen.running = true;
    answer('E', "SERROR\0C22012\0Mdivision by zero\0", 33);
    assert_false(seen.running); /* no more results up to Sync */
    assert_int_equal(turn(&executes), executes.count);
    assert_int_equal(turn(&sync), sync.count);
    answer('Z', "I", 1);
    assert_int_equal(turn(&executes), executes.count);
    assert_int_equal(turn(&executes), 0);
}

/* Flush also ends a unit that only binds. It has ended when PostgreSQL has bound, and so has taken its snapshot. */
static void test_a_unit_that_binds_ends_with_its_answer(void **state)
{
    (void)state;
    begin();
    struct stream binds = {0}, executes = {0};
    add_portal(&binds, "SELECT 1", NULL);
    add_message(&binds, 'D', "P", 2);
    add_message(&binds, 'H', NULL, 0);
    add_execute(&executes);
    add_message(&executes, 'S', NULL, 0);
    assert_int_equal(turn(&binds), binds.count);
    assert_false(seen.trivial);
    seen.running = true;
    answer('1', NULL, 0);
    assert_true(seen.running);
    assert_int_equal(turn(&executes), 0);
    answer('2', NULL, 0);
    assert_false(seen.running);
    assert_int_equal(turn(&executes), executes.count);
    assert_false(seen.trivial);
}

static void test_the_sync_behind_the_data_of_copy_passes(void **state)
{
    (void)state;
    begin();
    struct stream copy = {0}, data = {0}, sync = {0};
    add_statement(&copy, "COPY t FROM STDIN", NULL);
    add_message(&copy, 'S', NULL, 0);
    add_message(&data, 'd', "1\n", 2);
    add_message(&sync, 'S', NULL, 0);
    assert_int_equal(turn(&copy), copy.count);
    answer('G', "\0\0\0", 3);
    assert_int_equal(turn(&data), data.count);
    assert_int_equal(turn(&sync), sync.count);
    answer('C', "COPY 1", 7);
    answer('Z', "I", 1);
    assert_int_equal(turn(&copy), copy.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_simple_query),
        cmocka_unit_test(test_comments_are_left_out),
        cmocka_unit_test(test_begin_in_one_unit_with_a_statement),
        cmocka_unit_test(test_two_statements_of_a_pipeline),
        cmocka_unit_test(test_nothing_is_executed),
        cmocka_unit_test(test_a_portal_is_executed_in_a_later_unit),
        cmocka_unit_test(test_two_portals),
        cmocka_unit_test(test_a_number_of_a_sequence),
        cmocka_unit_test(test_a_unit_that_begins_a_transaction),
        cmocka_unit_test(test_a_unit_that_is_not_complete),
        cmocka_unit_test(test_the_tag_of_begin_is_not_shown),
        cmocka_unit_test(test_statements_to_their_ends),
        cmocka_unit_test(test_a_row_and_an_error),
        cmocka_unit_test(test_a_unit_waits_for_the_answer_to_the_one_before),
        cmocka_unit_test(test_a_unit_follows_a_flush_at_once),
        cmocka_unit_test(test_a_statement_waits_for_the_result_of_one_that_flush_ends),
        cmocka_unit_test(test_a_unit_that_binds_ends_with_its_answer),
        cmocka_unit_test(test_the_sync_behind_the_data_of_copy_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
