/* Figures: what a scenario can expect by name, and --never forbid: "oversold" is a count of units at the end of one schedule,
 * and a count of schedules in the totals of a search. Pure. */
#ifndef OVERSELL_LOADTEST_EXPLORE_SPEC_FIGURES_H
#define OVERSELL_LOADTEST_EXPLORE_SPEC_FIGURES_H

#include "loadtest/explore/spec/totals.h"

struct figure {
    const char *name;
    bool in_ending, in_totals;   /* where it has a value */
    bool is_flag;                /* in struct ending it is a bool; elsewhere a number */
    size_t at_ending, at_totals; /* offsets */
};

/* NULL: there is no figure of this name. Static storage. */
const struct figure *figure_find(const char *name);
/* The figure's value in TOTALS, or where that is NULL in ENDING; it must have one there. */
int64_t figure_value(const struct figure *figure, const struct ending *ending, const struct totals *totals);

/* Reads a LIST of names with commas between; sets one bit in *RET_FIGURES for each. False, with RET_ERROR (SIZE bytes): one
 * of them is no figure of a single schedule. */
bool figures_parse(const char *list, unsigned *ret_figures, char *ret_error, size_t size);
/* Is one of the figures whose bits are set in FIGURES not 0? */
bool figures_any(unsigned figures, const struct ending *ending);

#endif
