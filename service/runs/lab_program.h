/* The load test's program: where it lies, and the environment that it gets. */
#ifndef OVERSELL_SERVICE_RUNS_LAB_PROGRAM_H
#define OVERSELL_SERVICE_RUNS_LAB_PROGRAM_H

#include "service/config/config.h"

/* Its path, SIZE bytes: it lies beside the service, in the build as well as installed, unless OVERSELL_LOADTEST names
 * another. False: there is no room for it. Whether it is there is not looked at. */
bool lab_program(char *ret_path, size_t size);

/* What the service was told, by flag or by environment: its servers, for the load test and the further processes that it
 * may start, but not its own address, name and secrets' files. For lab_environment_free; NULL when out of memory. */
char **lab_environment(const struct config *config, size_t *ret_ours);
void lab_environment_free(char **env, size_t ours);

#endif
