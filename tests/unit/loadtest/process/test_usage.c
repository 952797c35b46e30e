/* Whether processes work or wait, as the kernel says. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "loadtest/process/child.h"
#include "loadtest/process/usage.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Waits until the processes of GROUP work, or until they do not. */
static bool comes_to(pid_t group, bool works)
{
    const int64_t end = monotonic_us() + PATIENCE_US;
    bool has_come = false;
    while (!has_come && monotonic_us() < end) {
        has_come = processes_work(group) == works;
        sleep_us(1000);
    }
    return has_come;
}

static void test_a_process_that_works(void **state)
{
    struct child child;
    struct child_plan plan = {
        .argv = (const char *[]){"sh", "-c", "sh -c 'while :; do :; done' & wait", NULL},
        .log = "/dev/null",
        .death_signal = SIGKILL};
    assert_true(child_start(&plan, &child));
    assert_true(comes_to(child.pid, true)); /* the child of its child */
    child_stop(&child, 1000);
}

static void test_a_process_that_waits(void **state)
{
    struct child child;
    struct child_plan plan = {
        .argv = (const char *[]){"sleep", "1000", NULL}, .log = "/dev/null", .death_signal = SIGKILL};
    assert_true(child_start(&plan, &child));
    assert_true(comes_to(child.pid, false));
    child_stop(&child, 1000);
}

static void *work_until_told(void *context)
{
    atomic_bool *ends = context;
    while (!atomic_load(ends))
        ;
    return NULL;
}

static void test_a_thread_of_this_process(void **state)
{
    pthread_t thread;
    atomic_bool ends = false;
    const pid_t nobody = INT32_MAX;
    assert_true(comes_to(nobody, false));
    assert_int_equal(pthread_create(&thread, NULL, work_until_told, &ends), 0);
    assert_true(comes_to(nobody, true));
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_that_works),
        cmocka_unit_test(test_a_process_that_waits),
        cmocka_unit_test(test_a_thread_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
