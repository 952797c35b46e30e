/* Which strategies of this program's own table a list means. */
#include "loadtest/command/chosen_strategies.h"

#include "loadtest/cli/selection.h"

size_t chosen_strategies(const char *list, const struct strategy **ret_chosen)
{
    size_t i, count = 0;
    json_t *row;
    json_auto_t *table = json_array();
    for (i = 0; i < strategy_count; i++)
        json_array_append_new(table, json_pack("{s:s, s:s}", "name", strategies[i].name, "guarantee",
                                               guarantee_name(strategies[i].guarantee)));
    json_auto_t *rows = selection_rows(table, list);
    json_array_foreach(rows, i, row) {
        if (count < STRATEGIES_MAX)
            ret_chosen[count++] = strategy_find(json_string_value(json_object_get(row, "name")));
    }
    return count;
}
