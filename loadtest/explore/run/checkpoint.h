/* Checkpoints: the state of a campaign in a file, so that a long search can stop and continue later. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_CHECKPOINT_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_CHECKPOINT_H

#include "loadtest/explore/spec/totals.h"
#include "loadtest/search/depth_first_search.h"

enum { CHECKPOINT_IDENTITY = 400 };

/* The file, and the identity of the search: its settings and the steps of an order. Only a search with the same identity can
 * continue from the file. */
struct checkpoint {
    char path[4096];
    char identity[CHECKPOINT_IDENTITY];
    int64_t saved_us;
};

/* All that a campaign needs to continue; plain memory. */
struct search_state {
    struct search search;
    struct totals totals;
    double coverage;
};

/* 1: *RET_MADE is the saved state. 0: there is no file. −1, with RET_ERROR: it is of another search, or cannot be read. */
int checkpoint_load(const struct checkpoint *checkpoint, struct search_state *ret_made, char *ret_error,
                    size_t size);
/* Replaces the file atomically. False, with RET_ERROR (SIZE bytes). */
bool checkpoint_save(struct checkpoint *checkpoint, const struct search_state *made, char *ret_error,
                     size_t size);

#endif
