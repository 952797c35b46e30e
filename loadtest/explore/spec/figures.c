/* The table of figures: the name of each, and where struct ending and struct totals keep its value. */
#include "loadtest/explore/spec/figures.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { LIST_MOST = 2760 };

#define IN_ENDING(is_flag, member) true, false, is_flag, offsetof(struct ending, member), 0
#define IN_TOTALS(member) false, true, false, 0, offsetof(struct totals, member)
#define IN_BOTH(is_flag, member, counted)                                                                    \
    true, true, is_flag, offsetof(struct ending, member), offsetof(struct totals, counted)

static const struct figure FIGURES[] = {
    {"sold", IN_ENDING(false, audit.sold)},
    {"left", IN_ENDING(false, audit.left)},
    {"orders", IN_ENDING(false, audit.orders)},
    {"oversold", IN_BOTH(false, oversold, oversold)},
    {"drift", IN_BOTH(false, drift, drifted)},
    {"undersold", IN_BOTH(true, undersold, undersold)},
    {"waited", IN_BOTH(true, waited, waited)},
    {"deadlock", IN_BOTH(true, deadlock, deadlocks)},
    {"stuck", IN_BOTH(true, stuck, stuck)},
    {"robbed", IN_BOTH(true, lock_stolen, lock_stolen)},
    {"two-holders", IN_BOTH(true, two_holders, two_holders)},
    {"failed", IN_BOTH(true, failed, failed)},
    {"false-refusal", IN_BOTH(true, false_refusal, false_refusals)},
    {"leaked", IN_BOTH(true, leaked, leaked)},
    {"answers-wrong", IN_BOTH(true, answers_wrong, answers_wrong)},
    {"bad", IN_TOTALS(bad)},
    {"schedules", IN_TOTALS(schedules)},
};

#define FIGURE_COUNT (sizeof FIGURES / sizeof FIGURES[0])

const struct figure *figure_find(const char *name)
{
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        if (strcmp(FIGURES[i].name, name) == 0)
            return &FIGURES[i];
    return NULL;
}

int64_t figure_value(const struct figure *figure, const struct ending *ending, const struct totals *totals)
{
    if (totals)
        return (int64_t) * (const uint64_t *)(const void *)((const char *)totals + figure->at_totals);
    const char *at = (const char *)ending + figure->at_ending;
    return figure->is_flag ? *(const bool *)at : *(const int64_t *)(const void *)at;
}

bool figures_parse(const char *list, unsigned *ret_figures, char *ret_error, size_t size)
{
    char words[LIST_MOST], *rest = words, *word;
    snprintf(words, sizeof words, "%s", list);
    *ret_figures = 0;
    while ((word = strsep(&rest, ","))) {
        const struct figure *figure = figure_find(word);
        if (!figure || !figure->in_ending)
            return text_fail(ret_error, size, "'%s' is no figure of a schedule", word);
        *ret_figures |= 1u << (figure - FIGURES);
    }
    return true;
}

bool figures_any(unsigned figures, const struct ending *ending)
{
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        if (figures & 1u << i && figure_value(&FIGURES[i], ending, NULL) != 0)
            return true;
    return false;
}
