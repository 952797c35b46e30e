/* A table as one self-contained HTML file: title, plot, table, notes, settings, machine. */
#include "loadtest/report/format.h"

#include <stdlib.h>
#include <string.h>

static const char STYLE[] =
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "body{max-width:100rem;margin:2rem auto;padding:0 1rem}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse}"
    "th,td{padding:.25rem .6rem;border-bottom:1px solid #8886;text-align:left;vertical-align:bottom;"
    "white-space:nowrap}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".good{color:#15803d}.caught{color:#b45309}.bad{color:#dc2626;font-weight:bold}"
    "svg{max-width:100%;height:auto;background:#fff}"
    ".warning{font-weight:bold}";

void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default: fputc(*text, out);
        }
}

static void print_heading(FILE *out, const char *heading)
{
    const char *second = strchr(heading, '\n');
    char first[64];
    snprintf(first, sizeof first, "%.*s", second ? (int)(second - heading) : (int)strlen(heading), heading);
    print_escaped(out, first);
    if (second) {
        fputs("<br>", out);
        print_escaped(out, second + 1);
    }
}

static void print_table(const struct result_table *table, FILE *out)
{
    char buffer[CELL_MAX];
    fputs("<div class=\"wide\"><table>\n<thead><tr>", out);
    for (size_t i = 0; i < table->kind->column_count; i++) {
        const struct column *column = &table->kind->columns[i];
        if (!(column->shown & SHOW_PAGE))
            continue;
        fprintf(out, "<th scope=\"col\"%s title=\"", column->type == COLUMN_NUMBER ? " class=\"n\"" : "");
        print_escaped(out, column->meaning);
        fputs("\">", out);
        print_heading(out, table_heading(table, column));
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    size_t r;
    json_t *row;
    json_array_foreach(table->rows, r, row) {
        fputs("<tr>", out);
        for (size_t i = 0; i < table->kind->column_count; i++) {
            const struct column *column = &table->kind->columns[i];
            if (!(column->shown & SHOW_PAGE))
                continue;
            fprintf(out, "<td class=\"%s\">",
                    column->type == COLUMN_NUMBER ? "n" : cell_style(column, row)->html);
            print_escaped(out, cell_text(column, row, buffer));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* An object's members as a list of terms; what is nested stands as JSON. */
static void print_facts(const char *heading, json_t *object, FILE *out)
{
    const char *key;
    json_t *value;
    if (json_object_size(object) == 0)
        return;
    fprintf(out, "<h2>%s</h2>\n<dl>\n", heading);
    json_object_foreach(object, key, value) {
        fputs("<dt>", out);
        print_escaped(out, key);
        fputs("</dt><dd>", out);
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        print_escaped(out, text ? text : json_is_string(value) ? json_string_value(value) : "");
        free(text);
        fputs("</dd>\n", out);
    }
    fputs("</dl>\n", out);
}

static void print_notes(const struct result_table *table, FILE *out)
{
    for (size_t i = 0; i < table->notes.count; i++) {
        const struct note *note = &table->notes.item[i];
        fprintf(out, "<p%s>", note->kind == NOTE_WARNING ? " class=\"warning\"" : "");
        print_escaped(out, note->text);
        fputs("</p>\n", out);
    }
}

bool format_html(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    const char *at = json_string_value(json_object_get(table->document, "at"));
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n<title>oversell: ",
          out);
    print_escaped(out, table->title);
    fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>oversell</h1>\n<p>", STYLE);
    print_escaped(out, table->title);
    fputs(".", out);
    if (at) {
        fputs(" Measured at ", out);
        print_escaped(out, at);
        fputs(".", out);
    }
    fputs("</p>\n", out);

    /* Without gnuplot there is still the table. The XML head of an SVG file has no place inside HTML. */
    char *svg = table->kind->plot ? plot_svg(table) : NULL;
    const char *body = svg ? strstr(svg, "<svg") : NULL;
    if (body)
        fprintf(out, "<figure>%s</figure>\n", body);
    free(svg);

    print_table(table, out);
    print_notes(table, out);
    print_facts("Settings", json_object_get(table->document, "settings"), out);
    print_facts("Machine", json_object_get(table->document, "machine"), out);
    fputs("</body>\n</html>\n", out);
    return true;
}
