/* Which strategies of the service's table are meant by names and groups. */
#ifndef OVERSELL_LOADTEST_CLI_SELECTION_H
#define OVERSELL_LOADTEST_CLI_SELECTION_H

#include "loadtest/cli/options.h"

#include <jansson.h>
#include <stdbool.h>

/* The option by which a list is given; AT: where in the command's settings it goes. */
#define SELECTION_ROW(at)                                                                                    \
    {                                                                                                        \
        "--strategies", "LIST", OPTION_TEXT, at, 0, 0, NULL,                                                 \
            "Strategies to run: names and groups, separated by commas. The groups are all, unsafe, "         \
            "one-process, while-lease-holds and safe."                                                       \
    }

/* The rows of TABLE (from GET /strategies) that LIST means, in the table's order, each once: names and
 * groups (a guarantee, or "all") with commas between. NULL, having said on stderr what is valid. */
json_t *selection_rows(const json_t *table, const char *list);
/* The next word of *REST, a list with commas between; false at its end. Empty words are words, and mean nothing. */
bool selection_next(const char **rest, const char **ret_word, size_t *ret_length);
/* The word is "all", or this name, or this guarantee (NULL: none). */
bool selection_word_means(const char *word, size_t length, const char *name, const char *guarantee);
/* LIST means the strategy, or whatever else is called so, of this name and guarantee (NULL: none). */
bool selection_means(const char *list, const char *name, const char *guarantee);
/* LIST calls this strategy by its own name, not by a group. */
bool selection_names(const char *list, const char *name);

#endif
