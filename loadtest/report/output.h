/* Where results go: to stdout or a file in one format, and to more files in others. */
#ifndef OVERSELL_LOADTEST_REPORT_OUTPUT_H
#define OVERSELL_LOADTEST_REPORT_OUTPUT_H

#include "loadtest/cli/options.h"
#include "loadtest/report/table.h"

#include <jansson.h>
#include <stdbool.h>

enum format {
    FORMAT_TABLE,
    FORMAT_JSON,
    FORMAT_CSV,
    FORMAT_MARKDOWN,
    FORMAT_HTML,
    FORMAT_JUNIT,
    FORMAT_SVG,
    FORMAT_COUNT
};

struct output_settings {
    const char *format;                /* by name */
    const char *output;                /* a file; NULL: stdout */
    const char *exports[FORMAT_COUNT]; /* more files; NULL: none */
};

#define OUTPUT_DEFAULTS                                                                                      \
    {                                                                                                        \
        .format = "table"                                                                                    \
    }

extern const struct option_rows output_options; /* fill a struct output_settings */

/* Checks, before anything is started, that the files can be written and the pictures drawn; says why not on
 * stderr. */
bool output_valid(const struct output_settings *settings);
/* Writes the document, a result of this kind, everywhere it should go; false, having said on stderr what could not be written.
 * A file is replaced as a whole or not at all. */
bool output_write(const struct result_kind *kind, const json_t *document,
                  const struct output_settings *settings);
/* The same two for one file of TEXT. */
bool output_file_valid(const char *path);
bool output_file(const char *path, const char *text, size_t length);

#endif
