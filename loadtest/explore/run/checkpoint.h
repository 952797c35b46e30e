/* How far a hunt has come, in a file, so that a long one can be ended and gone on with. */
#ifndef OVERSELL_LOADTEST_EXPLORE_RUN_CHECKPOINT_H
#define OVERSELL_LOADTEST_EXPLORE_RUN_CHECKPOINT_H

#include "loadtest/explore/core/depth_first_search.h"
#include "loadtest/explore/spec/totals.h"

enum { CHECKPOINT_IDENTITY = 400 };

/* Its file, and what it hunts for: what was asked, and the steps of an order. A file is of use only to the same question. */
struct checkpoint {
    char path[4096];
    char identity[CHECKPOINT_IDENTITY];
    int64_t saved_us;
};

/* All that a hunt needs to go on; plain memory. */
struct search_state {
    struct search search;
    struct totals totals;
    double coverage;
};

/* 1: *RET_MADE is what the file says. 0: there is no file. -1, with RET_ERROR: it is of another question, or cannot be read. */
int checkpoint_load(const struct checkpoint *checkpoint, struct search_state *ret_made, char *ret_error,
                    size_t size);
/* Replaces the file as a whole. False, with RET_ERROR. */
bool checkpoint_save(struct checkpoint *checkpoint, const struct search_state *made, char *ret_error,
                     size_t size);

#endif
