/* What a stream can show: colour, width, and what it is. */
#ifndef OVERSELL_LOADTEST_CLI_TERMINAL_H
#define OVERSELL_LOADTEST_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A terminal that understands escape sequences (TERM is neither unset nor "dumb"). */
bool terminal_is_smart(FILE *stream);
/* A smart terminal whose user has not asked for NO_COLOR. */
bool terminal_has_colour(FILE *stream);
/* Columns: of the terminal, else of COLUMNS in the environment; 0 if nobody knows. */
size_t terminal_width(FILE *stream);
/* Columns that UTF-8 text takes: one for each of its characters, which is right for all that we print. */
size_t display_width(const char *text);

#endif
