/* An explorer for the step-through: a child process that answers a line with a line. It keeps no state between two questions,
 * so the service can end it at any time and start another one for the next question. */
#include "service/runs/explorer.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "service/runs/child.h"
#include "service/runs/lab_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MAX = 4 * 1024 * 1024,
    COMPLAINT_MAX = 400,
    END_US = 5000000, /* to drop its schema in */
};

struct explorer {
    struct run_child child;
    char *answer; /* LENGTH bytes, without an end */
    size_t length, room;
};

static struct explorer *start(const struct config *config)
{
    struct explorer *explorer = calloc(1, sizeof *explorer);
    size_t ours = 0;
    char program[PATH_MAX], **env = lab_environment(config, &ours);
    const char *const words[] = {program, "explore", "--serve", NULL};
    bool started = explorer && env && lab_program(program, sizeof program) &&
                   run_child_start(words, (const char *const *)env, true, &explorer->child);
    lab_environment_free(env, ours);
    if (started)
        return explorer;
    free(explorer);
    return NULL;
}

/* Its error messages go to the log. */
static void log_complaint(int err)
{
    char text[COMPLAINT_MAX + 1];
    ssize_t got = read(err, text, COMPLAINT_MAX);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (*text)
        log_line(LOG_WARNING, "explorer: %s", text);
}

static void end(struct explorer *explorer, int64_t deadline_us)
{
    close(explorer->child.in); /* it takes that for its end */
    explorer->child.in = -1;
    (void)run_child_end(&explorer->child, deadline_us);
    free(explorer->answer);
    free(explorer);
}

void explorer_end(struct explorer *explorer)
{
    if (explorer)
        end(explorer, monotonic_us() + END_US);
}

static bool send_line(const struct explorer *explorer, const char *line)
{
    size_t length = strlen(line); /* which is less than a pipe takes, and the pipe is empty */
    return write(explorer->child.in, line, length) == (ssize_t)length &&
           write(explorer->child.in, "\n", 1) == 1;
}

static bool make_room(struct explorer *explorer)
{
    enum { LEAST = 16384 };
    if (explorer->room - explorer->length >= LEAST)
        return true;
    size_t room = (explorer->room + LEAST) * 2;
    char *more = room <= ANSWER_MAX ? realloc(explorer->answer, room) : NULL;
    if (!more)
        return false;
    explorer->answer = more;
    explorer->room = room;
    return true;
}

/* Reads up to the end of its line; false at its end, or at the deadline. */
static bool read_line(struct explorer *explorer, int64_t deadline_us)
{
    struct pollfd out = {.fd = explorer->child.out, .events = POLLIN};
    explorer->length = 0;
    for (int64_t left_us; (left_us = deadline_us - monotonic_us()) > 0;) {
        if (poll(&out, 1, (int)(left_us / 1000) + 1) <= 0)
            continue;
        if (!make_room(explorer))
            return false;
        ssize_t got = read(out.fd, explorer->answer + explorer->length, explorer->room - explorer->length);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (got > 0)
            explorer->length += (size_t)got;
        if (explorer->length > 0 && explorer->answer[explorer->length - 1] == '\n')
            return true;
    }
    return false;
}

/* An explorer that ended after the last question does not answer; then a new one is started and asked. */
static bool ask(struct explorer *explorer, const char *line, int64_t deadline_us, json_t **ret_answer)
{
    bool answered = send_line(explorer, line) && read_line(explorer, deadline_us);
    log_complaint(explorer->child.err); /* also so that the pipe never fills */
    if (!answered)
        return false;
    json_error_t error;
    *ret_answer = json_read(explorer->answer, explorer->length, 0, &error);
    return *ret_answer != NULL;
}

enum explorer_answer explorer_ask(struct explorer **explorer, const struct config *config,
                                  const json_t *question, int64_t deadline_us, json_t **ret_answer)
{
    char program[PATH_MAX];
    if (!lab_program(program, sizeof program) || access(program, X_OK) != 0)
        return EXPLORER_MISSING;
    char *line = json_dumps(question, JSON_COMPACT);
    bool answered = false;
    for (bool is_new = false; line && !answered && !is_new && monotonic_us() < deadline_us;) {
        is_new = *explorer == NULL;
        if (is_new && (*explorer = start(config)) == NULL)
            break;
        answered = ask(*explorer, line, deadline_us, ret_answer);
        if (!answered) {
            end(*explorer, monotonic_us());
            *explorer = NULL;
        }
    }
    free(line);
    return answered ? EXPLORER_ANSWERED : EXPLORER_SILENT;
}
