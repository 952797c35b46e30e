/* Runs gnuplot, which draws the plot of a result from a script that the result's kind writes. */
#include "loadtest/report/format.h"

#include "loadtest/cli/complain.h"
#include "loadtest/testbed/child.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GNUPLOT_MS 60000
#define SVG_MAX_BYTES (4u << 20)

void plot_print_name(FILE *script, const char *name)
{
    for (; *name; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9') || *name == '-' || *name == '.';
        fputc(plain ? *name : '?', script);
    }
}

double plot_step(double most, int tics)
{
    double rough = most / tics, power = pow(10, floor(log10(rough)));
    static const double STEPS[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++)
        if (STEPS[i] * power >= rough * 0.999999)
            return STEPS[i] * power;
    return 10 * power;
}

static int script_file(const struct result_table *table)
{
    int file = memfd_create("oversell-plot", MFD_CLOEXEC);
    FILE *script = file >= 0 ? fdopen(dup(file), "w") : NULL;
    if (!script) {
        if (file >= 0)
            close(file);
        return -1;
    }
    table->kind->plot(table, script);
    if (fclose(script) != 0 || lseek(file, 0, SEEK_SET) != 0) {
        close(file);
        return -1;
    }
    return file;
}

bool plot_is_possible(void)
{
    struct child_plan plan = {
        .argv = (const char *[]){"gnuplot", "--version", NULL}, .log = "/dev/null", .death_signal = SIGKILL};
    char *version = child_output(plan, GNUPLOT_MS, 4096);
    free(version);
    return version != NULL;
}

char *plot_svg(const struct result_table *table)
{
    int script = script_file(table);
    char *svg = NULL;
    if (script >= 0) {
        struct child_plan plan = {
            .argv = (const char *[]){"gnuplot", NULL}, .in = script, .death_signal = SIGKILL};
        svg = child_output(plan, GNUPLOT_MS, SVG_MAX_BYTES);
        close(script);
    }
    if (!svg)
        complain("gnuplot failed: see its message above");
    return svg;
}

bool format_svg(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    if (!table->kind->plot)
        complain("this kind of result has no plot: choose another format");
    char *svg = table->kind->plot ? plot_svg(table) : NULL;
    if (svg)
        fputs(svg, out);
    free(svg);
    return svg != NULL;
}
