/* Shims: libraries that are preloaded into a server to simulate a wrong clock or a full disk. */
#include "loadtest/faults/testbed/shim.h"

#include "loadtest/cli/complain.h"
#include "loadtest/testbed/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct shim clock_shim = {PATH_CLOCK, "clock", "OVERSELL_CLOCK"};
const struct shim disk_shim = {PATH_DISK, "full disk", "OVERSELL_DISK"};

bool shim_prepare(const struct testbed *testbed, const struct shim *shim, const char *file,
                  struct shim_environment *ret_environment, char *ret_reason, size_t size)
{
    struct shim_environment *e = ret_environment;
    char library[PATH_MAX];
    if (!preload_find(shim->library, shim->simulates, testbed->dir, library, ret_reason, size))
        return false;
    snprintf(e->preload, sizeof e->preload, "LD_PRELOAD=%s", library);
    snprintf(e->file, sizeof e->file, "%s=%s/%s", shim->variable, testbed->dir, file);
    e->variables[0] = e->preload;
    e->variables[1] = e->file;
    e->variables[2] = NULL;
    return true;
}

bool shim_set(const struct testbed *testbed, const char *file, const char *what, const void *data,
              size_t size)
{
    char path[PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/%s", testbed->dir, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool written = fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size;
    if (!written)
        complain("cannot set %s %s: %s", what, path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return written;
}
