/* Draws a progress bar on stderr if stderr is a terminal. */
#ifndef OVERSELL_LOADTEST_CLI_PROGRESS_H
#define OVERSELL_LOADTEST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_RATES = 12, SPARKLINE_MAX = PROGRESS_RATES * 3 + 1, PROGRESS_LINE_MAX = 400 };

struct progress {
    double done; /* the share that was drawn last: it only grows */
    bool shown;
    size_t steps, step; /* of equal weight; STEP are done */
    char label[96];     /* what the current step is */
    int64_t started_us, drawn_us;
    double rates[PROGRESS_RATES]; /* orders per second, the latest last */
    size_t rate_count;
    int64_t counted, counted_us; /* orders at the last rate, and when; 0: not yet */
};

/* Makes a bar; draws nothing yet. */
struct progress progress_begin(size_t steps);
/* What is being done now, within the current step. It is drawn at once, and so is the first update after it. */
__attribute__((format(printf, 2, 3))) void progress_label(struct progress *progress, const char *format, ...);
/* SHARE (0–1) of the current step is done; DETAIL stands behind the label. Draws ten times a second at
 * most. */
void progress_update(struct progress *progress, double share, const char *detail);
/* ORDERS have been placed in the current step so far. The bar shows how many there are per second, and how that has changed. */
void progress_count(struct progress *progress, int64_t orders);
/* COUNT numbers, 0 or more and at most PROGRESS_RATES, as a line of blocks whose heights are shares of the largest. BUFFER of SPARKLINE_MAX
 * bytes, returned. */
const char *progress_sparkline(const double *numbers, size_t count, char *buffer);
/* The line of a bar of which DONE is done, after SECONDS, in at most WIDTH columns: what matters most stands first, and the sparkline is
 * left out where there is no room for it. BUFFER of PROGRESS_LINE_MAX bytes, returned. */
const char *progress_line(const struct progress *progress, double done, double seconds, const char *detail,
                          size_t width, char *buffer);
void progress_step_done(struct progress *progress);
/* Erases the bar, so that something else can be printed. The next update draws it again. */
void progress_wipe(void);

#endif
