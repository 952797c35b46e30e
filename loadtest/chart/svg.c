/* Draws charts with gnuplot: one SVG document for each. We also tried uPlot: it adds 51 kB of script, turns the y label, and draws on a
 * canvas, so that a page printed from a dark screen has labels that nobody can see, and no test can find a text that covers another. SVG
 * follows the colours of the page, and needs no script. */
#include "loadtest/chart/svg.h"

#include "loadtest/chart/chart.h"
#include "loadtest/chart/gnuplot.h"
#include "loadtest/chart/number_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 360
#define LINES_HEIGHT 230
#define ROW_HEIGHT 22
#define ROWS_FRAME 54 /* the axis below the rows, and its name */
#define BARS_FRAME 12 /* bars need no axis: each has its value at its end */
#define CHARACTER                                                                                            \
    7.3 /* the widest that an average character of 12 units is in the fonts that browsers take */
#define NAME_CHARACTERS 28
#define TIC_CHARACTERS 8 /* of a label that a chart brings itself */
#define FEW_POINTS 12
#define WIDER 1.0001 /* of a logarithmic scale: gnuplot rounds, and would leave out a label at its very end */
#define TICS 4       /* as many as have room side by side, on a linear scale */

/* Safe for colour-blind readers (after Okabe and Ito); report.css has others for a dark page. */
static const char *const COLOURS[CHART_COLOURS] = {"#0072b2", "#d55e00", "#007a5a",
                                                   "#a8508a", "#7a6000", "#555555"};
static const int DASHES[CHART_COLOURS] = {1, 1, 2, 4, 5, 3}, POINTS[] = {7, 9, 5, 2};
#define BAD_COLOUR 1 /* in COLOURS */

/* ---- what a chart holds -------------------------------------------------------------------------------- */

static const char *text_of(const json_t *chart, const char *key)
{
    const char *text = json_string_value(json_object_get(chart, key));
    return text ? text : "";
}

static bool is_set(const json_t *chart, const char *key)
{
    return json_is_true(json_object_get(chart, key));
}

struct span {
    double least, most;
    bool any;
};

/* On a logarithmic scale only numbers above 0 have a place. */
static void widen(struct span *span, const json_t *value, bool logarithmic)
{
    double number = json_number_value(value);
    if (!json_is_number(value) || (logarithmic && number <= 0))
        return;
    span->least = !span->any || number < span->least ? number : span->least;
    span->most = !span->any || number > span->most ? number : span->most;
    span->any = true;
}

static struct span span_of_rows(const json_t *chart, bool logarithmic)
{
    struct span span = {0};
    size_t i, j;
    json_t *row, *value;
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        json_array_foreach(json_object_get(row, "values"), j, value) {
            widen(&span, value, logarithmic);
        }
    }
    return span;
}

static void widen_by_points(struct span *span, const json_t *series, size_t coordinate, bool logarithmic)
{
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(series, "points"), i, point) {
        widen(span, json_array_get(point, coordinate), logarithmic);
    }
}

static struct span span_of_points(const json_t *chart, size_t coordinate, bool logarithmic)
{
    struct span span = {0};
    size_t i;
    json_t *series;
    json_array_foreach(json_object_get(chart, "series"), i, series) {
        widen_by_points(&span, series, coordinate, logarithmic);
    }
    return span;
}

/* ---- scales -------------------------------------------------------------------------------------------- */

/* A label that gnuplot reads as text: our own words and digits. */
static void print_label(FILE *script, const char *label)
{
    fputc('"', script);
    for (; *label; label++)
        if (!strchr("\"\\`$@'\n", *label))
            fputc(*label, script);
    fputc('"', script);
}

/* The same for a tic, whose label gnuplot takes for a format. */
static void print_tic_label(FILE *script, const char *label)
{
    char doubled[NUMBER_MAX * 2];
    size_t used = 0;
    for (; *label && used < sizeof doubled - 2; label++) {
        if (*label == '%')
            doubled[used++] = '%';
        doubled[used++] = *label;
    }
    doubled[used] = 0;
    print_label(script, doubled);
}

static void print_tic(FILE *script, bool first, double at)
{
    char text[NUMBER_MAX];
    int decimals = at == 0 || fabs(at) >= 1 ? 0 : (int)ceil(-log10(fabs(at)) - 1e-9);
    if (fabs(at) >= 1 && fabs(at - round(at)) > 1e-6)
        decimals = 1;
    fputs(first ? "" : ", ", script);
    print_label(script, number_text(at, decimals, text));
    fprintf(script, " %.10g", at);
}

/* Sets range and tics of AXIS ("x" or "y"), which has ROOM units for labels. Returns the length of its longest label, in
 * characters. */
static size_t print_scale(FILE *script, const char *axis, struct span span, bool logarithmic, double room)
{
    char text[NUMBER_MAX];
    size_t longest = 1;
    if (!span.any)
        span = (struct span){.least = logarithmic ? 1 : 0, .most = 1};
    if (logarithmic) {
        int low = (int)floor(log10(span.least) + 1e-9), high = (int)ceil(log10(span.most) - 1e-9);
        high = high > low ? high : low + 1;
        double label = (4.0 / 3 * fmax(high, 1) + 2) *
                       CHARACTER; /* of the largest power, with its commas and a gap */
        int every = (int)ceil((high - low) / fmax(1, floor(room / label)));
        fprintf(script, "set logscale %s\nset %srange [%.10g:%.10g]\nset %stics (", axis, axis,
                pow(10, low) / WIDER, pow(10, high) * WIDER, axis);
        for (int power = low; power <= high; power += every) {
            print_tic(script, power == low, pow(10, power));
            size_t length = strlen(number_text(pow(10, power), power < 0 ? -power : 0, text));
            longest = length > longest ? length : longest;
        }
        fputs(")\n", script);
        return longest;
    }
    /* Counts begin at 0, so that a height means what it seems to. */
    double least = fmin(span.least, 0), most = span.most > least ? span.most : least + 1;
    double step = gnuplot_step(fmax(most - least, 1e-6), TICS);
    double first = floor(least / step + 1e-9) * step, last = ceil(most / step - 1e-9) * step;
    fprintf(script, "unset logscale %s\nset %srange [%.10g:%.10g]\nset %stics (", axis, axis, first,
            strcmp(axis, "x") == 0 ? most : last, axis);
    for (int i = 0; first + i * step <= last + step / 2; i++) {
        double at = first + i * step;
        print_tic(script, i == 0, fabs(at) < step / 1e6 ? 0 : at);
        size_t length = strlen(number_text(at, step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0, text));
        longest = length > longest ? length : longest;
    }
    fputs(")\n", script);
    return longest;
}

/* Half of the last tic's label, of LENGTH characters, has room beside the axis. */
static void print_right_margin(FILE *script, size_t length)
{
    fprintf(script, "set rmargin at screen %.4f\n", 1 - ((double)length * CHARACTER / 2 + 8) / WIDTH);
}

static void print_terminal(FILE *script, double height)
{
    fprintf(script,
            "reset\nset terminal svg size %d,%.0f font 'sans-serif,12' noenhanced\nset datafile missing '?'\n"
            "set key off\nset tics nomirror out scale 0.5\nset border 3 linecolor rgb '#888888'\n"
            "set grid linecolor rgb '#dddddd' linetype 1\n",
            WIDTH, height);
}

static void print_value(FILE *script, const json_t *value)
{
    if (json_is_number(value))
        fprintf(script, " %.10g", json_number_value(value));
    else
        fputs(" ?", script);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static size_t print_rows(FILE *script, const json_t *chart, size_t marks)
{
    size_t i, longest = 1;
    json_t *row;
    int decimals = (int)json_integer_value(json_object_get(chart, "decimals"));
    bool is_span = json_integer_value(json_object_get(chart, "kind")) == CHART_SPANS;
    fputs("$rows << END\n", script);
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        char name[NAME_CHARACTERS + 1], text[NUMBER_MAX];
        const json_t *values = json_object_get(row, "values");
        struct span span = {0};
        snprintf(name, sizeof name, "%s", text_of(row, "name"));
        longest = strlen(name) > longest ? strlen(name) : longest;
        fprintf(script, "%zu \"", i + 1);
        gnuplot_print_name(script, name);
        fputs("\" ", script);
        print_label(script, json_is_number(json_array_get(values, 0))
                                ? number_text(json_number_value(json_array_get(values, 0)), decimals, text)
                                : "");
        for (size_t mark = 0; mark < marks; mark++)
            print_value(script, json_array_get(values, mark));
        /* The line of a row joins its marks, or is the bar of a CHART_SPANS. */
        for (size_t value = is_span ? marks : 0; value < (is_span ? marks + 2 : marks); value++)
            widen(&span, json_array_get(values, value), false);
        if (span.any)
            fprintf(script, " %.10g %.10g\n", span.least, span.most);
        else
            fputs(" ? ?\n", script);
    }
    fputs("END\n", script);
    return longest;
}

static void print_row_frame(FILE *script, const json_t *chart, size_t longest)
{
    fprintf(script, "set lmargin at screen %.4f\nset yrange [%zu.5:0.5]\nunset grid\nset ytics scale 0\n",
            ((double)longest * CHARACTER + 10) / WIDTH, json_array_size(json_object_get(chart, "rows")));
}

/* The characters of the longest label of a bar. */
static size_t longest_value(const json_t *chart)
{
    size_t i, longest = 1;
    json_t *row;
    int decimals = (int)json_integer_value(json_object_get(chart, "decimals"));
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        char text[NUMBER_MAX];
        const json_t *value = json_array_get(json_object_get(row, "values"), 0);
        size_t length = strlen(number_text(json_number_value(value), decimals, text));
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Columns: place, name, label, value. */
static void print_bars(FILE *script, const json_t *chart)
{
    size_t rows = json_array_size(json_object_get(chart, "rows"));
    struct span span = span_of_rows(chart, false);
    double height = (double)rows * ROW_HEIGHT + BARS_FRAME, most = span.any && span.most > 0 ? span.most : 1;
    print_terminal(script, height);
    size_t longest = print_rows(script, chart, 1);
    print_row_frame(script, chart, longest);
    /* The longest bar ends where its label still fits. */
    fprintf(
        script,
        "unset xtics\nset border 2\nset rmargin at screen %.4f\nset tmargin at screen 0.99\nset bmargin at screen 0.01\n"
        "set xrange [0:%.10g]\n"
        "plot $rows using ($4/2.0):1:($4/2.0):(0.36):ytic(2) with boxxyerror fillstyle solid noborder linecolor rgb "
        "'%s', $rows using 4:1:3 with labels left offset 0.5,0 noenhanced\n",
        1 - ((double)longest_value(chart) * CHARACTER + 12) / WIDTH, most,
        COLOURS[is_set(chart, "bad") ? BAD_COLOUR : 0]);
}

/* Has any row this value? Gnuplot would warn of a column without one. */
static bool has_mark(const json_t *chart, size_t mark)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        if (json_is_number(json_array_get(json_object_get(row, "values"), mark)))
            return true;
    }
    return false;
}

/* Columns: place, name, label, the values, the least, the most. */
static void print_ranges(FILE *script, const json_t *chart)
{
    bool log_x = is_set(chart, "log_x");
    bool is_span = json_integer_value(json_object_get(chart, "kind")) == CHART_SPANS;
    size_t rows = json_array_size(json_object_get(chart, "rows")), marks = chart_marks(chart);
    struct span span = span_of_rows(chart, log_x);
    widen(&span, json_object_get(chart, "x_most"), true); /* as on a logarithmic scale, 0 is left out */
    double height = (double)rows * ROW_HEIGHT + ROWS_FRAME;
    print_terminal(script, height);
    size_t longest = print_rows(script, chart, marks);
    print_row_frame(script, chart, longest);
    fputs("set grid xtics linecolor rgb '#dddddd' linetype 1\n", script);
    fprintf(script, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n", 1 - 4 / height,
            (ROWS_FRAME - 4) / height);
    size_t label = print_scale(script, "x", span, log_x, WIDTH - 40 - (double)longest * CHARACTER);
    print_right_margin(script, label);
    fputs("set xlabel ", script);
    print_label(script, text_of(chart, "x"));
    fputs(" offset 0,0.6", script);
    fprintf(
        script,
        "\nplot $rows using %zu:1:(column(%zu)-column(%zu)):(0):ytic(2) with vectors nohead linewidth %s linecolor rgb "
        "'#888888'",
        marks + 4, marks + 5, marks + 4, is_span ? "6" : "1.5");
    for (size_t mark = marks; mark-- > 0;) /* the first one lies on top */
        if (has_mark(chart, mark))
            fprintf(script, ", $rows using %zu:1 with points pointtype %d pointsize 0.8 linecolor rgb '%s'",
                    mark + 4, POINTS[mark % (sizeof POINTS / sizeof POINTS[0])], COLOURS[mark]);
    fputc('\n', script);
}

/* ---- series -------------------------------------------------------------------------------------------- */

/* Are the points of every series so few that each is a measurement to be seen? */
static bool has_few_points(const json_t *chart)
{
    size_t i;
    json_t *series;
    json_array_foreach(json_object_get(chart, "series"), i, series) {
        if (json_array_size(json_object_get(series, "points")) > FEW_POINTS)
            return false;
    }
    return true;
}

static void print_series(FILE *script, const json_t *chart)
{
    size_t i, j, place = 0;
    json_t *series, *point;
    bool steps = json_integer_value(json_object_get(chart, "kind")) == CHART_STEPS;
    const char *style = steps                   ? "steps"
                        : has_few_points(chart) ? "linespoints pointtype 7 pointsize 0.5"
                                                : "lines";
    bool log_x = is_set(chart, "log_x"), log_y = is_set(chart, "log_y");
    print_terminal(script, LINES_HEIGHT);
    json_array_foreach(json_object_get(chart, "series"), i, series) {
        fprintf(script, "$s%zu << END\n", i);
        json_array_foreach(json_object_get(series, "points"), j, point) {
            const json_t *y = json_array_get(point, 1);
            print_value(script, json_array_get(point, 0));
            print_value(script, log_y && json_number_value(y) <= 0 ? NULL : y);
            fputc('\n', script);
        }
        fputs("END\n", script);
    }
    size_t longest = print_scale(script, "y", span_of_points(chart, 1, log_y), log_y,
                                 3 * WIDTH); /* they stand above each other */
    struct span across = span_of_points(chart, 0, log_x);
    size_t label = print_scale(script, "x", across, log_x, WIDTH - 90);
    const json_t *tics = json_object_get(chart, "tics");
    print_right_margin(script, json_array_size(tics) > 0 ? TIC_CHARACTERS : label);
    if (log_x && across.any) /* whole powers would leave the right of it empty */
        fprintf(script, "set xrange [%.10g:%.10g]\n", across.least * 0.999, across.most * 1.05);
    if (json_array_size(tics) > 0) {
        fprintf(script, "set xrange [%.10g:%.10g]\nset xtics (", across.least, across.most);
        json_array_foreach(tics, i, point) {
            fputs(i ? ", " : "", script);
            print_tic_label(script, json_string_value(json_array_get(point, 1)));
            fprintf(script, " %.10g", json_number_value(json_array_get(point, 0)));
        }
        fputs(")\n", script);
    }
    fprintf(script, "set lmargin at screen %.4f\nset tmargin 2\nset bmargin 3.2\nset xlabel ",
            ((double)longest * CHARACTER + 14) / WIDTH);
    print_label(script, text_of(chart, "x"));
    fputs("\nset label 1 ", script);
    print_label(script, text_of(chart, "y"));
    fputs(" at screen 0.01,0.95 left\nplot ", script);
    json_array_foreach(json_object_get(chart, "series"), i, series) {
        struct span span = {0};
        widen_by_points(&span, series, 1, log_y);
        if (!span.any) /* gnuplot would warn */
            continue;
        size_t colour = (size_t)json_integer_value(json_object_get(series, "colour"));
        fprintf(script, "%s$s%zu using 1:2 with %s linewidth 2 dashtype %d linecolor rgb '%s'",
                place++ ? ", " : "", i, style, DASHES[colour < CHART_COLOURS ? colour : 0],
                COLOURS[colour < CHART_COLOURS ? colour : 0]);
    }
    fputc('\n', script);
}

/* Is there anything to draw? */
static bool has_values(const json_t *chart)
{
    return json_integer_value(json_object_get(chart, "kind")) < CHART_MATRIX &&
           (span_of_rows(chart, false).any || span_of_points(chart, 1, is_set(chart, "log_y")).any);
}

void chart_print_script(const json_t *chart, FILE *script)
{
    if (!has_values(chart))
        return;
    switch ((enum chart_kind)json_integer_value(json_object_get(chart, "kind"))) {
    case CHART_BARS: print_bars(script, chart); break;
    case CHART_RANGES:
    case CHART_SPANS: print_ranges(script, chart); break;
    case CHART_LINES:
    case CHART_STEPS: print_series(script, chart); break;
    case CHART_MATRIX:
    case CHART_LANES: break;
    }
}

/* ---- the drawings -------------------------------------------------------------------------------------- */

static void write_scripts(const void *context, FILE *script)
{
    size_t i;
    json_t *chart;
    json_array_foreach((const json_t *)context, i, chart) {
        chart_print_script(chart, script);
    }
}

/* Removes what is between BEGIN and END, both included, in TEXT. */
static void cut(char *text, const char *begin, const char *end)
{
    char *from = strstr(text, begin), *to = from ? strstr(from, end) : NULL;
    if (to) {
        to += strlen(end);
        memmove(from, to, strlen(to) + 1);
    }
}

/* Removes the groups that gnuplot has opened and drawn nothing in, its comments' title, which would be a tooltip, and symbols that
 * nothing refers to. */
static void tidy(char *svg)
{
    cut(svg, "<title>", "</title>");
    cut(svg, "<desc>", "</desc>");
    const char *symbols = strstr(svg, "</defs>");
    if (symbols && !strstr(symbols, "<use"))
        cut(svg, "<defs>", "</defs>");
    char *to = svg;
    for (char *from = svg; *from;) {
        static const char OPEN[] = "<g ", EMPTY[] = ">\n</g>";
        char *end = strncmp(from, OPEN, sizeof OPEN - 1) == 0 ? strchr(from, '>') : NULL;
        if (end && strncmp(end, EMPTY, sizeof EMPTY - 1) == 0)
            from = end + sizeof EMPTY - 1;
        else
            *to++ = *from++;
    }
    *to = 0;
}

void charts_cut(const json_t *charts, char *text, const char **ret_svg)
{
    static const char END[] = "</svg>";
    size_t i;
    json_t *chart;
    json_array_foreach(charts, i, chart) {
        char *begin = has_values(chart) ? strstr(text, "<svg") : NULL,
             *end = begin ? strstr(begin, END) : NULL;
        ret_svg[i] = "";
        if (!end)
            continue;
        text = end + sizeof END - 1;
        if (*text)
            *text++ = 0; /* the newline */
        tidy(begin);
        ret_svg[i] = begin;
    }
}

size_t charts_draw(const json_t *charts, char **ret_text, const char ***ret_svg)
{
    size_t count = json_array_size(charts);
    *ret_text = NULL;
    *ret_svg = NULL;
    if (count == 0 || !gnuplot_is_possible())
        return 0;
    char *text = gnuplot_run(write_scripts, charts);
    const char **svg = calloc(count, sizeof *svg);
    if (!text || !svg) {
        free(text);
        free(svg);
        return 0;
    }
    charts_cut(charts, text, svg);
    *ret_text = text;
    *ret_svg = svg;
    return count;
}
