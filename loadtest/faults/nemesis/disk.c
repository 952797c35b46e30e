/* The fault disk-full: no room is left for PostgreSQL's write-ahead log. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/preload/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_LIMIT (-1)
#define ROOM_MOST (256 << 10) /* bytes of log that still fit: dozens of orders */
#define FULL_MOST_MS 1000     /* it stays full for up to this long after that */
#define REFUSED_MS 60000
#define SERVICES_MS 60000
#define POLL_MS 10
#define FILE_NAME "disk-room"

static const char *const POSTGRES[] = {"postgres", NULL};

/* PostgreSQL counts in the file. When root runs the fault lab, PostgreSQL runs as another user, who owns its folder and gets the
 * file. */
static bool give_to_postgres(const struct testbed *testbed)
{
    char folder[PATH_MAX + 48], file[PATH_MAX + 48];
    struct stat status;
    snprintf(folder, sizeof folder, "%s/postgres", testbed->stack_dir);
    snprintf(file, sizeof file, "%s/" FILE_NAME, testbed->dir);
    if (geteuid() != 0 || (stat(folder, &status) == 0 && chown(file, status.st_uid, status.st_gid) == 0))
        return true;
    complain("cannot make %s readable for PostgreSQL: %s", file, strerror(errno));
    return false;
}

static bool set_room(struct fault_testbed *testbed, int64_t bytes)
{
    const struct disk disk = {.room = bytes};
    return shim_set(&testbed->base, FILE_NAME, "the room on the disk,", &disk, sizeof disk) &&
           give_to_postgres(&testbed->base);
}

/* Waits until a write of PostgreSQL has failed. */
static bool await_refusal(struct fault_testbed *testbed)
{
    char path[PATH_MAX + 48];
    struct disk disk = {0};
    int64_t end_us = monotonic_us() + (int64_t)REFUSED_MS * 1000;
    snprintf(path, sizeof path, "%s/" FILE_NAME, testbed->base.dir);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && monotonic_us() < end_us && disk.refused == 0 && sleep_unless_interrupted(POLL_MS))
        if (pread(file, &disk, sizeof disk, 0) != sizeof disk)
            break;
    if (file >= 0)
        close(file);
    if (disk.refused == 0 && !interrupted())
        complain("PostgreSQL did not write while its disk was full");
    return disk.refused > 0;
}

static bool start_with_disk(struct fault_testbed *testbed, int64_t *ret_ready_us)
{
    struct shim_environment disk;
    char reason[256];
    if (shim_prepare(&testbed->base, &disk_shim, FILE_NAME, &disk, reason, sizeof reason))
        return fault_postgres_up(testbed, disk.variables, ret_ready_us);
    complain("%s", reason);
    return false;
}

static bool await_services(struct fault_testbed *testbed)
{
    int64_t end_us = monotonic_us() + (int64_t)SERVICES_MS * 1000;
    for (int i = 0; i < FAULT_INSTANCES; i++)
        while (!service_client_ready(testbed->base.clients[i])) {
            if (!sleep_unless_interrupted(POLL_MS))
                return false;
            if (monotonic_us() > end_us)
                return service_client_failed(testbed->base.clients[i]);
        }
    return true;
}

bool enter_disk_full(struct fault_run *run)
{
    int64_t ready_us;
    return set_room(run->testbed, NO_LIMIT) && fault_servers_down(run->testbed, POSTGRES) &&
           start_with_disk(run->testbed, &ready_us) && await_services(run->testbed);
}

/* PostgreSQL panics when it cannot write its log. Recovery needs to write too, so PostgreSQL either ends, or panics again and
 * again until there is room. */
bool nemesis_disk_full(struct fault_run *run)
{
    return set_room(run->testbed, random_up_to(&run->random, ROOM_MOST)) && await_refusal(run->testbed) &&
           sleep_unless_interrupted(random_up_to(&run->random, FULL_MOST_MS)) &&
           set_room(run->testbed, NO_LIMIT) && start_with_disk(run->testbed, &run->ready_us);
}

bool leave_disk_full(struct fault_run *run)
{
    int64_t ready_us;
    return fault_servers_down(run->testbed, POSTGRES) && fault_postgres_up(run->testbed, NULL, &ready_us);
}
