/* Where results go: to stdout or a file in one format, and to more files in others. */
#include "loadtest/report/output.h"

#include "loadtest/chart/gnuplot.h"
#include "loadtest/cli/complain.h"
#include "loadtest/cli/interrupt.h"
#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/terminal.h"
#include "loadtest/report/format.h"
#include "loadtest/report/table.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const NAMES[] = {"table", "json", "csv", "markdown", "html", "junit", "svg", NULL};

#define AT(member) offsetof(struct output_settings, member)

static const struct option_row ROWS[] = {
    {"--format", "FORMAT", OPTION_CHOICE, AT(format), 0, 0, NAMES, "Format of the result."},
    {"--output", "FILE", OPTION_TEXT, AT(output), 0, 0, NULL, "Write the result to FILE instead of stdout."},
    {"--export-table", "FILE", OPTION_TEXT, AT(exports[FORMAT_TABLE]), 0, 0, NULL,
     "Also write the result to FILE, as a table."},
    {"--export-json", "FILE", OPTION_TEXT, AT(exports[FORMAT_JSON]), 0, 0, NULL,
     "Also write the result to FILE, as JSON."},
    {"--export-csv", "FILE", OPTION_TEXT, AT(exports[FORMAT_CSV]), 0, 0, NULL,
     "Also write the result to FILE, as CSV."},
    {"--export-markdown", "FILE", OPTION_TEXT, AT(exports[FORMAT_MARKDOWN]), 0, 0, NULL,
     "Also write the result to FILE, as Markdown."},
    {"--export-html", "FILE", OPTION_TEXT, AT(exports[FORMAT_HTML]), 0, 0, NULL,
     "Also write the result to FILE, as a report: one web page with pictures, for a browser or a printer."},
    {"--export-junit", "FILE", OPTION_TEXT, AT(exports[FORMAT_JUNIT]), 0, 0, NULL,
     "Also write the verdicts to FILE, as JUnit XML for continuous integration."},
    {"--export-svg", "FILE", OPTION_TEXT, AT(exports[FORMAT_SVG]), 0, 0, NULL,
     "Also write the pictures of the report to FILE, as SVG. It needs gnuplot."},
};

const struct option_rows output_options = OPTION_ROWS("Output", ROWS);

static format_fn *const FORMATS[FORMAT_COUNT] = {
    [FORMAT_TABLE] = format_table,       [FORMAT_JSON] = format_json, [FORMAT_CSV] = format_csv,
    [FORMAT_MARKDOWN] = format_markdown, [FORMAT_HTML] = format_html, [FORMAT_JUNIT] = format_junit,
    [FORMAT_SVG] = format_svg,
};

static enum format format_by_name(const char *name)
{
    enum format format = FORMAT_TABLE;
    while (format < FORMAT_COUNT - 1 && strcmp(NAMES[format], name) != 0)
        format++;
    return format;
}

/* ---- before -------------------------------------------------------------------------------------------- */

bool output_file_valid(const char *path)
{
    struct stat status;
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy) {
        errno = ENAMETOOLONG;
    } else if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            errno = EISDIR;
        else if (access(path, W_OK) == 0)
            return true;
    } else if (access(dirname(copy), W_OK) == 0) {
        return true;
    }
    complain("cannot write %s: %s", path, strerror(errno));
    return false;
}

bool output_valid(const struct output_settings *settings)
{
    bool draws = settings->exports[FORMAT_SVG] || format_by_name(settings->format) == FORMAT_SVG;
    if (settings->output && !output_file_valid(settings->output))
        return false;
    for (int format = 0; format < FORMAT_COUNT; format++)
        if (settings->exports[format] && !output_file_valid(settings->exports[format]))
            return false;
    if (draws && !gnuplot_is_possible()) {
        complain("pictures need gnuplot: install the package gnuplot-nox");
        return false;
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Beside the file and then renamed, unless it is no plain file, such as a pipe. */
bool output_file(const char *path, const char *text, size_t length)
{
    struct stat status;
    char beside[PATH_MAX];
    bool in_place = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    if (snprintf(beside, sizeof beside, in_place ? "%s" : "%s.part", path) >= (int)sizeof beside)
        return false;
    FILE *file = fopen(beside, "we");
    bool written = file && fwrite(text, 1, length, file) == length;
    if (file && fclose(file) != 0)
        written = false;
    if (written && !in_place && rename(beside, path) != 0)
        written = false;
    if (!written) {
        complain("cannot write %s: %s", path, strerror(errno));
        if (file && !in_place)
            (void)unlink(beside);
    }
    return written;
}

/* JSON and HTML have other forms for such characters, and a table spells the texts of others itself, since it has colours. */
static bool spells_controls(enum format format)
{
    return format != FORMAT_CSV && format != FORMAT_MARKDOWN && format != FORMAT_JUNIT;
}

/* To PATH, or to stdout where it is NULL. */
static bool write_format(const struct result_table *table, enum format format, const char *path)
{
    struct page page = {0};
    if (!path)
        page = (struct page){.colour = terminal_has_colour(stdout), .width = terminal_width(stdout)};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    bool written = out && FORMATS[format](table, &page, out);
    if (out && fclose(out) != 0)
        written = false;
    if (written && !spells_controls(format)) {
        char *plain = plain_copy(text);
        free(text);
        text = plain;
        length = plain ? strlen(plain) : 0;
        written = plain != NULL;
    }
    if (written && path) {
        written = output_file(path, text, length);
    } else if (written) {
        written = fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0;
        if (!written) {
            complain("cannot write the result: %s", strerror(errno));
            clearerr(stdout); /* main says nothing about it again */
        }
    }
    free(text);
    return written;
}

bool output_write(const struct result_kind *kind, const json_t *document,
                  const struct output_settings *settings)
{
    struct result_table table;
    if (!table_open(kind, document, &table))
        return false;
    bool written = write_format(&table, format_by_name(settings->format), settings->output);
    for (enum format format = 0; format < FORMAT_COUNT; format++)
        if (settings->exports[format])
            written = write_format(&table, format, settings->exports[format]) && written;
    table_close(&table);
    if (written)
        interrupt_shown();
    return written;
}
