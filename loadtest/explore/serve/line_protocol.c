/* `loadtest explore --serve`: the step-through page's explorer. The service writes each question as a line of JSON to stdin, and
 * reads the answer as a line of JSON from stdout. */
#include "base/clock.h"
#include "loadtest/cli/commands.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/explore/serve/step_through.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum {
    LINE_MOST = 64 * 1024,
    IDLE_MS = 60000,
    LOOK_MS = 200,   /* how soon an interrupt is seen */
    QUESTION_S = 60, /* no question takes so long; if one does the process ends, whatever it waits for */
};

/* Waits for input. False: interrupted, or nothing was asked for IDLE_MS. */
static bool is_asked(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    for (int64_t until_us = monotonic_us() + (int64_t)IDLE_MS * 1000; monotonic_us() < until_us;) {
        int ready = poll(&in, 1, LOOK_MS);
        if (interrupted() || (ready < 0 && errno != EINTR))
            return false;
        if (ready > 0)
            return true;
    }
    return false;
}

/* Reads one line, byte by byte, so that the next one stays in the pipe. False: end of input, or the line is too long. */
static bool read_line(char *ret_line)
{
    size_t length = 0;
    while (length < LINE_MOST && is_asked()) {
        ssize_t got = read(STDIN_FILENO, ret_line + length, 1);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got == 1 && ret_line[length++] == '\n') {
            ret_line[length - 1] = '\0';
            return true;
        }
    }
    return false;
}

static bool write_answer(json_t *answer)
{
    bool written = answer && json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
                   fputc('\n', stdout) != EOF && fflush(stdout) == 0;
    json_decref(answer);
    return written;
}

int explore_serve(const char *url)
{
    static struct stepper stepper;
    static char line[LINE_MOST + 1];
    bool ok = true;
    stepper.url = url;
    interrupt_watch();
    while (ok && read_line(line)) {
        bool broken = false;
        json_t *question = json_loads(line, 0, NULL);
        (void)alarm(QUESTION_S);
        ok = write_answer(stepper_answer(&stepper, question, &broken)) && !broken;
        json_decref(question);
        (void)alarm(0); /* or it would come just before IDLE_MS are over */
    }
    (void)alarm(QUESTION_S);
    stepper_close(&stepper);
    return interrupted() ? 128 + interrupted() : ENDED_AS_EXPECTED;
}
