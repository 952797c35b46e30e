/* Fault of the disk: there is no room for the log that PostgreSQL writes ahead. */
#include "loadtest/faults/fault.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/preload/disk.h"
#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_LIMIT (-1)
#define ROOM_MOST (256 << 10) /* bytes of log that still fit: dozens of orders */
#define FULL_MOST_MS 1000     /* it stays full for so long after that, at most */
#define REFUSED_MS 60000
#define SERVICES_MS 60000
#define POLL_MS 10
#define REASON_SIZE 256

static void path_of_disk_file(const struct fault_testbed *testbed, char *ret_path)
{
    snprintf(ret_path, PATH_MAX + 48, "%s/disk-room", testbed->base.dir);
}

/* PostgreSQL counts in the file. When we are root it runs as another user, who owns its folder, and gets the file. */
static bool give_to_postgres(const struct fault_testbed *testbed, int file)
{
    char folder[PATH_MAX + 48];
    struct stat status;
    if (geteuid() != 0)
        return true;
    snprintf(folder, sizeof folder, "%s/postgres", testbed->base.stack_dir);
    return stat(folder, &status) == 0 && fchown(file, status.st_uid, status.st_gid) == 0;
}

static bool set_room(struct fault_testbed *testbed, int64_t bytes)
{
    char path[PATH_MAX + 48];
    const struct disk disk = {.room = bytes};
    path_of_disk_file(testbed, path);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool written = file >= 0 && give_to_postgres(testbed, file) &&
                   pwrite(file, &disk, sizeof disk, 0) == sizeof disk;
    if (!written)
        complain("cannot set the room on the disk, %s: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    return written;
}

/* Waits until PostgreSQL has been told that there is no room. */
static bool await_refusal(struct fault_testbed *testbed)
{
    char path[PATH_MAX + 48];
    struct disk disk = {0};
    int64_t end_us = monotonic_us() + (int64_t)REFUSED_MS * 1000;
    path_of_disk_file(testbed, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && monotonic_us() < end_us && disk.refused == 0 && sleep_unless_interrupted(POLL_MS))
        if (pread(file, &disk, sizeof disk, 0) != sizeof disk)
            break;
    if (file >= 0)
        close(file);
    if (disk.refused == 0 && !interrupted())
        complain("PostgreSQL has not written to its full disk");
    return disk.refused > 0;
}

static bool start_with_disk(struct fault_testbed *testbed, int64_t *ret_ready_us)
{
    char shim[PATH_MAX], preload[PATH_MAX + 16], room[PATH_MAX + 64], reason[REASON_SIZE];
    if (!preload_find(PATH_DISK, "full disk", testbed->base.dir, shim, reason, sizeof reason)) {
        complain("%s", reason);
        return false;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", shim);
    path_of_disk_file(testbed, room + snprintf(room, sizeof room, "OVERSELL_DISK="));
    return fault_postgres_up(testbed, (const char *[]){preload, room, NULL}, ret_ready_us);
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

bool disk_possible(struct fault_testbed *testbed, char *ret_reason, size_t size)
{
    char path[PATH_MAX];
    return preload_find(PATH_DISK, "full disk", testbed->base.dir, path, ret_reason, size);
}

bool enter_disk_full(struct fault_run *run)
{
    int64_t ready_us;
    return set_room(run->testbed, NO_LIMIT) &&
           fault_servers_down(run->testbed, (const char *[]){"postgres", NULL}) &&
           start_with_disk(run->testbed, &ready_us) && await_services(run->testbed);
}

/* PostgreSQL panics when it cannot write its log. It begins anew then, which takes writing: either it ends altogether, or it
 * goes on panicking until there is room. */
bool nemesis_disk_full(struct fault_run *run)
{
    return set_room(run->testbed, random_up_to(&run->random, ROOM_MOST)) && await_refusal(run->testbed) &&
           sleep_unless_interrupted(random_up_to(&run->random, FULL_MOST_MS)) &&
           set_room(run->testbed, NO_LIMIT) && start_with_disk(run->testbed, &run->ready_us);
}

bool leave_disk_full(struct fault_run *run)
{
    int64_t ready_us;
    return fault_servers_down(run->testbed, (const char *[]){"postgres", NULL}) &&
           fault_postgres_up(run->testbed, NULL, &ready_us);
}
