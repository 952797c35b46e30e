/* Measures what else can delay orders during a sale. A thread writes a WAL page's size to the disk and flushes it every 20 ms. The
 * probe also measures how late the thread woke up, and how much processor time a hypervisor withheld. */
#ifndef OVERSELL_LOADTEST_OPENLOOP_FLUSH_PROBE_H
#define OVERSELL_LOADTEST_OPENLOOP_FLUSH_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define FLUSH_BYTES 8192 /* a page of PostgreSQL's WAL */
#define FLUSH_EVERY_MS 20

struct flushes {
    int64_t count;                 /* 0: not measured; the rest is then 0 */
    double p50_ms, p99_ms, max_ms; /* of write and fdatasync */
    double wakeup_p99_ms;          /* how late the thread woke up, the 99th percentile */
    /* processor time that a hypervisor withheld: of the whole sale, and of its worst second */
    double stolen_percent;
    double worst_stolen_percent;
};

struct flush_probe;

/* Starts the thread, with a file in FOLDER that has no name. NULL, having said why on stderr. */
struct flush_probe *flush_probe_start(const char *folder);
/* Stops the thread and frees PROBE (NULL: *ret_flushes is empty). False if a write failed, having said why on stderr. */
bool flush_probe_stop(struct flush_probe *probe, struct flushes *ret_flushes);

#endif
