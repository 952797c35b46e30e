/* What the kernel says of a process: its memory and its open files. */
#include "loadtest/process/usage.h"

#include "loadtest/cli/complain.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
