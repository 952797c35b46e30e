/* A disk that can be full, to be preloaded into PostgreSQL: only a number of the bytes written below pg_wal get
 * through. The file that OVERSELL_DISK names holds that number (disk.h); all processes share it, and it may change at any time.
 * The write that meets the end is short, and those after it fail with ENOSPC, as on a copy-on-write file system. */
#include "loadtest/preload/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct disk *disk;

__attribute__((constructor)) static void find_disk(void)
{
    const char *path = getenv("OVERSELL_DISK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map != MAP_FAILED)
        disk = map;
    (void)close(file);
}

static bool is_log(int file)
{
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return strstr(path, "/pg_wal/") != NULL;
}

static bool is_limited(int file)
{
    return disk && __atomic_load_n(&disk->room, __ATOMIC_SEQ_CST) >= 0 && is_log(file);
}

/* How many of SIZE bytes get through. */
static size_t take_room(size_t size)
{
    int64_t room = __atomic_load_n(&disk->room, __ATOMIC_SEQ_CST);
    for (;;) {
        if (room < 0)
            return size;
        size_t through = (uint64_t)room < size ? (size_t)room : size;
        if (__atomic_compare_exchange_n(&disk->room, &room, room - (int64_t)through, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return through;
    }
}

/* As take_room, for FILE; false, with errno, where nothing gets through. */
static bool let_through(int file, size_t *size)
{
    if (*size == 0 || !is_limited(file))
        return true;
    *size = take_room(*size);
    if (*size > 0)
        return true;
    __atomic_fetch_add(&disk->refused, 1, __ATOMIC_SEQ_CST);
    errno = ENOSPC;
    return false;
}

ssize_t write(int file, const void *data, size_t size)
{
    return let_through(file, &size) ? syscall(SYS_write, file, data, size) : -1;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    return let_through(file, &size) ? syscall(SYS_pwrite64, file, data, size, at) : -1;
}

/* Where there is a limit, its first part alone: the caller goes on after a short write. */
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    if (count > 0 && is_limited(file))
        return pwrite(file, parts[0].iov_base, parts[0].iov_len, at);
    return syscall(SYS_pwritev, file, parts, count, at, 0L);
}
