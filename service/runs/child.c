/* A child process of the service, the load test or the explorer, which the kernel ends when its thread ends. */
#include "service/runs/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_NS = 5000000 };

/* In the child, from fork to exec. Other threads may hold any lock of the C library at the fork, so only calls that
 * are safe in a signal handler come here. */
__attribute__((noreturn)) static void become(const char *const *argv, const char *const *envp, pid_t parent,
                                             int in, int out, int err)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (in < 0)
        in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (getppid() == parent && in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) {
        close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
        execve(argv[0], (char *const *)argv, (char *const *)envp); /* which changes neither */
        static const char MESSAGE[] =
            "the load test is not beside the service: build/loadtest cannot be run\n";
        (void)!write(2, MESSAGE, sizeof MESSAGE - 1);
    }
    _exit(127);
}

static void close_pair(const int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

bool run_child_start(const char *const *argv, const char *const *envp, bool talks,
                     struct run_child *ret_child)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;
    if ((!talks || pipe2(in, O_CLOEXEC) == 0) && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0)
        pid = fork();
    if (pid == 0)
        become(argv, envp, parent, in[0], out[1], err[1]);
    int error = errno;
    if (pid < 0) {
        close_pair(in);
        close_pair(out);
        close_pair(err);
        errno = error;
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that neither has to wait for the other */
    if (talks)
        close(in[0]);
    close(out[1]);
    close(err[1]);
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
    *ret_child = (struct run_child){pid, in[1], out[0], err[0]};
    return true;
}

int run_child_end(struct run_child *child, int64_t deadline_us)
{
    int status = 0;
    bool killed = false;
    for (pid_t pid; (pid = waitpid(child->pid, &status, WNOHANG)) == 0 || (pid < 0 && errno == EINTR);) {
        if (!killed && monotonic_us() >= deadline_us) {
            (void)kill(-child->pid, SIGKILL);
            killed = true;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    if (child->in >= 0)
        close(child->in);
    close(child->out);
    close(child->err);
    return status;
}
