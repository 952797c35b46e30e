/* Prints an execution with a column for each session: what each step returned, and which session waits for which. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_COLUMNS_TEXT_H
#define OVERSELL_LOADTEST_SQLSPEC_COLUMNS_TEXT_H

#include "loadtest/sqlspec/file/spec_file.h"

#include <jansson.h>
#include <stdio.h>

/* EVENTS: those of permutation.h. WIDTH: of the page in characters. False when out of memory. */
bool columns_print(FILE *stream, const struct spec *spec, const json_t *events, size_t width);

#endif
