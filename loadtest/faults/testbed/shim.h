/* Shims: libraries that are preloaded into a server to simulate a wrong clock or a full disk (loadtest/preload/). A shim reads
 * what to simulate from a file in the testbed's folder. One thread. */
#ifndef OVERSELL_LOADTEST_FAULTS_TESTBED_SHIM_H
#define OVERSELL_LOADTEST_FAULTS_TESTBED_SHIM_H

#include "loadtest/testbed/paths.h"
#include "loadtest/testbed/testbed.h"

struct shim {
    enum path library;
    const char *simulates;
    const char *variable; /* of the environment: names the file */
};

extern const struct shim clock_shim, disk_shim;

/* What a server needs in its environment to load a shim. */
struct shim_environment {
    char preload[PATH_MAX + 16], file[PATH_MAX + 64];
    const char *variables[3]; /* PRELOAD, FILE, NULL */
};

/* Finds the shim, to be controlled by FILE of the testbed's folder. False: RET_REASON (SIZE bytes) says why there is none. */
bool shim_prepare(const struct testbed *testbed, const struct shim *shim, const char *file,
                  struct shim_environment *ret_environment, char *ret_reason, size_t size);
/* Writes DATA over the beginning of FILE, and creates it if it is missing. It is never truncated, because a program that has mapped
 * it would crash. WHAT is set by it, for the message on stderr if that fails; then returns false. */
bool shim_set(const struct testbed *testbed, const char *file, const char *what, const void *data,
              size_t size);

#endif
