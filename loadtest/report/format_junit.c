/* The verdicts of a table as JUnit XML, with a test case for each row, for continuous integration. */
#include "loadtest/report/format.h"

#include "base/text.h"
#include "loadtest/report/result.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* XML has no character for most control codes, nor for a part of a character, which a text that was cut off can end with. */
static void print_xml(FILE *out, const char *text)
{
    for (size_t length; *text; text += length) {
        uint32_t point = text_code_point(text, &length);
        bool is_valid = length > 0 && (point >= ' ' || point == '\t') && point != 0xfffe && point != 0xffff;
        char character[5] = "?";
        length = length > 0 ? length : 1;
        if (is_valid)
            snprintf(character, sizeof character, "%.*s", (int)length, text);
        if (point == '\n')
            fputs("&#10;", out);
        else
            print_escaped(out, character);
    }
}

static bool fails(const json_t *row)
{
    return json_object_get(row, "verdict") && verdict_fails(result_verdict(row));
}

static bool is_skipped(const json_t *row)
{
    return json_object_get(row, "verdict") && result_verdict(row) == VERDICT_UNAVAILABLE;
}

/* What names the row among the others: the strategy, the fault or the number of the run. */
static void print_name(const struct result_table *table, const json_t *row, FILE *out)
{
    char buffer[CELL_MAX];
    const struct column *column = &table->kind->columns[0];
    if (column->type == COLUMN_NUMBER)
        fprintf(out, "%s ", column->path);
    print_xml(out, cell_plain(column, row, buffer));
    const char *strategy = result_text(row, "strategy");
    if (*strategy && strcmp(column->path, "strategy") != 0) {
        fputc(' ', out);
        print_xml(out, strategy);
    }
}

static void print_cells(const struct result_table *table, const json_t *row, FILE *out)
{
    char buffer[CELL_MAX];
    for (size_t i = 0; i < table->kind->column_count; i++) {
        const struct column *column = &table->kind->columns[i];
        if (!(column->shown & SHOW_CSV) || !cell_value(column, row))
            continue;
        print_xml(out, column->path);
        fputs(": ", out);
        print_xml(out, cell_plain(column, row, buffer));
        fputs("&#10;", out);
    }
}

bool format_junit(const struct result_table *table, const struct page *page, FILE *out)
{
    (void)page;
    size_t i, failed = 0, skipped = 0;
    json_t *row;
    json_array_foreach(table->rows, i, row) {
        failed += fails(row);
        skipped += is_skipped(row);
    }
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"loadtest %s\" tests=\"%zu\" "
        "failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
        table->kind->name, json_array_size(table->rows), failed, skipped);
    json_array_foreach(table->rows, i, row) {
        fprintf(out, "    <testcase classname=\"loadtest.%s\" name=\"", table->kind->name);
        print_name(table, row, out);
        fputs("\">\n", out);
        if (fails(row) || is_skipped(row)) {
            fprintf(out, "      <%s message=\"", fails(row) ? "failure" : "skipped");
            print_xml(out, result_text(row, "verdict"));
            fputs("\"/>\n", out);
        }
        fputs("      <system-out>", out);
        print_cells(table, row, out);
        fputs("</system-out>\n    </testcase>\n", out);
    }
    fputs("    <system-out>", out);
    print_xml(out, table->title);
    for (size_t n = 0; n < table->notes.count; n++) {
        fputs("&#10;", out);
        print_xml(out, table->notes.item[n].text);
    }
    fputs("</system-out>\n  </testsuite>\n</testsuites>\n", out);
    return true;
}
