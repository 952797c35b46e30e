/* Describes charts as JSON data: their title, axes and numbers. */
#include "loadtest/chart/chart.h"

#include <math.h>
#include <string.h>

/* Appends ITEM, which is stolen, to the array KEY of OBJECT, as long as it has less than MOST items. Returns the item, borrowed. */
static json_t *append(struct charts *charts, json_t *object, const char *key, json_t *item, size_t most)
{
    json_t *array = json_object_get(object, key);
    if (charts->failed || !object || json_array_size(array) >= most) {
        json_decref(item);
        return NULL;
    }
    charts->failed = json_array_append_new(array, item) != 0;
    return charts->failed ? NULL : item;
}

json_t *chart_add(struct charts *charts, const struct chart_look *look)
{
    if (!charts->list && !charts->failed)
        charts->list = json_array();
    json_t *chart = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:b, s:b, s:f, s:b, s:i, s:s?, s:s, s:[], s:[], s:[], s:[], s:[]}", "kind",
        (int)look->kind, "title", look->title, "about", look->about ? look->about : "", "x", look->x, "y",
        look->y ? look->y : "", "log_x", look->log_x, "log_y", look->log_y, "x_most", look->x_most, "bad",
        look->bad, "decimals", look->decimals, "group", look->group, "rows_are",
        look->name_of_rows ? look->name_of_rows : "strategy", "marks", "rows", "series", "tics", "steps");
    if (charts->failed || json_array_append_new(charts->list, chart) != 0) {
        charts->failed = true;
        return NULL;
    }
    return chart;
}

void chart_name_marks(struct charts *charts, json_t *chart, const char *const *names)
{
    for (size_t i = 0; chart && names[i]; i++)
        append(charts, chart, "marks", json_string(names[i]), CHART_COLUMNS_MAX);
}

size_t chart_marks(const json_t *chart)
{
    size_t marks = json_array_size(json_object_get(chart, "marks"));
    size_t most = json_integer_value(json_object_get(chart, "kind")) == CHART_SPANS ? CHART_SPAN_MARKS
                                                                                    : CHART_MARKS_MAX;
    return marks < most ? marks : most;
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void chart_add_row(struct charts *charts, json_t *chart, const char *name, const double *values, size_t count)
{
    json_t *row = append(charts, chart, "rows", json_pack("{s:s, s:[]}", "name", name, "values"),
                         CHART_ROWS_MAX);
    for (size_t i = 0; row && i < count; i++)
        append(charts, row, "values", number(values[i]), CHART_COLUMNS_MAX);
}

json_t *chart_add_series(struct charts *charts, json_t *chart, const char *name, int colour)
{
    return append(charts, chart, "series",
                  json_pack("{s:s, s:i, s:[]}", "name", name, "colour", colour, "points"), CHART_SERIES_MAX);
}

void chart_add_point(struct charts *charts, json_t *series, double x, double y)
{
    if (isfinite(x))
        append(charts, series, "points", json_pack("[f, o]", x, number(y)), CHART_POINTS_MAX);
}

void chart_add_tic(struct charts *charts, json_t *chart, double x, const char *label)
{
    append(charts, chart, "tics", json_pack("[f, s]", x, label), CHART_ROWS_MAX);
}

json_t *chart_add_cells(struct charts *charts, json_t *chart, const char *name)
{
    return append(charts, chart, "rows", json_pack("{s:s, s:[]}", "name", name, "cells"), CHART_ROWS_MAX);
}

void chart_add_cell(struct charts *charts, json_t *cells, const char *text, int level)
{
    append(charts, cells, "cells", json_pack("{s:s, s:i}", "text", text, "level", level), CHART_COLUMNS_MAX);
}

void chart_add_step(struct charts *charts, json_t *chart, size_t lane, const char *text, const char *middle,
                    bool bad)
{
    append(charts, chart, "steps",
           json_pack("{s:I, s:s, s:s, s:b}", "lane", (json_int_t)lane, "text", text, "middle", middle, "bad",
                     bad),
           CHART_ROWS_MAX);
}

void chart_count_group(struct charts *charts, const char *group, size_t count)
{
    size_t i;
    json_t *chart;
    json_array_foreach(charts->list, i, chart) {
        const char *name = json_string_value(json_object_get(chart, "group"));
        if (!charts->failed && name && strcmp(name, group) == 0)
            charts->failed = json_object_set_new(chart, "of_group", json_integer((json_int_t)count)) != 0;
    }
}

json_t *charts_take(struct charts *charts)
{
    json_t *list = charts->list ? charts->list : json_array();
    if (charts->failed) {
        json_decref(list);
        list = NULL;
    }
    *charts = (struct charts){0};
    return list;
}
