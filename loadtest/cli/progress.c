/* Draws a progress bar on stderr if stderr is a terminal. */
#include "loadtest/cli/progress.h"

#include "base/clock.h"
#include "loadtest/cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BAR_CELLS 24
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
    char rate[SPARKLINE_MAX + 48] = "", blocks[SPARKLINE_MAX];
    if (progress->rate_count > 0)
        snprintf(rate, sizeof rate, ", %.0f orders/s %s", progress->rates[progress->rate_count - 1],
                 progress_sparkline(progress->rates, progress->rate_count, blocks));
    char line[400];
    snprintf(line, sizeof line, "[%s] %zu of %zu  %s%s%s%s", bar, progress->step + 1, progress->steps,
             progress->label, detail, rate, rest);
    /* Cut to the terminal, since a line that wraps cannot be wiped. */
    size_t width = terminal_width(stderr);
    fprintf(stderr, "\r%.*s\033[K", bytes_within(line, width > 1 ? width - 1 : 79), line);
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
