/* Prints text in columns side by side, for instance what each of several sessions did, one below the other. */
#ifndef OVERSELL_LOADTEST_CLI_COLUMNS_H
#define OVERSELL_LOADTEST_CLI_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

struct columns {
    FILE *stream;
    size_t count, width; /* WIDTH: characters of one column */
};

/* COUNT columns for a page of PAGE_WIDTH characters, 0 for the usual width. Where it is too narrow, the columns are wider than it. */
struct columns columns_of(FILE *stream, size_t count, size_t page_width);
/* Prints COUNT names on one line. */
void columns_names(const struct columns *columns, const char *const *names);
/* Prints TEXT in one of the columns, on separate lines. It is wrapped at spaces, and lines after the first are indented. */
void columns_cell(const struct columns *columns, size_t column, const char *text);

#endif
