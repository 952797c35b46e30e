/* Writes the charts of an HTML report: each has an explanation, a legend, and its numbers as a table. */
#include "loadtest/chart/chart.h"
#include "loadtest/chart/svg.h"
#include "loadtest/report/format.h"
#include "loadtest/report/result.h"

#include <stdlib.h>
#include <string.h>

#define LONG_STEP 40 /* bytes */

static void print_number(const json_t *value, int decimals, FILE *out)
{
    char text[NUMBER_MAX];
    fprintf(out, "<td class=\"n\">%s</td>",
            json_is_number(value) ? number_text(json_number_value(value), decimals, text) : NO_NUMBER);
}

/* A heading of a column. */
static void print_head(const char *name, bool number, FILE *out)
{
    fprintf(out, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
    print_escaped(out, name);
    fputs("</th>", out);
}

/* ---- the numbers --------------------------------------------------------------------------------------- */

static void print_rows(const json_t *chart, FILE *out)
{
    size_t i, j;
    json_t *row, *mark, *value;
    const json_t *marks = json_object_get(chart, "marks");
    int decimals = (int)json_integer_value(json_object_get(chart, "decimals"));
    fputs("<thead><tr>", out);
    print_head(result_text(chart, "rows_are"), false, out);
    json_array_foreach(marks, i, mark) {
        print_head(json_string_value(mark), true, out);
    }
    if (json_array_size(marks) == 0)
        print_head(result_text(chart, "x"), true, out);
    fputs("</tr></thead>\n<tbody>\n", out);
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        fputs("<tr><th scope=\"row\">", out);
        print_escaped(out, result_text(row, "name"));
        fputs("</th>", out);
        json_array_foreach(json_object_get(row, "values"), j, value) {
            print_number(value, decimals, out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody>", out);
}

/* The label of a place on the x axis: its own, or the number. */
static void print_place(const json_t *chart, const json_t *x, FILE *out)
{
    size_t i;
    json_t *tic;
    json_array_foreach(json_object_get(chart, "tics"), i, tic) {
        if (json_number_value(json_array_get(tic, 0)) == json_number_value(x)) {
            fputs("<th scope=\"row\" class=\"n\">", out);
            print_escaped(out, json_string_value(json_array_get(tic, 1)));
            fputs("</th>", out);
            return;
        }
    }
    char text[NUMBER_MAX];
    double place = json_number_value(x);
    fprintf(out, "<th scope=\"row\" class=\"n\">%s</th>",
            number_text(place,
                        place < 10 && place != (double)(long)place ? 2
                        : place < 100                              ? 1
                                                                   : 0,
                        text));
}

/* The value of SERIES at X. Series need not have the same places. */
static const json_t *value_at(const json_t *series, const json_t *x)
{
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(series, "points"), i, point) {
        if (json_number_value(json_array_get(point, 0)) == json_number_value(x))
            return json_array_get(point, 1);
    }
    return NULL;
}

/* The places are those of the series that has most. */
static void print_series(const json_t *chart, FILE *out)
{
    size_t i, j;
    json_t *series, *point;
    const json_t *longest = NULL, *all = json_object_get(chart, "series");
    int decimals = (int)json_integer_value(json_object_get(chart, "decimals"));
    fputs("<thead><tr>", out);
    print_head(result_text(chart, "x"), true, out);
    json_array_foreach(all, i, series) {
        const json_t *points = json_object_get(series, "points");
        longest = json_array_size(points) > json_array_size(longest) ? points : longest;
        print_head(result_text(series, "name"), true, out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    json_array_foreach(longest, j, point) {
        fputs("<tr>", out);
        print_place(chart, json_array_get(point, 0), out);
        json_array_foreach(all, i, series) {
            print_number(value_at(series, json_array_get(point, 0)), decimals, out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody>", out);
}

static void print_numbers(const json_t *chart, bool open, FILE *out)
{
    fprintf(out, "<details%s><summary>Numbers</summary><div class=\"scroll\"><table class=\"data\">\n",
            open ? " open" : "");
    if (json_array_size(json_object_get(chart, "rows")) > 0)
        print_rows(chart, out);
    else
        print_series(chart, out);
    fputs("</table></div></details>\n", out);
}

/* ---- the picture --------------------------------------------------------------------------------------- */

/* The classes are those of report.css; the marks are gnuplot's, of svg.c. */
static void print_legend(const json_t *chart, FILE *out)
{
    static const char *const MARKS[CHART_MARKS_MAX] = {"●", "▲", "■", "×"};
    size_t i;
    json_t *item;
    const json_t *marks = json_object_get(chart, "marks"), *series = json_object_get(chart, "series");
    if (json_array_size(marks) == 0 && json_array_size(series) < 2)
        return;
    fputs("<ul class=\"legend\">", out);
    for (i = 0; i < chart_marks(chart); i++) {
        fprintf(out, "<li><span class=\"colour-%zu\" aria-hidden=\"true\">%s</span> ", i, MARKS[i]);
        print_escaped(out, json_string_value(json_array_get(marks, i)));
        fputs("</li>", out);
    }
    json_array_foreach(series, i, item) {
        long long colour = json_integer_value(json_object_get(item, "colour"));
        fprintf(out, "<li><span class=\"stroke stroke-%lld colour-%lld\" aria-hidden=\"true\"></span> ",
                colour, colour);
        print_escaped(out, result_text(item, "name"));
        fputs("</li>", out);
    }
    fputs("</ul>", out);
}

/* ---- pictures that are tables --------------------------------------------------------------------------- */

static void print_columns(const json_t *chart, const char *first, FILE *out)
{
    size_t i;
    json_t *mark;
    fputs("<thead><tr>", out);
    print_head(first, false, out);
    json_array_foreach(json_object_get(chart, "marks"), i, mark) {
        print_head(json_string_value(mark), false, out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

static void print_matrix(const json_t *chart, FILE *out)
{
    size_t i, j;
    json_t *row, *cell;
    fputs("<div class=\"scroll\"><table class=\"data matrix\">", out);
    print_columns(chart, result_text(chart, "rows_are"), out);
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        fputs("<tr><th scope=\"row\">", out);
        print_escaped(out, result_text(row, "name"));
        fputs("</th>", out);
        json_array_foreach(json_object_get(row, "cells"), j, cell) {
            fprintf(out, "<td class=\"level-%d\">", (int)json_integer_value(json_object_get(cell, "level")));
            print_escaped(out, result_text(cell, "text"));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* The stock stands between the first two lanes. */
static void print_lanes(const json_t *chart, FILE *out)
{
    size_t i, lane, lanes = json_array_size(json_object_get(chart, "marks"));
    json_t *step;
    const char *middle = "";
    fputs("<table class=\"data lanes\"><thead><tr>", out);
    for (lane = 0; lane < lanes; lane++) {
        print_head(json_string_value(json_array_get(json_object_get(chart, "marks"), lane)), false, out);
        if (lane == 0)
            fputs("<th scope=\"col\" class=\"stock\">stock</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    json_array_foreach(json_object_get(chart, "steps"), i, step) {
        bool changed = i > 0 && strcmp(middle, result_text(step, "middle")) != 0;
        middle = result_text(step, "middle");
        fputs("<tr>", out);
        for (lane = 0; lane < lanes; lane++) {
            bool here = json_integer_value(json_object_get(step, "lane")) == (json_int_t)lane;
            bool bad = here && json_is_true(json_object_get(step, "bad"));
            fprintf(out, "<td class=\"%s%s\">", here ? "step-here" : "", bad ? " is-fault" : "");
            print_escaped(out, here ? result_text(step, "text") : "");
            fputs("</td>", out);
            if (lane == 0) {
                fprintf(out, "<td class=\"stock%s\">", changed ? " has-changed" : "");
                print_escaped(out, middle);
                fputs("</td>", out);
            }
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
}

/* Prints a chart that is a table. False: it is none, so that it is drawn. */
static bool print_as_table(const json_t *chart, FILE *out)
{
    switch ((enum chart_kind)json_integer_value(json_object_get(chart, "kind"))) {
    case CHART_MATRIX: print_matrix(chart, out); return true;
    case CHART_LANES: print_lanes(chart, out); return true;
    case CHART_BARS:
    case CHART_RANGES:
    case CHART_SPANS:
    case CHART_LINES:
    case CHART_STEPS: break;
    }
    return false;
}

/* Steps that are statements need the width of the page. */
static bool has_long_steps(const json_t *chart)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(chart, "steps"), i, step) {
        if (strlen(result_text(step, "text")) > LONG_STEP)
            return true;
    }
    return false;
}

/* POSSIBLE: gnuplot can draw. Without it, the report shows the numbers instead of the picture. */
static void print_chart(const json_t *chart, const char *svg, bool possible, FILE *out)
{
    bool wide = json_integer_value(json_object_get(chart, "kind")) == CHART_MATRIX || has_long_steps(chart);
    fprintf(out, "<figure%s><figcaption><h3>", wide ? " class=\"wide-figure\"" : "");
    print_escaped(out, result_text(chart, "title"));
    fputs("</h3>", out);
    if (*result_text(chart, "about")) {
        fputs("<p class=\"quiet\">", out);
        print_escaped(out, result_text(chart, "about"));
        fputs("</p>", out);
    }
    if (*svg)
        print_legend(chart, out);
    fputs("</figcaption>", out);
    if (*svg) {
        fputs("<div class=\"drawing\" role=\"img\" aria-label=\"", out);
        print_escaped(out, result_text(chart, "title"));
        fprintf(out, "\">%s</div>\n", svg);
    }
    if (!print_as_table(chart, out)) {
        if (possible && !*svg)
            fputs("<p>There is nothing to draw.</p>\n", out);
        print_numbers(chart, !possible, out);
    }
    fputs("</figure>\n", out);
}

/* The heading of a group whose first chart is number FIRST, and how many of its charts are drawn if a limit cut them. */
static void print_group(const json_t *charts, size_t first, FILE *out)
{
    const json_t *chart = json_array_get(charts, first);
    const char *group = result_text(chart, "group");
    json_int_t all = json_integer_value(json_object_get(chart, "of_group"));
    size_t end = first;
    while (end < json_array_size(charts) &&
           strcmp(result_text(json_array_get(charts, end), "group"), group) == 0)
        end++;
    fputs("<h3 class=\"group\">", out);
    print_escaped(out, group);
    fputs("</h3>\n", out);
    if (all > (json_int_t)(end - first))
        fprintf(out, "<p class=\"quiet\">%zu of %lld are drawn.</p>\n", end - first, (long long)all);
}

void print_charts(const struct result_table *table, FILE *out)
{
    json_auto_t *charts = table->kind->charts ? table->kind->charts(table->document) : NULL;
    if (json_array_size(charts) == 0)
        return;
    char *text;
    const char **svg, *group = "";
    size_t drawn = charts_draw(charts, &text, &svg), i;
    json_t *chart;
    fputs("<section class=\"card\">\n<h2>Pictures</h2>\n<div class=\"pictures\">\n", out);
    json_array_foreach(charts, i, chart) {
        if (strcmp(result_text(chart, "group"), group) != 0) {
            group = result_text(chart, "group");
            fputs("</div>\n", out);
            if (*group)
                print_group(charts, i, out);
            fprintf(out, "<div class=\"pictures%s\">\n", *group ? " are-small" : "");
        }
        print_chart(chart, i < drawn ? svg[i] : "", drawn > 0, out);
    }
    fputs("</div>\n</section>\n", out);
    free(svg);
    free(text);
}
