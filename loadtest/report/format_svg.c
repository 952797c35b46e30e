/* The pictures of a result as one SVG document, for a page of the documentation or a slide: two columns, readable on a light and on a
 * dark page. */
#include "loadtest/chart/chart.h"
#include "loadtest/chart/svg.h"
#include "loadtest/cli/complain.h"
#include "loadtest/report/format.h"
#include "loadtest/report/result.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN 360 /* the width of a drawing */
#define GAP 24
#define MARGIN 16
#define LINE 17      /* from one line of text to the next */
#define CHARACTER 7. /* the widest that an average character is in the fonts that browsers take */
#define ABOUT_CHARACTERS ((size_t)(COLUMN / CHARACTER))
#define CELL_HEIGHT 19
#define EVEN 40     /* columns whose ends differ by less are filled from the left */
#define GROUP_MAX 2 /* charts of a group: a report has all */

extern const char report_colours[];

static const char LOOK[] =
    ":root { --ink: #1f2328; --quiet: #59636e; --card: #ffffff; --line: #dddddd; --line-strong: #888888; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  :root { --ink: #e6edf3; --quiet: #9198a1; --card: #151b23; --line: #3d444d; --line-strong: #818b98; }\n"
    "}\n"
    "text { fill: var(--ink); font-family: system-ui, \"Segoe UI\", \"Helvetica Neue\", \"Noto Sans\", \"DejaVu Sans\", sans-serif; }\n"
    ".quiet { fill: var(--quiet); }\n"
    ".ground { fill: var(--card); }\n"
    ".frame { stroke: var(--line); }\n";

/* Where the next chart goes. */
struct sheet {
    FILE *out;
    double below[2]; /* the first free place of each column */
    double right;    /* how wide the sheet is so far */
};

static enum chart_kind kind_of(const json_t *chart)
{
    return (enum chart_kind)json_integer_value(json_object_get(chart, "kind"));
}

/* The characters of TEXT, which is UTF-8. */
static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void print_text(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#1f2328\" %s>", x, y, attributes);
    print_escaped(out, text);
    fputs("</text>\n", out);
}

/* ---- what stands above a drawing ----------------------------------------------------------------------- */

/* Prints TEXT in lines that fit WIDTH characters. Returns the place below them. */
static double print_lines(FILE *out, double x, double y, const char *text, size_t width)
{
    char line[512];
    while (*text) {
        size_t taken = strlen(text), i, columns = 0, space = 0;
        for (i = 0; text[i] && columns <= width && i < sizeof line - 1; i++) {
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
            if (text[i] == ' ')
                space = i;
        }
        if (text[i] && space > 0)
            taken = space;
        else if (text[i])
            taken = i;
        snprintf(line, sizeof line, "%.*s", (int)taken, text);
        y += LINE;
        print_text(out, x, y - 4, "font-size=\"12\" class=\"quiet\"", line);
        text += taken;
        text += *text == ' ';
    }
    return y;
}

/* Names a mark or a series; what does not fit stands in the next line. Returns where the next one may begin. */
static double print_legend_item(FILE *out, double x, double *y, double begin, const char *name)
{
    double width = (double)characters(name) * CHARACTER;
    if (begin > x && begin + 24 + width > x + COLUMN) {
        *y += LINE;
        begin = x;
    }
    print_text(out, begin + 24, *y + LINE - 4, "font-size=\"12\"", name);
    return begin + 24 + width + 14;
}

/* The marks and dashes are gnuplot's, those of svg.c. Returns the place below. */
static double print_legend(FILE *out, double x, double y, const json_t *chart)
{
    static const char *const MARKS[CHART_MARKS_MAX] = {"●", "▲", "■", "×"};
    const json_t *marks = json_object_get(chart, "marks"), *series = json_object_get(chart, "series");
    double begin = x;
    size_t i;
    json_t *item;
    if (json_array_size(marks) == 0 && json_array_size(series) < 2)
        return y;
    for (i = 0; i < chart_marks(chart); i++) {
        char attributes[80];
        const char *name = json_string_value(json_array_get(marks, i));
        double next = print_legend_item(out, x, &y, begin, name);
        begin = next - 38 - (double)characters(name) * CHARACTER;
        snprintf(attributes, sizeof attributes, "font-size=\"12\" style=\"fill: var(--colour-%zu)\"", i);
        print_text(out, begin + 8, y + LINE - 4, attributes, MARKS[i]);
        begin = next;
    }
    json_array_foreach(series, i, item) {
        static const char *const DASHES[CHART_COLOURS] = {"", "", "6 3", "2 3", "6 3 2 3", "2 2"};
        static const char *const COLOURS[CHART_COLOURS] = {"#0072b2", "#d55e00", "#007a5a",
                                                           "#a8508a", "#7a6000", "#555555"};
        size_t colour = (size_t)json_integer_value(json_object_get(item, "colour"));
        double next = print_legend_item(out, x, &y, begin, result_text(item, "name"));
        begin = next - 38 - (double)characters(result_text(item, "name")) * CHARACTER;
        colour = colour < CHART_COLOURS ? colour : 0;
        fprintf(
            out,
            "<path d=\"M%.1f %.1fh20\" stroke=\"%s\" style=\"stroke: var(--colour-%zu)\" stroke-width=\"2.5\" stroke-dasharray=\"%s\"/>\n",
            begin, y + LINE - 8, COLOURS[colour], colour, DASHES[colour]);
        begin = next;
    }
    return y + LINE;
}

/* Title, how to read it, and the legend of a drawing. Returns the place below. */
static double print_caption(FILE *out, double x, double y, const json_t *chart, size_t width)
{
    print_text(out, x, y + 14, "font-size=\"13\" font-weight=\"bold\"", result_text(chart, "title"));
    y = print_lines(out, x, y + 20, result_text(chart, "about"), width);
    return kind_of(chart) < CHART_MATRIX ? print_legend(out, x, y, chart) : y;
}

/* ---- a matrix ------------------------------------------------------------------------------------------ */

/* The longest text of a column, in characters; of the names if COLUMN is 0. */
static size_t longest_of(const json_t *chart, size_t column)
{
    size_t i, longest = column == 0 ? characters(result_text(chart, "rows_are"))
                                    : characters(json_string_value(
                                          json_array_get(json_object_get(chart, "marks"), column - 1)));
    json_t *row;
    json_array_foreach(json_object_get(chart, "rows"), i, row) {
        const json_t *cell = json_array_get(json_object_get(row, "cells"), column - (column > 0));
        size_t length = characters(result_text(column > 0 ? cell : row, column > 0 ? "text" : "name"));
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* How wide a column is. */
static double width_of(const json_t *chart, size_t column)
{
    return (double)longest_of(chart, column) * CHARACTER + 14;
}

/* A cell is as red as it is bad. Returns the place below. */
static double print_matrix(struct sheet *sheet, double x, double y, const json_t *chart)
{
    size_t column, columns = json_array_size(json_object_get(chart, "marks")), i;
    json_t *row;
    double left = x, bottom = y;
    y += 4;
    for (column = 0; column <= columns; column++) {
        double width = width_of(chart, column);
        const char *head = column > 0 ? json_string_value(
                                            json_array_get(json_object_get(chart, "marks"), column - 1))
                                      : result_text(chart, "rows_are");
        const char *anchor = column > 0 ? "font-size=\"12\" text-anchor=\"middle\"" : "font-size=\"12\"";
        double at = column > 0 ? left + width / 2 : left;
        print_text(sheet->out, at, y + 13,
                   column > 0 ? "font-size=\"12\" font-weight=\"bold\" text-anchor=\"middle\""
                              : "font-size=\"12\" font-weight=\"bold\"",
                   head ? head : "");
        json_array_foreach(json_object_get(chart, "rows"), i, row) {
            const json_t *cell = json_array_get(json_object_get(row, "cells"), column - (column > 0));
            double top = y + (double)(i + 1) * CELL_HEIGHT;
            if (column > 0)
                fprintf(
                    sheet->out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"frame\" stroke=\"#dddddd\" fill=\"#d55e00\" "
                    "fill-opacity=\"%.2f\"/>\n",
                    left, top, width, CELL_HEIGHT,
                    0.13 * (double)json_integer_value(json_object_get(cell, "level")));
            print_text(sheet->out, at, top + 14, anchor,
                       result_text(column > 0 ? cell : row, column > 0 ? "text" : "name"));
            bottom = top + CELL_HEIGHT;
        }
        left += width;
    }
    return bottom;
}

/* ---- the sheet ----------------------------------------------------------------------------------------- */

/* What comes next begins below all columns. */
static double flush_columns(struct sheet *sheet)
{
    double y = sheet->below[0] > sheet->below[1] ? sheet->below[0] : sheet->below[1];
    sheet->below[0] = sheet->below[1] = y;
    return y;
}

static void add_group(struct sheet *sheet, const char *name)
{
    double y = flush_columns(sheet);
    print_text(sheet->out, MARGIN, y + 16, "font-size=\"15\" font-weight=\"bold\"", name);
    sheet->below[0] = sheet->below[1] = y + 28;
}

/* SVG is a whole document, which stands in the sheet at its place. */
static void add_drawing(struct sheet *sheet, const json_t *chart, const char *svg)
{
    static const char BOX[] = "viewBox=\"0 0 360 ";
    size_t column = sheet->below[1] + EVEN < sheet->below[0];
    double x = MARGIN + (double)column * (COLUMN + GAP);
    double y = print_caption(sheet->out, x, sheet->below[column], chart, ABOUT_CHARACTERS);
    const char *box = strstr(svg, BOX);
    fprintf(sheet->out, "<svg x=\"%.1f\" y=\"%.1f\"%s\n", x, y, svg + strlen("<svg"));
    sheet->below[column] = y + (box ? strtod(box + strlen(BOX), NULL) : COLUMN) + GAP;
    sheet->right = x + COLUMN > sheet->right ? x + COLUMN : sheet->right;
}

static void add_matrix(struct sheet *sheet, const json_t *chart)
{
    double y = flush_columns(sheet);
    double width = 0;
    for (size_t column = 0; column <= json_array_size(json_object_get(chart, "marks")); column++)
        width += width_of(chart, column);
    width = width > COLUMN ? width : COLUMN;
    sheet->right = MARGIN + width > sheet->right ? MARGIN + width : sheet->right;
    y = print_caption(sheet->out, MARGIN, y, chart, (size_t)(width / CHARACTER));
    sheet->below[0] = sheet->below[1] = print_matrix(sheet, MARGIN, y, chart) + GAP;
}

/* Adds what can be drawn: lanes are tables of a report. */
static void add_charts(struct sheet *sheet, const json_t *charts, const char *const *svg, size_t drawn)
{
    const char *group = "";
    size_t i, of_group = 0;
    json_t *chart;
    json_array_foreach(charts, i, chart) {
        bool is_matrix = kind_of(chart) == CHART_MATRIX;
        if (strcmp(result_text(chart, "group"), group) != 0) {
            group = result_text(chart, "group");
            of_group = 0;
        }
        if (!is_matrix && (i >= drawn || !*svg[i]))
            continue;
        if (*group && of_group == 0)
            add_group(sheet, group);
        if (*group && of_group++ >= GROUP_MAX)
            continue;
        if (is_matrix)
            add_matrix(sheet, chart);
        else
            add_drawing(sheet, chart, svg[i]);
    }
}

static bool print_sheet(const struct result_table *table, const json_t *charts, FILE *out)
{
    char *text, *body = NULL;
    const char **svg;
    size_t length, drawn = charts_draw(charts, &text, &svg);
    struct sheet sheet = {.out = open_memstream(&body, &length), .below = {MARGIN, MARGIN}};
    if (sheet.out)
        add_charts(&sheet, charts, svg, drawn);
    bool ok = sheet.out && fclose(sheet.out) == 0;
    double width = sheet.right + MARGIN, height = flush_columns(&sheet) - GAP + MARGIN;
    if (ok && length > 0) {
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
                "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
                width, height, width, height);
        print_escaped(out, table->title);
        fprintf(out, "\">\n<style>\n%s%s</style>\n", LOOK, report_colours);
        fprintf(
            out,
            "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" rx=\"8\" fill=\"#ffffff\"/>\n%s</svg>\n",
            width, height, body);
    } else {
        complain(ok ? "this result has no picture that can be drawn: choose another format"
                    : "out of memory");
    }
    free(body);
    free(svg);
    free(text);
    return ok && length > 0;
}

bool format_svg(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    json_auto_t *charts = table->kind->charts ? table->kind->charts(table->document) : json_array();
    if (!charts) {
        complain("out of memory");
        return false;
    }
    return print_sheet(table, charts, out);
}
