/* The requests of an event: how many are shown, and that the number of the others is said. */
#include "tests/unit/unit.h"

#include "loadtest/explore/explain/sent_requests.h"

#include <stdlib.h>

static struct execution execution;

static void send(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        record_answer(record_request("redis", NULL, "PING", NULL, 0), "PONG");
}

/* Actor A sends COUNT requests, and reports an event. */
static void send_and_stop(unsigned count)
{
    send(count);
    trace_event(&execution.trace, 0, STEP_LOCK, STEP_NO_VALUE);
}

static int set_up(void **state)
{
    execution = (struct execution){.settings.actors = 2, .settings.records = true};
    trace_init(&execution.trace);
    execution.trace.recorders[0] = thread_recorder = recorder_new();
    return thread_recorder ? 0 : -1;
}

static int tear_down(void **state)
{
    thread_recorder = NULL;
    trace_destroy(&execution.trace);
    return 0;
}

static void assert_step(size_t event, size_t sent, json_int_t left_out)
{
    json_t *step = json_object();
    sent_set(&execution, event, step);
    assert_int_equal(json_array_size(json_object_get(step, "sent")), sent);
    assert_int_equal(json_integer_value(json_object_get(step, "sent_left_out")), left_out);
    assert_int_equal(json_object_get(step, "sent_left_out") != NULL, left_out > 0);
    json_decref(step);
}

static void test_an_event_shows_a_bounded_number(void **state)
{
    send_and_stop(3);
    send_and_stop(SENT_MAX);
    send_and_stop(SENT_MAX + 1);
    send_and_stop(0);
    assert_step(0, 3, 0);
    assert_step(1, SENT_MAX, 0);
    assert_step(2, SENT_MAX, 1);
    assert_step(3, 0, 0);
}

static void test_requests_that_the_recorder_has_not_kept(void **state)
{
    send_and_stop(RECORDED_MAX - 2);
    send_and_stop(5);
    send_and_stop(7);
    assert_step(0, SENT_MAX, RECORDED_MAX - 2 - SENT_MAX);
    assert_step(1, 2, 3);
    assert_step(2, 0, 7);
}

static void test_an_actor_that_is_not_recorded(void **state)
{
    trace_event(&execution.trace, 1, STEP_LOCK, STEP_NO_VALUE);
    assert_step(0, 0, 0);
}

static void test_a_terminal_says_it_too(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    send_and_stop(SENT_MAX + 2);
    send_and_stop(1);
    sent_print(&execution, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "\n    2 more requests are not shown\n"));
    assert_null(strstr(text, "more request is"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_event_shows_a_bounded_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests_that_the_recorder_has_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_actor_that_is_not_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_terminal_says_it_too, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
