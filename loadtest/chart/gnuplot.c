/* Runs gnuplot, and writes the parts of a script that every plot needs. */
#include "loadtest/chart/gnuplot.h"

#include "loadtest/cli/complain.h"
#include "loadtest/process/child.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GNUPLOT_MS 60000
#define SVG_MAX_BYTES (4u << 20)

void gnuplot_print_name(FILE *script, const char *name)
{
    for (; *name; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9') || *name == '-' || *name == '.' || *name == '/' ||
                     *name == ',' || *name == ' ';
        fputc(plain ? *name : '?', script);
    }
}

double gnuplot_step(double most, int tics)
{
    double rough = most / tics, power = pow(10, floor(log10(rough)));
    static const double STEPS[] = {1, 2, 5};
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++)
        if (STEPS[i] * power >= rough * 0.999999)
            return STEPS[i] * power;
    return 10 * power;
}

bool gnuplot_is_possible(void)
{
    struct child_plan plan = {
        .argv = (const char *[]){"gnuplot", "--version", NULL}, .log = "/dev/null", .death_signal = SIGKILL};
    char *version = child_output(plan, GNUPLOT_MS, 4096);
    free(version);
    return version != NULL;
}

static int script_file(void (*write)(const void *context, FILE *script), const void *context)
{
    int file = memfd_create("oversell-plot", MFD_CLOEXEC);
    FILE *script = file >= 0 ? fdopen(dup(file), "w") : NULL;
    if (!script) {
        if (file >= 0)
            close(file);
        return -1;
    }
    write(context, script);
    if (fclose(script) != 0 || lseek(file, 0, SEEK_SET) != 0) {
        close(file);
        return -1;
    }
    return file;
}

char *gnuplot_run(void (*write)(const void *context, FILE *script), const void *context)
{
    int script = script_file(write, context);
    char *output = NULL;
    if (script >= 0) {
        struct child_plan plan = {
            .argv = (const char *[]){"gnuplot", NULL}, .in = script, .death_signal = SIGKILL};
        output = child_output(plan, GNUPLOT_MS, SVG_MAX_BYTES);
        close(script);
    }
    if (!output)
        complain("gnuplot failed: see its message above");
    return output;
}
