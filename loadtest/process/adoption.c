/* Stops processes that have left the process group of the child that started them. */
#include "loadtest/process/adoption.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 20, KILL_MS = 5000 };

/* The parent of process PID; 0: there is no such process. The name before it, in parentheses, may contain anything. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    return after && strlen(after) > 4 ? (pid_t)strtol(after + 4, NULL, 10) : 0; /* ") S 123" */
}

/* Writes the children of this process; returns their number, at most SIZE. */
static size_t list_children(pid_t *ret_children, size_t size)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    if (!folder)
        return 0;
    for (const struct dirent *entry; count < size && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == getpid())
            ret_children[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
    (void)closedir(folder);
    return count;
}

void adoption_begin(struct adoption *ret_adoption)
{
    ret_adoption->count = list_children(ret_adoption->known, ADOPTION_KNOWN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_known(const struct adoption *adoption, pid_t pid)
{
    for (size_t i = 0; i < adoption->count; i++)
        if (adoption->known[i] == pid)
            return true;
    return false;
}

/* Sends a signal to the adopted children, and collects those that have ended. True: there is none left. */
static bool signal_adopted(const struct adoption *adoption, int signal_number)
{
    pid_t children[ADOPTION_KNOWN];
    size_t count = list_children(children, ADOPTION_KNOWN);
    bool none = true;
    for (size_t i = 0; i < count; i++) {
        if (is_known(adoption, children[i]))
            continue;
        none = false;
        (void)kill(children[i], signal_number);
        (void)waitpid(children[i], NULL, WNOHANG);
    }
    return none;
}

void adoption_end(const struct adoption *adoption, int64_t grace_ms)
{
    int64_t grace_us = monotonic_us() + grace_ms * 1000, end_us = grace_us + (int64_t)KILL_MS * 1000;
    int first = SIGTERM; /* then only look, until the grace is over */
    while (monotonic_us() < end_us &&
           !signal_adopted(adoption, monotonic_us() < grace_us ? first : SIGKILL)) {
        first = 0;
        (void)poll(NULL, 0, POLL_MS);
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
}
