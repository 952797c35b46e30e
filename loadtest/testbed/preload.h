/* Libraries that are preloaded into servers, placed where the users that the servers run as can read them: when root starts
 * the private stack, its servers run as other users, to whom root's home is closed. */
#ifndef OVERSELL_LOADTEST_TESTBED_PRELOAD_H
#define OVERSELL_LOADTEST_TESTBED_PRELOAD_H

#include "loadtest/testbed/paths.h"

#include <stddef.h>

/* May every user pass through FOLDER and all folders above it, by their modes? */
bool others_can_enter(const char *folder);

/* Where servers can load LIBRARY from, an absolute path. That is LIBRARY itself if the servers run as we do, or as users who
 * can read it; otherwise a copy in FOLDER, which is ours alone to write to, which others can enter, and which the caller
 * removes. The copy is made once. RET_PATH has room for PATH_MAX bytes. False: RET_REASON says why in SIZE bytes. */
bool preload_place(const char *library, const char *folder, char *ret_path, char *ret_reason, size_t size);

/* preload_place for the library at PATH, which simulates WHAT. */
bool preload_find(enum path path, const char *what, const char *folder, char *ret_path, char *ret_reason,
                  size_t size);

#endif
