/* Measures what else can delay orders during a sale: slow flushes, late wake-ups, and processor time that is withheld. */
#include "loadtest/openloop/flush_probe.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/stats/cpu_steal.h"
#include "loadtest/stats/hdr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_EVERY_US (FLUSH_EVERY_MS * INT64_C(1000))
#define SECOND_US INT64_C(1000000)
#define FILE_PAGES 128 /* written before the start: a WAL segment has its blocks as well before it is used */

struct flush_probe {
    int fd;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards STOPS */
    pthread_cond_t stopped;
    bool stops;
    int error; /* the thread's, until it has ended; then the caller's, as the histograms */
    struct hdr flush, wakeup;
    struct cpu_ticks begin;      /* of the whole sale */
    double worst_stolen_percent; /* of a second; the thread's until it has ended */
    char page[FLUSH_BYTES];
};

static int write_page(struct flush_probe *probe, int64_t page)
{
    ssize_t written = pwrite(probe->fd, probe->page, FLUSH_BYTES, page % FILE_PAGES * FLUSH_BYTES);
    if (written < 0)
        return errno;
    return written == FLUSH_BYTES ? 0 : ENOSPC;
}

/* Waits until UNTIL_US; false: the probe stops. */
static bool next_turn(struct flush_probe *probe, int64_t until_us)
{
    pthread_mutex_lock(&probe->mutex);
    while (!probe->stops && monotonic_us() < until_us)
        (void)wait_until(&probe->stopped, &probe->mutex, until_us);
    bool goes_on = !probe->stops;
    pthread_mutex_unlock(&probe->mutex);
    return goes_on;
}

/* A second that began at *SECOND has passed; the next one begins. */
static void note_second(struct flush_probe *probe, struct cpu_ticks *second)
{
    struct cpu_ticks now;
    if (!cpu_ticks_read(&now))
        return;
    double stolen = cpu_stolen_percent(second, &now);
    if (stolen > probe->worst_stolen_percent)
        probe->worst_stolen_percent = stolen;
    *second = now;
}

static void *flush_pages(void *context)
{
    struct flush_probe *probe = context;
    int64_t second_us = monotonic_us(), due_us = second_us + FLUSH_EVERY_US;
    struct cpu_ticks second = probe->begin;
    for (int64_t page = 0; probe->error == 0 && next_turn(probe, due_us); page++) {
        int64_t start_us = monotonic_us();
        hdr_add(&probe->wakeup, start_us - due_us);
        probe->error = write_page(probe, page);
        if (probe->error == 0 && fdatasync(probe->fd) != 0)
            probe->error = errno;
        int64_t end_us = monotonic_us();
        if (probe->error == 0)
            hdr_add(&probe->flush, end_us - start_us);
        /* A slow flush skips its missed turns: they would come without a pause, and load the disk. */
        due_us += FLUSH_EVERY_US;
        if (due_us <= end_us)
            due_us = end_us + FLUSH_EVERY_US;
        if (end_us - second_us >= SECOND_US) {
            note_second(probe, &second);
            second_us = end_us;
        }
    }
    return NULL;
}

static int open_file(struct flush_probe *probe, const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/flush.XXXXXX", folder) >= (int)sizeof path)
        return ENAMETOOLONG;
    probe->fd = mkostemp(path, O_CLOEXEC);
    if (probe->fd < 0)
        return errno;
    int error = unlink(path) == 0 ? 0 : errno;
    for (int64_t page = 0; error == 0 && page < FILE_PAGES; page++)
        error = write_page(probe, page);
    return error == 0 && fsync(probe->fd) != 0 ? errno : error;
}

static void probe_free(struct flush_probe *probe)
{
    if (probe->fd >= 0)
        close(probe->fd);
    pthread_cond_destroy(&probe->stopped);
    pthread_mutex_destroy(&probe->mutex);
    free(probe);
}

struct flush_probe *flush_probe_start(const char *folder)
{
    struct flush_probe *probe = calloc(1, sizeof *probe);
    if (!probe) {
        complain("out of memory");
        return NULL;
    }
    probe->fd = -1;
    pthread_mutex_init(&probe->mutex, NULL);
    pthread_cond_init(&probe->stopped, NULL);
    memset(probe->page, 'x', sizeof probe->page);
    int error = open_file(probe, folder);
    sigset_t all, before;
    sigfillset(&all);
    (void)cpu_ticks_read(&probe->begin); /* without times, nothing counts as withheld */
    if (error == 0) {                    /* signals interrupt the main thread's waits, not the probe's */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&probe->thread, NULL, flush_pages, probe);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error == 0)
        return probe;
    complain("cannot measure flushes in %s: %s", folder, strerror(error));
    probe_free(probe);
    return NULL;
}

bool flush_probe_stop(struct flush_probe *probe, struct flushes *ret_flushes)
{
    *ret_flushes = (struct flushes){0};
    if (!probe)
        return true;
    pthread_mutex_lock(&probe->mutex);
    probe->stops = true;
    pthread_cond_signal(&probe->stopped);
    pthread_mutex_unlock(&probe->mutex);
    pthread_join(probe->thread, NULL);
    int error = probe->error;
    struct cpu_ticks end;
    (void)cpu_ticks_read(&end);
    double stolen = cpu_stolen_percent(&probe->begin, &end);
    if (error != 0)
        complain("cannot measure flushes: %s", strerror(error));
    else if (probe->flush.count > 0)
        *ret_flushes = (struct flushes){
            .count = probe->flush.count,
            .p50_ms = (double)hdr_percentile(&probe->flush, 0.5) / 1e3,
            .p99_ms = (double)hdr_percentile(&probe->flush, 0.99) / 1e3,
            .max_ms = (double)probe->flush.max_us / 1e3,
            .wakeup_p99_ms = (double)hdr_percentile(&probe->wakeup, 0.99) / 1e3,
            .stolen_percent = stolen,
            .worst_stolen_percent = fmax(stolen, probe->worst_stolen_percent),
        };
    probe_free(probe);
    return error == 0;
}
