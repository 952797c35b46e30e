/* The command that lockrun runs: started so that it does not outlive lockrun and inherits no connection of a lock; given the
 * signals that lockrun gets; waited for. */
#include "tools/lockrun/main.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INHERITED_MAX = 256 };

static pthread_mutex_t child_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t child; /* the command while it runs */
enum { NOT_STARTED = 0, ENDED = -1 };

static void die_of(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

void lockrun_signal(int number)
{
    pthread_mutex_lock(&child_mutex);
    if (child > 0)
        kill(child, number);
    pthread_mutex_unlock(&child_mutex);
}

/* Takes signals from the start to the end: while the lock is waited for they end lockrun at once. */
static void *pass_signals_on(void *arg)
{
    const sigset_t *signals = arg;
    while (true) {
        siginfo_t info;
        int number = sigwaitinfo(signals, &info);
        if (number < 0)
            continue;
        pthread_mutex_lock(&child_mutex);
        if (child == NOT_STARTED)
            die_of(number);
        else if (child > 0 && info.si_code != SI_KERNEL) /* the terminal's went to the command as well */
            kill(child, number);
        pthread_mutex_unlock(&child_mutex);
    }
    return NULL;
}

bool lockrun_take_signals(sigset_t *ret_before)
{
    static sigset_t passed;
    sigset_t all;
    pthread_t thread;
    sigemptyset(&passed);
    sigaddset(&passed, SIGINT);
    sigaddset(&passed, SIGTERM);
    sigaddset(&passed, SIGHUP);
    all = passed;
    sigaddset(&all, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the command's status away */
    pthread_sigmask(SIG_BLOCK, &all, ret_before);
    if (pthread_create(&thread, NULL, pass_signals_on, &passed) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

/* ---- starting it, and its end ---------------------------------------------------------------------------- */

/* Descriptors that we were given, and pass on; what we open ourselves, such as the lock's connection, is not the
 * command's: it would keep a lock that dies with its connection alive after us. */
static unsigned inherited[INHERITED_MAX];
static int inherited_count;

static int compare(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    return (left > right) - (left < right);
}

void lockrun_note_inherited(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) && inherited_count < INHERITED_MAX) {
        unsigned fd = (unsigned)strtoul(entry->d_name, NULL, 10);
        if (isdigit((unsigned char)entry->d_name[0]) && fd > 2 && fd != (unsigned)dirfd(folder))
            inherited[inherited_count++] = fd;
    }
    if (folder)
        closedir(folder);
    qsort(inherited, (size_t)inherited_count, sizeof inherited[0], compare);
}

/* In the child. */
static void close_ours(void)
{
    unsigned first = 3;
    for (int i = 0; i < inherited_count; first = inherited[i++] + 1)
        if (first < inherited[i])
            close_range(first, inherited[i] - 1, CLOSE_RANGE_CLOEXEC);
    close_range(first, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* In the child, after fork() in a process with threads: system calls only. REPORT gets errno where it fails. */
static void become(char *const command[], pid_t parent, const sigset_t *mask, int report)
{
    /* Whoever kills us kills the command; it may have happened before we could ask for that. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(EXIT_OURS);
    close_ours();
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    int error = errno;
    (void)!write(report, &error, sizeof error);
    _exit(error == ENOENT ? EXIT_MISSING : EXIT_CANNOT);
}

/* The mutex is held. */
static int start(char *const command[], const sigset_t *mask)
{
    int report[2], error = 0;
    if (pipe2(report, O_CLOEXEC) != 0) {
        fprintf(stderr, "lockrun: pipe: %s\n", strerror(errno));
        return EXIT_OURS;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(command, parent, mask, report[1]);
    child = pid > 0 ? pid : ENDED;
    close(report[1]);
    if (pid < 0) {
        fprintf(stderr, "lockrun: fork: %s\n", strerror(errno));
        close(report[0]);
        return EXIT_OURS;
    }
    ssize_t got;
    while ((got = read(report[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(report[0]);
    if (got == (ssize_t)sizeof error)
        fprintf(stderr, "lockrun: %s: %s\n", command[0], strerror(error));
    return 0;
}

int lockrun_start(char *const command[], const sigset_t *mask)
{
    /* A signal from here on is for the command: ended by it now, we would leave the lock behind. */
    pthread_mutex_lock(&child_mutex);
    int status = start(command, mask);
    pthread_mutex_unlock(&child_mutex);
    return status;
}

bool lockrun_has_ended(int64_t ms, int *ret_status)
{
    int status = EXIT_OURS << 8;
    sigset_t death;
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    sigemptyset(&death);
    sigaddset(&death, SIGCHLD);
    (void)sigtimedwait(&death, NULL, &limit);
    pthread_mutex_lock(&child_mutex); /* nobody signals a number that is free again */
    bool ended = waitpid(child, &status, WNOHANG) != 0;
    if (ended)
        child = ENDED;
    pthread_mutex_unlock(&child_mutex);
    if (ended)
        *ret_status = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    return ended;
}
