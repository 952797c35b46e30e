/* A clock that can be set wrong, to be preloaded into a program: what clock_gettime, gettimeofday and time say of the time
 * of day is shifted by as many seconds as the file that OVERSELL_CLOCK names says, a binary int64 that may change at any
 * time. The monotonic clock is left alone. It asks the kernel itself, since libfaketime, which asks through the C library,
 * calls itself for ever inside Debian's redis-server. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__((constructor)) static void find_shift(void)
{
    const char *path = getenv("OVERSELL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *map = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED)
        shift = map;
    (void)close(file);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    long status = syscall(SYS_clock_gettime, clock, ret_time);
    if (status == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret_time->tv_sec += *shift;
    return (int)status;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}
