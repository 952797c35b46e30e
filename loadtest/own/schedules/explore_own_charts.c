/* The pictures of `explore shop.json`: the schedules that went wrong as lanes, with the stock between the requests. */
#include "loadtest/own/schedules/explore_own_result.h"

#include "loadtest/chart/chart.h"
#include "loadtest/report/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCHEDULES "Schedules"
#define LANES_MAX 12 /* schedules that are drawn; the JSON has all */

static const char *const LANES[ACTORS_MAX] = {"A", "B", "C", "D"};

/* The statement, what it waited for, and its answer. */
static void print_words(const json_t *step, char *ret_words, size_t size)
{
    size_t used = (size_t)snprintf(ret_words, size, "%.300s", result_text(step, "text")), i;
    const json_t *name;
    if (json_is_true(json_object_get(step, "waits"))) {
        used += (size_t)snprintf(ret_words + used, size - used, " → waits for");
        json_array_foreach(json_object_get(step, "waits_for"), i, name) {
            if (used < size)
                used += (size_t)snprintf(ret_words + used, size - used, "%s %.40s", i ? "," : "",
                                         json_string_value(name));
        }
    }
    if (*result_text(step, "answer") && used < size)
        snprintf(ret_words + used, size - used, " → %.200s", result_text(step, "answer"));
}

static void add_schedule(struct charts *charts, const json_t *schedule)
{
    char about[600], words[800], stock[32] = "";
    const char *names[CHART_MARKS_MAX + 1] = {NULL};
    size_t i, lanes = json_array_size(json_object_get(schedule, "answers"));
    json_t *step;
    lanes = lanes < CHART_MARKS_MAX ? lanes : CHART_MARKS_MAX;
    for (i = 0; i < lanes; i++)
        names[i] = LANES[i];
    snprintf(about, sizeof about, "%.400s%sSold %" PRId64 ", %" PRId64 " left.",
             result_text(schedule, "cause"), *result_text(schedule, "cause") ? " " : "",
             result_number(schedule, "sold"), result_number(schedule, "left"));
    json_t *chart = chart_add(charts, &(struct chart_look){.kind = CHART_LANES,
                                                           .title = result_text(schedule, "verdict"),
                                                           .about = about,
                                                           .x = "",
                                                           .group = SCHEDULES});
    chart_name_marks(charts, chart, names);
    json_array_foreach(json_object_get(schedule, "steps"), i, step) {
        size_t lane = (size_t)(*result_text(step, "actor") - 'A');
        print_words(step, words, sizeof words);
        if (json_is_integer(json_object_get(step, "stock")))
            snprintf(stock, sizeof stock, "%" PRId64, result_number(step, "stock"));
        chart_add_step(charts, chart, lane < lanes ? lane : 0, words, stock,
                       strstr(words, "(fault: ") != NULL);
    }
}

json_t *explore_own_charts(const json_t *document)
{
    struct charts charts = {0};
    size_t i;
    json_t *schedule;
    json_array_foreach(json_object_get(document, "counterexamples"), i, schedule) {
        if (i < LANES_MAX)
            add_schedule(&charts, schedule);
    }
    chart_count_group(&charts, SCHEDULES, i);
    return charts_take(&charts);
}
