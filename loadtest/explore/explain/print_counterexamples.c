/* Schedules that went wrong, told one after the other. */
#include "loadtest/explore/explain/print_counterexamples.h"

#include <stdio.h>

static void show_one(const json_t *counterexample)
{
    if (json_is_object(counterexample))
        printf("\n%s\n%s%s\n", json_string_value(json_object_get(counterexample, "replay")),
               json_string_value(json_object_get(counterexample, "told")),
               json_string_value(json_object_get(counterexample, "explanation")));
}

void print_counterexamples(const json_t *rows)
{
    size_t i, j;
    const json_t *row, *counterexample;
    json_array_foreach(rows, i, row) {
        show_one(json_object_get(row, "witness"));
        json_array_foreach(json_object_get(row, "further_witnesses"), j, counterexample) {
            show_one(counterexample);
        }
    }
}
