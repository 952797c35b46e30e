/* Draws a progress bar on stderr if stderr is a terminal. */
#ifndef OVERSELL_LOADTEST_CLI_PROGRESS_H
#define OVERSELL_LOADTEST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    double done; /* the share that was drawn last: it only grows */
    bool shown;
    size_t steps, step; /* of equal weight; STEP are done */
    char label[96];     /* what the current step is */
    int64_t started_us, drawn_us;
};

/* Makes a bar; draws nothing yet. */
struct progress progress_begin(size_t steps);
/* What is being done now, within the current step. */
__attribute__((format(printf, 2, 3))) void progress_label(struct progress *progress, const char *format, ...);
/* SHARE (0–1) of the current step is done; DETAIL stands behind the label. Draws ten times a second at
 * most. */
void progress_update(struct progress *progress, double share, const char *detail);
void progress_step_done(struct progress *progress);
/* Erases the bar, so that something else can be printed. The next update draws it again. */
void progress_wipe(void);

#endif
