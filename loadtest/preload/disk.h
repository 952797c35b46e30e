/* What the disk that can be full shares with whoever fills it: the file that OVERSELL_DISK names. */
#ifndef OVERSELL_LOADTEST_PRELOAD_DISK_H
#define OVERSELL_LOADTEST_PRELOAD_DISK_H

#include <stdint.h>

struct disk {
    int64_t room;    /* bytes that may still be written below pg_wal; less than 0: any number */
    int64_t refused; /* writes that have failed with ENOSPC */
};

#endif
