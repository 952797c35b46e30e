/* Child processes: what they write, how they end, and that they never outlive who started them. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include "loadtest/process/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

#define SHELL(script) ((const char *[]){"sh", "-c", script, NULL})

static struct child start(const char *const *argv)
{
    struct child child;
    struct child_plan plan = {.argv = argv, .log = "/dev/null", .death_signal = SIGKILL};
    assert_true(child_start(&plan, &child));
    return child;
}

/* Waits until SCRIPT has written something, which RET_TEXT gets. */
static struct child started(const char *script, char ret_text[static 32])
{
    struct child child;
    struct child_plan plan = {
        .argv = SHELL(script), .log = "/dev/null", .pipe_out = true, .death_signal = SIGKILL};
    const int64_t end = monotonic_us() + PATIENCE_US;
    assert_true(child_start(&plan, &child));
    memset(ret_text, 0, 32);
    while (read(child.out, ret_text, 31) <= 0 && monotonic_us() < end)
        sleep_us(1000);
    return child;
}

static void test_output(void **state)
{
    const char *env[] = {"GREETING=hello", "HOME", NULL};
    struct child_plan plan = {.argv = SHELL("echo $GREETING ${HOME-homeless}; cat"),
                              .env = env,
                              .log = "/dev/null",
                              .death_signal = SIGKILL};
    char *text = child_output(plan, LONG_MS, 100);
    assert_non_null(text);
    assert_string_equal(text, "hello homeless\n");
    free(text);
}

static void test_output_has_bounds(void **state)
{
    struct child_plan plan = {.log = "/dev/null", .death_signal = SIGKILL};
    plan.argv = SHELL("exit 3");
    assert_null(child_output(plan, LONG_MS, 100));
    plan.argv = SHELL("yes");
    assert_null(child_output(plan, LONG_MS, 100));
    plan.argv = SHELL("sleep 100");
    assert_null(child_output(plan, 50, 100));
    plan.argv = (const char *[]){"/nonexistent/program", NULL};
    assert_null(child_output(plan, LONG_MS, 100));
}

static void test_status(void **state)
{
    char text[64];
    struct child child = start(SHELL("exit 7"));
    assert_true(child_wait(&child, LONG_MS, false));
    assert_string_equal(child_status_text(&child, text), "exit status 7");
    child = start(SHELL("kill -9 $$"));
    assert_true(child_wait(&child, LONG_MS, false));
    assert_string_equal(child_status_text(&child, text), "killed by signal 9 (Killed)");
    assert_true(child_ended(&child)); /* again, and it is still so */
}

static void test_stop_is_polite_then_not(void **state)
{
    char text[32];
    struct child child = started("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done", text);
    child_stop(&child, LONG_MS);
    assert_int_equal(child.pid, 0);
    assert_int_equal(WEXITSTATUS(child.status), 5);

    child = started("trap '' TERM; echo ready; while :; do sleep 0.01; done", text);
    child_stop(&child, 100);
    assert_true(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL);
}

/* The process that a shell has started is stopped with it. */
static void test_stop_reaches_the_whole_group(void **state)
{
    char text[32];
    const int64_t end = monotonic_us() + PATIENCE_US;
    struct child child = started("sleep 100 & echo $!; wait", text);
    pid_t grandchild = (pid_t)atoi(text);
    assert_true(grandchild > 1);
    child_stop(&child, LONG_MS);
    while (kill(grandchild, 0) == 0 && monotonic_us() < end)
        sleep_us(1000);
    assert_int_equal(kill(grandchild, 0), -1);
    assert_int_equal(errno, ESRCH);
}

/* Whoever dies without a word takes its children along. */
static void test_children_die_with_their_parent(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct child child;
        struct child_plan plan = {
            .argv = SHELL("exec sleep 100"), .log = "/dev/null", .death_signal = SIGKILL};
        if (child_start(&plan, &child))
            (void)!write(ends[1], &child.pid, sizeof child.pid);
        sleep_us(50000); /* the child has had time to ask for the signal */
        _exit(0);
    }
    pid_t orphan = 0;
    assert_int_equal(read(ends[0], &orphan, sizeof orphan), sizeof orphan);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    int64_t end = monotonic_us() + PATIENCE_US;
    char path[64], stat[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)orphan);
    bool gone = false;
    while (!gone && monotonic_us() < end) {
        FILE *file = fopen(path, "r"); /* gone, or a zombie that nobody collects in a container */
        gone = !file || !fgets(stat, sizeof stat, file) || strstr(stat, ") Z");
        if (file)
            fclose(file);
        sleep_us(1000);
    }
    assert_true(gone);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_output_has_bounds),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_stop_is_polite_then_not),
        cmocka_unit_test(test_stop_reaches_the_whole_group),
        cmocka_unit_test(test_children_die_with_their_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
