/* Child processes that cannot outlive the load test: started in their own process group, and ended with it. */
#include "loadtest/process/child.h"

#include "base/clock.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/plain_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 5
#define KILL_MS 5000 /* for a killed process to be gone */
#define TAIL_BYTES 16384

/* ---- starting ------------------------------------------------------------------------------------------ */

/* In the child, from fork to exec; never returns. */
__attribute__((noreturn)) static void become(const struct child_plan *plan, pid_t parent, int out)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* handlers end with exec, an ignored signal would stay ignored */

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, plan->death_signal);
    if (getppid() != parent)
        _exit(127); /* the parent died before prctl */

    int in = plan->in > 0 ? plan->in : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int log = plan->log ? open(plan->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : STDERR_FILENO;
    if (in < 0 || log < 0 || dup2(in, 0) < 0 || dup2(out >= 0 ? out : log, 1) < 0 || dup2(log, 2) < 0)
        _exit(127);
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (plan->folder && chdir(plan->folder) != 0) {
        fprintf(stderr, "cannot enter %s: %s\n", plan->folder, strerror(errno));
        _exit(127);
    }

    for (size_t i = 0; plan->env && plan->env[i]; i++) {
        /* putenv takes a bare name away (glibc), and keeps the string, which exec copies. */
        if (putenv((char *)plan->env[i]) != 0)
            _exit(127);
    }
    execvp(plan->argv[0], (char *const *)plan->argv); /* which changes neither */
    fprintf(stderr, "cannot run %s: %s\n", plan->argv[0], strerror(errno));
    _exit(127);
}

bool child_start(const struct child_plan *plan, struct child *ret_child)
{
    int pipe_ends[2] = {-1, -1};
    if (plan->pipe_out && pipe2(pipe_ends, O_CLOEXEC) != 0)
        return false;

    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(plan, parent, pipe_ends[1]);

    int error = errno;
    if (pipe_ends[1] >= 0)
        close(pipe_ends[1]);
    if (pid < 0) {
        if (pipe_ends[0] >= 0)
            close(pipe_ends[0]);
        errno = error;
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that neither has to wait for the other */
    if (pipe_ends[0] >= 0)
        (void)fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    *ret_child = (struct child){.pid = pid, .out = pipe_ends[0] > 0 ? pipe_ends[0] : 0};
    return true;
}

/* ---- waiting and ending -------------------------------------------------------------------------------- */

bool child_ended(struct child *child)
{
    if (child->pid == 0)
        return true;
    pid_t pid = waitpid(child->pid, &child->status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    child->pid = 0;
    return true;
}

bool child_wait(struct child *child, int64_t ms, bool interruptible)
{
    int64_t end = monotonic_us() + ms * 1000;
    while (!child_ended(child)) {
        if (monotonic_us() >= end || (interruptible && interrupted()))
            return false;
        (void)poll(NULL, 0, POLL_MS);
    }
    return true;
}

void child_signal(const struct child *child, int signal_number)
{
    if (child->pid > 0)
        (void)kill(-child->pid, signal_number); /* it may have ended meanwhile */
}

void child_stop(struct child *child, int64_t grace_ms)
{
    if (child->pid > 0) {
        child_signal(child, SIGTERM);
        if (!child_wait(child, grace_ms, false)) {
            child_signal(child, SIGKILL);
            (void)child_wait(child, KILL_MS, false);
        }
    }
    if (child->out > 0)
        close(child->out);
    child->out = 0;
}

const char *child_status_text(const struct child *child, char *buffer)
{
    if (WIFSIGNALED(child->status))
        snprintf(buffer, 64, "killed by signal %d (%s)", WTERMSIG(child->status),
                 strsignal(WTERMSIG(child->status)));
    else
        snprintf(buffer, 64, "exit status %d", WEXITSTATUS(child->status));
    return buffer;
}

/* ---- output -------------------------------------------------------------------------------------------- */

char *child_output(struct child_plan plan, int64_t ms, size_t max)
{
    struct child child;
    plan.pipe_out = true;
    char *text = malloc(max + 1);
    if (!text || !child_start(&plan, &child)) {
        free(text);
        return NULL;
    }

    int64_t end = monotonic_us() + ms * 1000;
    size_t length = 0;
    bool complete = false;
    while (!complete && length < max && monotonic_us() < end && !interrupted()) {
        struct pollfd wait = {.fd = child.out, .events = POLLIN};
        if (poll(&wait, 1, 50) <= 0)
            continue;
        ssize_t got = read(child.out, text + length, max - length);
        if (got > 0)
            length += (size_t)got;
        else if (got == 0)
            complete = true;
        else if (errno != EAGAIN && errno != EINTR)
            break;
    }
    text[length] = 0;
    bool ok = complete && child_wait(&child, 1000, true) && child.status == 0;
    child_stop(&child, 1000);
    if (!ok) {
        free(text);
        return NULL;
    }
    return text;
}

void print_log_tail(const char *path, int lines)
{
    FILE *log = fopen(path, "re");
    if (!log)
        return;
    static char text[TAIL_BYTES + 1];
    if (fseek(log, -TAIL_BYTES, SEEK_END) != 0)
        rewind(log);
    size_t length = fread(text, 1, TAIL_BYTES, log);
    fclose(log);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = 0;

    char *from = text + length;
    for (int found = 0; from > text && !(from[-1] == '\n' && ++found == lines); from--)
        ;
    for (char *rest = *from ? from : NULL, *line; (line = strsep(&rest, "\n"));)
        plain_print(stderr, "  | %s\n", line);
}
