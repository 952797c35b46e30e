/* Draws a progress bar on stderr if stderr is a terminal. */
#include "loadtest/cli/progress.h"

#include "base/clock.h"
#include "loadtest/cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BAR_CELLS 24
#define BAR_CELLS_NARROW 10
#define NARROW 100 /* columns */
#define WIDTH_UNKNOWN 80
#define REDRAW_US 100000
#define RATE_US 250000     /* between two rates: shorter ones would be noise */
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
    progress->rate_count = 0;
    progress->counted_us = 0;
    progress_update(progress, 0, "");
    progress->drawn_us = 0; /* the details of the step follow */
}

void progress_count(struct progress *progress, int64_t orders)
{
    int64_t now = monotonic_us();
    if (progress->counted_us == 0 || orders < progress->counted) {
        progress->counted = orders;
        progress->counted_us = now;
    } else if (now - progress->counted_us >= RATE_US) {
        if (progress->rate_count == PROGRESS_RATES)
            memmove(progress->rates, progress->rates + 1, --progress->rate_count * sizeof progress->rates[0]);
        progress->rates[progress->rate_count++] = (double)(orders - progress->counted) * 1e6 /
                                                  (double)(now - progress->counted_us);
        progress->counted = orders;
        progress->counted_us = now;
    }
}

const char *progress_sparkline(const double *numbers, size_t count, char *buffer)
{
    static const char *const BLOCKS[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double most = 0;
    size_t used = 0;
    buffer[0] = 0;
    for (size_t i = 0; i < count && i < PROGRESS_RATES; i++)
        most = numbers[i] > most ? numbers[i] : most;
    for (size_t i = 0; i < count && i < PROGRESS_RATES; i++) {
        double share = most > 0 ? numbers[i] / most : 0;
        used += (size_t)snprintf(buffer + used, SPARKLINE_MAX - used, "%s", BLOCKS[(int)(share * 7 + 0.5)]);
    }
    return buffer;
}

/* The bytes of TEXT that take at most WIDTH columns, as our texts have them: no character takes two. */
static int bytes_within(const char *text, size_t width)
{
    const char *at = text;
    for (size_t columns = 0; *at; at++) {
        bool begins = ((unsigned char)*at & 0xc0) != 0x80;
        if (begins && ++columns > width)
            break;
    }
    return (int)(at - text);
}

const char *progress_line(const struct progress *progress, double done, double seconds, const char *detail,
                          size_t width, char *buffer)
{
    char bar[BAR_CELLS + 1], steps[48] = "", rest[40] = "", rate[48] = "", blocks[SPARKLINE_MAX] = "";
    size_t cells = width < NARROW ? BAR_CELLS_NARROW : BAR_CELLS;
    memset(bar, '-', cells);
    memset(bar, '#', (size_t)(done * (double)cells));
    bar[cells] = 0;
    if (done > ESTIMATE_FROM)
        snprintf(rest, sizeof rest, ", about %.0f s left", seconds * (1 / done - 1));
    if (progress->rate_count > 0) {
        snprintf(rate, sizeof rate, ", %.0f orders/s", progress->rates[progress->rate_count - 1]);
        progress_sparkline(progress->rates, progress->rate_count, blocks);
    }
    if (progress->steps > 1)
        snprintf(steps, sizeof steps, " %zu of %zu", progress->step + 1, progress->steps);
    snprintf(buffer, PROGRESS_LINE_MAX, "[%s]%s%s  %s%s%s", bar, steps, *steps || !*rest ? rest : rest + 1,
             progress->label, detail, rate);
    size_t used = strlen(buffer);
    if (*blocks && display_width(buffer) + 1 + display_width(blocks) <= width)
        snprintf(buffer + used, PROGRESS_LINE_MAX - used, " %s", blocks);
    buffer[bytes_within(buffer, width)] = 0;
    return buffer;
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
    /* Cut to the terminal, since a line that wraps cannot be wiped. */
    size_t width = terminal_width(stderr);
    char line[PROGRESS_LINE_MAX];
    fprintf(stderr, "\r%s\033[K",
            progress_line(progress, done, (double)(now - progress->started_us) / 1e6, detail,
                          (width > 1 ? width : WIDTH_UNKNOWN) - 1, line));
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
