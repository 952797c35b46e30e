/* Lets learners join a class, so that a benchmark can send the requests of their open pages. */
#ifndef OVERSELL_LOADTEST_CLIENT_CLASS_PAGES_H
#define OVERSELL_LOADTEST_CLIENT_CLASS_PAGES_H

#include "loadtest/client/service_client.h"

#include <stdbool.h>
#include <stdint.h>

#define CLASS_LEARNERS 40
#define CLASS_PAGES_SIZE 4096 /* of the tokens of CLASS_LEARNERS */

/* Joins LEARNERS learners, at most CLASS_LEARNERS, to the class of TEACHER's service, and writes their tokens as pages.lua reads them
 * from its environment. Without learners there need be no class. False on a failure, with a message on stderr unless it was an
 * interrupt. */
bool class_pages_join(struct service_client *teacher, int64_t learners,
                      char ret_env[static CLASS_PAGES_SIZE]);

#endif
