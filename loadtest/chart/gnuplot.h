/* Runs gnuplot, and writes the parts of a script that every plot needs. */
#ifndef OVERSELL_LOADTEST_CHART_GNUPLOT_H
#define OVERSELL_LOADTEST_CHART_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/* gnuplot can be run. */
bool gnuplot_is_possible(void);
/* What gnuplot prints for the script that WRITE writes, to be freed; NULL, with the reason on stderr. */
char *gnuplot_run(void (*write)(const void *context, FILE *script), const void *context);
/* Writes a name of a stored result into gnuplot's script. Characters that gnuplot could take for a command become "?": a result is
 * somebody's file, and gnuplot can run programs. */
void gnuplot_print_name(FILE *script, const char *name);
/* The smallest of 1, 2 and 5 and their multiples by powers of ten that divides a scale from 0 to MOST, above 0, into at most TICS
 * parts. */
double gnuplot_step(double most, int tics);

#endif
