/* Places preload libraries where the users that the servers run as can read them. */
#include "loadtest/testbed/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { COPY_MODE = 0644, PART = 1 << 20 };

/* The part of PATH before its last slash; "/" at the top. */
static void cut_last_name(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path] = 0;
}

bool others_can_enter(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    if (!realpath(folder, path))
        return false;
    for (;; cut_last_name(path)) {
        if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode) || !(status.st_mode & S_IXOTH))
            return false;
        if (strcmp(path, "/") == 0)
            return true;
    }
}

static bool others_can_read(const char *file)
{
    char folder[PATH_MAX];
    struct stat status;
    if (!realpath(file, folder) || stat(folder, &status) != 0 || !(status.st_mode & S_IROTH))
        return false;
    cut_last_name(folder);
    return others_can_enter(folder);
}

static bool copy_all(int from, int to)
{
    ssize_t count;
    do
        count = sendfile(to, from, NULL, PART);
    while (count > 0);
    return count == 0 && fchmod(to, COPY_MODE) == 0;
}

/* Only we write to the folder of TO, so an existing file is our copy. */
static bool copy_file(const char *from, const char *to)
{
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        return false;
    int copy = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, COPY_MODE);
    bool made = copy >= 0 ? copy_all(source, copy) : errno == EEXIST;
    int reason = errno;
    close(source);
    if (copy >= 0 && close(copy) != 0 && made) {
        made = false;
        reason = errno;
    }
    if (!made && copy >= 0)
        (void)unlink(to);
    errno = reason;
    return made;
}

bool preload_place(const char *library, const char *folder, char *ret_path, char *ret_reason, size_t size)
{
    struct statvfs system;
    if (geteuid() != 0 || others_can_read(library)) {
        snprintf(ret_path, PATH_MAX, "%s", library);
        return true;
    }
    const char *slash = strrchr(library, '/');
    if (statvfs(folder, &system) == 0 && (system.f_flag & ST_NOEXEC)) {
        snprintf(
            ret_reason, size,
            "%s is mounted noexec, so servers cannot load a library from there; set TMPDIR to another folder",
            folder);
        return false;
    }
    if (snprintf(ret_path, PATH_MAX, "%s%s", folder, slash ? slash : library) < PATH_MAX &&
        copy_file(library, ret_path))
        return true;
    snprintf(ret_reason, size, "cannot copy %s to %s, where servers can read it: %s", library, folder,
             strerror(errno));
    return false;
}

bool preload_find(enum path path, const char *what, const char *folder, char *ret_path, char *ret_reason,
                  size_t size)
{
    char library[PATH_MAX];
    if (path_of(path, library))
        return preload_place(library, folder, ret_path, ret_reason, size);
    snprintf(ret_reason, size, "the library for the %s is missing: run make", what);
    return false;
}
