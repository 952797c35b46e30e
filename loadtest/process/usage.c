/* What the kernel says of a process: its memory, its open files, and whether it has work. */
#include "loadtest/process/usage.h"

#include "loadtest/cli/complain.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool failed(const char *path)
{
    complain("%s: %s", path, errno ? strerror(errno) : "not as it should be");
    return false;
}

bool process_memory(pid_t pid, const char *what, int64_t *ret_bytes)
{
    char path[64], line[256];
    size_t length = strlen(what);
    int64_t kib = -1;
    errno = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, what, length) == 0 && line[length] == ':')
            kib = strtoll(line + length + 1, NULL, 10);
    if (file)
        fclose(file);
    if (kib < 0)
        return failed(path);
    *ret_bytes = kib * 1024;
    return true;
}

bool process_files(pid_t pid, int64_t *ret_count)
{
    char path[64];
    int64_t count = 0;
    errno = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return failed(path);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += entry->d_name[0] != '.';
    closedir(dir);
    *ret_count = count;
    return true;
}

/* The state and the process group in a file .../stat. The name before them may have any character, so the last bracket ends it. */
static bool read_stat(const char *path, char *ret_state, pid_t *ret_group)
{
    char text[512];
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    int group;
    if (!name_end || sscanf(name_end + 1, " %c %*d %d", ret_state, &group) != 2)
        return false;
    *ret_group = group;
    return true;
}

static bool a_thread_works(const char *process, pid_t without)
{
    char path[600];
    bool works = false;
    snprintf(path, sizeof path, "/proc/%s/task", process);
    DIR *tasks = opendir(path);
    if (!tasks)
        return false;
    for (const struct dirent *entry = readdir(tasks); entry && !works; entry = readdir(tasks)) {
        char state;
        pid_t group;
        snprintf(path, sizeof path, "/proc/%s/task/%s/stat", process, entry->d_name);
        works = entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != without &&
                read_stat(path, &state, &group) && (state == 'R' || state == 'D');
    }
    closedir(tasks);
    return works;
}

bool processes_work(pid_t group)
{
    char path[300];
    bool works = a_thread_works("self", gettid());
    DIR *processes = opendir("/proc");
    if (!processes)
        return works;
    for (const struct dirent *entry = readdir(processes); entry && !works; entry = readdir(processes)) {
        char state;
        pid_t its_group;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        works = read_stat(path, &state, &its_group) && its_group == group && a_thread_works(entry->d_name, 0);
    }
    closedir(processes);
    return works;
}
