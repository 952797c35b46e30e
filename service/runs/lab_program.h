/* The path of the load test's program, and the environment that the service starts it with. */
#ifndef OVERSELL_SERVICE_RUNS_LAB_PROGRAM_H
#define OVERSELL_SERVICE_RUNS_LAB_PROGRAM_H

#include "service/config/config.h"

/* Writes the path of the load test to RET_PATH, which has SIZE bytes: OVERSELL_LOADTEST, or else `loadtest` in the service's own
 * folder. False: the path does not fit. The function does not check that the program exists. */
bool lab_program(char *ret_path, size_t size);

/* The environment for the load test and the services that it starts: that of this process, with the servers of CONFIG, and
 * without this service's address, name and token file. lab_environment_free frees it; *ret_ours is for that call. NULL: out of
 * memory. */
char **lab_environment(const struct config *config, size_t *ret_ours);
void lab_environment_free(char **env, size_t ours);

#endif
