/* A table as JSON and CSV for programs, and as Markdown for READMEs. */
#include "loadtest/cli/complain.h"
#include "loadtest/report/format.h"

#include <string.h>

bool format_json(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    if (json_dumpf(table->document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) != 0) {
        complain("the result cannot be written as JSON");
        return false;
    }
    fputc('\n', out);
    return true;
}

/* As RFC 4180 says, and without a leading character that a spreadsheet would take for a formula. */
static void print_csv_field(FILE *out, const char *text, bool is_text)
{
    bool formula = is_text && *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

bool format_csv(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    char buffer[CELL_MAX];
    for (size_t i = 0, printed = 0; i < table->kind->column_count; i++)
        if (table->kind->columns[i].shown & SHOW_CSV)
            fprintf(out, "%s%s", printed++ ? "," : "", table->kind->columns[i].path);
    fputs("\r\n", out);
    size_t r;
    json_t *row;
    json_array_foreach(table->rows, r, row) {
        for (size_t i = 0, printed = 0; i < table->kind->column_count; i++) {
            const struct column *column = &table->kind->columns[i];
            if (!(column->shown & SHOW_CSV))
                continue;
            if (printed++)
                fputc(',', out);
            print_csv_field(out, cell_plain(column, row, buffer), json_is_string(cell_value(column, row)));
        }
        fputs("\r\n", out);
    }
    return true;
}

/* Text in a cell or a paragraph of Markdown: nothing in it is markup, nor ends the cell. */
static void print_markdown(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputc(' ', out);
        else if (*text == '<')
            fputs("&lt;", out);
        else {
            if (strchr("\\`*_[]|~", *text))
                fputc('\\', out);
            fputc(*text, out);
        }
    }
}

/* Headings break where a table on a terminal would; here they do not, nor does a word that was hyphenated
 * for it. */
static void print_markdown_heading(FILE *out, const char *heading)
{
    const char *second = strchr(heading, '\n');
    if (!second) {
        print_markdown(out, heading);
        return;
    }
    bool hyphenated = second > heading && second[-1] == '-';
    fprintf(out, "%.*s%s", (int)(second - heading) - hyphenated, heading, hyphenated ? "" : " ");
    print_markdown(out, second + 1);
}

/* When and where it was measured: no figure is worth much without. */
static void print_markdown_origin(const json_t *document, FILE *out)
{
    const json_t *machine = json_object_get(document, "machine");
    const char *at = json_string_value(json_object_get(document, "at"));
    const char *cpu = json_string_value(json_object_get(machine, "cpu"));
    const char *system = json_string_value(json_object_get(machine, "system"));
    if (!at || !cpu || !system)
        return;
    char origin[300];
    snprintf(origin, sizeof origin, "; %.10s, %lld × %s, %s", at,
             (long long)json_integer_value(json_object_get(machine, "cpus")), cpu, system);
    print_markdown(out, origin);
}

bool format_markdown(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    char buffer[CELL_MAX];
    print_markdown(out, table->title);
    print_markdown_origin(table->document, out);
    fputs("\n\n|", out);
    for (size_t i = 0; i < table->kind->column_count; i++)
        if (table->kind->columns[i].shown & SHOW_PAGE) {
            fputc(' ', out);
            print_markdown_heading(out, table_heading(table, &table->kind->columns[i]));
            fputs(" |", out);
        }
    fputs("\n|", out);
    for (size_t i = 0; i < table->kind->column_count; i++)
        if (table->kind->columns[i].shown & SHOW_PAGE)
            fputs(table->kind->columns[i].type == COLUMN_NUMBER ? " ---: |" : " --- |", out);
    fputc('\n', out);
    size_t r;
    json_t *row;
    json_array_foreach(table->rows, r, row) {
        fputc('|', out);
        for (size_t i = 0; i < table->kind->column_count; i++)
            if (table->kind->columns[i].shown & SHOW_PAGE) {
                fputc(' ', out);
                print_markdown(out, cell_text(&table->kind->columns[i], row, buffer));
                fputs(" |", out);
            }
        fputc('\n', out);
    }
    fputc('\n', out);
    for (size_t i = 0; i < table->notes.count; i++) {
        const struct note *note = &table->notes.item[i];
        if (note->kind == NOTE_CLOSING)
            fputc('\n', out);
        fputs(note->kind == NOTE_CLOSING ? "" : note->kind == NOTE_WARNING ? "- **!** " : "- ", out);
        print_markdown(out, note->text);
        fputc('\n', out);
    }
    return true;
}
