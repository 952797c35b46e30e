/* Draws a progress bar on stderr if stderr is a terminal. */
#include "loadtest/cli/progress.h"

#include "base/clock.h"
#include "loadtest/cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BAR_CELLS 24
#define REDRAW_US 100000
#define ESTIMATE_FROM 0.02 /* a share too small says nothing about the rest */

static bool bar_is_drawn; /* there is one stderr */

struct progress progress_begin(size_t steps)
{
    return (struct progress){
        .shown = terminal_is_smart(stderr), .steps = steps, .started_us = monotonic_us()};
}

void progress_label(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(progress->label, sizeof progress->label, format, arguments);
    va_end(arguments);
    progress->drawn_us = 0;
    progress_update(progress, 0, "");
}

void progress_update(struct progress *progress, double share, const char *detail)
{
    int64_t now = monotonic_us();
    if (!progress->shown || progress->steps == 0 || now - progress->drawn_us < REDRAW_US)
        return;
    progress->drawn_us = now;

    double done = ((double)progress->step + (share < 1 ? share : 1)) / (double)progress->steps;
    if (done < progress->done) /* each phase of a step starts at 0; the bar never goes back */
        done = progress->done;
    progress->done = done;
    char bar[BAR_CELLS + 1];
    int full = (int)(done * BAR_CELLS);
    memset(bar, '-', BAR_CELLS);
    memset(bar, '#', (size_t)full);
    bar[BAR_CELLS] = 0;

    char rest[32] = "";
    if (done > ESTIMATE_FROM)
        snprintf(rest, sizeof rest, ", about %.0f s left",
                 (double)(now - progress->started_us) / 1e6 * (1 / done - 1));
    char line[256];
    snprintf(line, sizeof line, "[%s] %zu of %zu  %s%s%s", bar, progress->step + 1, progress->steps,
             progress->label, detail, rest);
    /* Cut to the terminal, since a line that wraps cannot be wiped. */
    size_t width = terminal_width(stderr);
    fprintf(stderr, "\r%.*s\033[K", (int)(width > 1 ? width - 1 : 79), line);
    bar_is_drawn = true;
}

void progress_step_done(struct progress *progress)
{
    progress->step++;
}

void progress_wipe(void)
{
    if (bar_is_drawn)
        fputs("\r\033[K", stderr);
    bar_is_drawn = false;
}
