/* A result as a report: one self-contained HTML file that begins with what was found. */
#include "loadtest/report/format.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_OPEN 60     /* more rows than this are folded */
#define WITNESSES_OPEN 5 /* more counterexamples than this are folded */

/* The style and the script, each a text, and the colours of drawings; page_assets.S embeds them. */
extern const char report_look[], report_style[], report_colours[], report_script[];

/* Prints <TAG ATTRIBUTES>TEXT</TAG>. */
static void print_element(FILE *out, const char *tag, const char *attributes, const char *text)
{
    fprintf(out, "<%s%s%s>", tag, *attributes ? " " : "", attributes);
    print_escaped(out, text);
    fprintf(out, "</%s>", tag);
}

static bool print_head(const char *title, FILE *out)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n"
        /* The file asks nobody for anything, whatever a name in the result says. */
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'\">\n<title>oversell: ",
        out);
    print_escaped(out, title);
    fprintf(out, "</title>\n<style>\n%s%s%s</style>\n</head>\n", report_look, report_style, report_colours);
    return true;
}

/* ---- the tables ---------------------------------------------------------------------------------------- */

static const struct column *find_column(const struct result_kind *kind, const char *path)
{
    for (size_t i = 0; i < kind->column_count; i++)
        if (strcmp(kind->columns[i].path, path) == 0)
            return &kind->columns[i];
    return NULL;
}

/* Headings break where a table on a terminal would. Here they are one line, and a word that was hyphenated is whole. */
static void print_heading(FILE *out, const char *heading)
{
    const char *second = strchr(heading, '\n');
    char first[128];
    if (second) {
        bool hyphenated = second > heading && second[-1] == '-';
        snprintf(first, sizeof first, "%.*s%s%s", (int)(second - heading) - hyphenated, heading,
                 hyphenated ? "" : " ", second + 1);
        heading = first;
    }
    print_escaped(out, heading);
}

static void print_column_head(const struct result_table *table, const struct column *column, FILE *out)
{
    fprintf(out, "<th scope=\"col\"%s title=\"", column->type == COLUMN_NUMBER ? " class=\"n\"" : "");
    print_escaped(out, column->meaning);
    fputs("\">", out);
    print_heading(out, table_heading(table, column));
    fputs("</th>", out);
}

/* The first cell of a row names it. */
static void print_cell(const struct result_table *table, const struct column *column, const json_t *row,
                       bool first, FILE *out)
{
    char buffer[CELL_MAX];
    const char *class = column->type == COLUMN_NUMBER ? "n" : cell_style(column, row)->html;
    if (first) {
        print_element(out, "th", "scope=\"row\"", cell_text(column, row, buffer));
        return;
    }
    fputs("<td data-label=\"", out);
    print_heading(out, table_heading(table, column));
    fprintf(out, "\"%s%s%s><span>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    print_escaped(out, cell_text(column, row, buffer));
    fputs("</span></td>", out);
}

/* COLUMNS, of which there are COUNT, of every row. */
static void print_table(const struct result_table *table, const struct column *const *columns, size_t count,
                        const char *class, FILE *out)
{
    fprintf(out, "<table class=\"sortable stacks %s\">\n<thead><tr>", class);
    for (size_t i = 0; i < count; i++)
        print_column_head(table, columns[i], out);
    fputs("</tr></thead>\n<tbody>\n", out);
    size_t r;
    json_t *row;
    json_array_foreach(table->rows, r, row) {
        fputs("<tr>", out);
        for (size_t i = 0; i < count; i++)
            print_cell(table, columns[i], row, i == 0, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
}

static void print_meanings(const struct result_table *table, const struct column *const *columns,
                           size_t count, FILE *out)
{
    fputs("<details><summary>What the columns mean</summary>\n<dl class=\"meanings\">\n", out);
    for (size_t i = 0; i < count; i++) {
        fputs("<dt>", out);
        print_heading(out, table_heading(table, columns[i]));
        fputs("</dt>", out);
        print_element(out, "dd", "", columns[i]->meaning);
        fputc('\n', out);
    }
    fputs("</dl></details>\n", out);
}

/* A narrow window can scroll it, rather than the page. */
static void print_key_table(const struct result_table *table, const struct column *const *columns,
                            size_t count, FILE *out)
{
    fputs("<div class=\"scroll\">\n", out);
    print_table(table, columns, count, "key", out);
    fputs("</div>\n", out);
}

static void print_tables(const struct result_table *table, FILE *out)
{
    const struct result_kind *kind = table->kind;
    const struct column *all[64], *key[64];
    size_t all_count = 0, key_count = 0;
    for (size_t i = 0; i < kind->column_count && all_count < 64; i++)
        if (kind->columns[i].shown & SHOW_PAGE)
            all[all_count++] = &kind->columns[i];
    for (const char *const *path = kind->key_columns; path && *path && key_count < 64; path++)
        if ((key[key_count] = find_column(kind, *path)))
            key_count++;

    bool folded = json_array_size(table->rows) > ROWS_OPEN;
    fputs("<section class=\"card\">\n<h2>Results</h2>\n", out);
    if (folded)
        fprintf(out, "<details class=\"rows\"><summary>%zu rows</summary>\n", json_array_size(table->rows));
    if (key_count == 0 || key_count == all_count) {
        print_key_table(table, all, all_count, out);
    } else {
        print_key_table(table, key, key_count, out);
        fprintf(out, "<details><summary>All %zu columns</summary>\n<div class=\"scroll\">\n", all_count);
        print_table(table, all, all_count, "all", out);
        fputs("</div></details>\n", out);
    }
    print_meanings(table, all, all_count, out);
    fputs(folded ? "</details></section>\n" : "</section>\n", out);
}

/* ---- the notes ----------------------------------------------------------------------------------------- */

static size_t count_notes(const struct notes *notes, enum note_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < notes->count; i++)
        count += notes->item[i].kind == kind;
    return count;
}

static void print_notes(const struct notes *notes, enum note_kind kind, const char *mark, FILE *out)
{
    if (count_notes(notes, kind) == 0)
        return;
    fputs("<ul class=\"notes\">\n", out);
    for (size_t i = 0; i < notes->count; i++)
        if (notes->item[i].kind == kind) {
            fprintf(out, "<li data-mark=\"%s\">", mark);
            print_escaped(out, notes->item[i].text);
            fputs("</li>\n", out);
        }
    fputs("</ul>\n", out);
}

static void print_warnings(const struct notes *notes, FILE *out)
{
    if (count_notes(notes, NOTE_WARNING) == 0)
        return;
    fputs("<section class=\"card warnings\">\n<h2>Warnings</h2>\n", out);
    print_notes(notes, NOTE_WARNING, "!", out);
    fputs("</section>\n", out);
}

static void print_findings(const struct notes *notes, FILE *out)
{
    size_t witnesses = count_notes(notes, NOTE_WITNESS);
    if (notes->count == count_notes(notes, NOTE_WARNING))
        return;
    fputs("<section class=\"card\">\n<h2>What was seen</h2>\n", out);
    if (witnesses > WITNESSES_OPEN)
        fprintf(out, "<details><summary>%zu counterexamples</summary>\n", witnesses);
    print_notes(notes, NOTE_WITNESS, "✗", out);
    if (witnesses > WITNESSES_OPEN)
        fputs("</details>\n", out);
    print_notes(notes, NOTE_ADVICE, "→", out);
    for (size_t i = 0; i < notes->count; i++)
        if (notes->item[i].kind == NOTE_CLOSING)
            print_element(out, "p", "class=\"closing\"", notes->item[i].text);
    fputs("</section>\n", out);
}

/* ---- where it comes from ------------------------------------------------------------------------------- */

/* "load_average" as people read it. */
static void print_fact(const char *key, const json_t *value, FILE *out)
{
    fputs("<div><dt>", out);
    for (; *key; key++) {
        char character[2] = {(char)(*key == '_' ? ' ' : *key)};
        print_escaped(out, character);
    }
    fputs("</dt><dd>", out);
    if (json_is_array(value) && json_is_string(json_array_get(value, 0))) {
        size_t i;
        json_t *item;
        json_array_foreach(value, i, item) {
            fputs(i ? ", " : "", out);
            print_escaped(out, json_is_string(item) ? json_string_value(item) : "…");
        }
    } else if (json_is_string(value)) {
        print_escaped(out, json_string_value(value));
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        print_escaped(out, text ? text : "");
        free(text);
    }
    fputs("</dd></div>\n", out);
}

static void print_facts(json_t *object, FILE *out)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
        print_fact(key, value, out);
}

/* All settings are there; one line says where and when. */
static void print_origin(const json_t *document, FILE *out)
{
    const json_t *machine = json_object_get(document, "machine");
    json_t *settings = json_object_get(document, "settings");
    const char *at = json_string_value(json_object_get(document, "at"));
    const char *cpu = json_string_value(json_object_get(machine, "cpu"));
    const char *system = json_string_value(json_object_get(machine, "system"));
    if (!machine && json_object_size(settings) == 0)
        return;
    char line[400];
    snprintf(line, sizeof line, "Measured %.10s %.5s UTC on %lld × %s, %s; %zu settings", at ? at : "?",
             at && strlen(at) > 16 ? at + 11 : "",
             (long long)json_integer_value(json_object_get(machine, "cpus")), cpu ? cpu : "?",
             system ? system : "?", json_object_size(settings));
    fputs("<details class=\"origin\">", out);
    print_element(out, "summary", "", line);
    fputs("\n<dl class=\"facts\">\n", out);
    print_facts(settings, out);
    print_facts(json_object_get(document, "machine"), out);
    fputs("</dl></details>\n", out);
}

static void print_again(const json_t *document, FILE *out)
{
    const char *command = json_string_value(json_object_get(document, "command"));
    fputs("<section class=\"card\">\n<h2>Run it again</h2>\n", out);
    if (command) {
        fputs("<div class=\"again\">", out);
        print_element(out, "pre", "id=\"command\"", command);
        fputs("<button type=\"button\" class=\"copy\" data-from=\"command\" hidden>Copy</button></div>\n",
              out);
    } else {
        print_element(out, "p", "", "The stored result does not contain its command line.");
    }
    print_origin(document, out);
    fputs("</section>\n", out);
}

/* ---- the report ---------------------------------------------------------------------------------------- */

/* What was found: the kind's own sentence, or its closing note, or else what was done. */
static const char *headline(const struct result_table *table, char *buffer, size_t size)
{
    buffer[0] = 0;
    if (table->kind->headline)
        (void)table_sentence(table->kind->headline, table->document, buffer, size);
    for (size_t i = table->notes.count; i > 0 && !buffer[0]; i--)
        if (table->notes.item[i - 1].kind == NOTE_CLOSING)
            snprintf(buffer, size, "%s", table->notes.item[i - 1].text);
    return buffer[0] ? buffer : table->title;
}

bool format_html(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    char buffer[600];
    const char *finding = headline(table, buffer, sizeof buffer);
    print_head(finding, out);
    fputs("<body>\n<main class=\"report\">\n<header>", out);
    fprintf(out, "<p class=\"brand\">oversell %s</p>", table->kind->name);
    print_element(out, "h1", "", finding);
    if (table->title[0]) {
        fputs("<p class=\"title\">", out);
        print_escaped(out, table->title);
        fputs(".</p>", out);
    }
    fputs("</header>\n", out);
    print_warnings(&table->notes, out);

    print_charts(table, out);
    print_tables(table, out);
    print_findings(&table->notes, out);
    print_again(table->document, out);
    fprintf(out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", report_script);
    return true;
}
