/* A sheet as a table on a terminal: what was promised first, then figures, as many columns as there is
 * room for. */
#include "loadtest/report/format.h"

#include "loadtest/cli/terminal.h"
#include "loadtest/stats/verdict.h"

#include <stdlib.h>
#include <string.h>

#define HEADING_LINES 2
#define NOTE_WIDTH 110 /* notes are wrapped at this, or at the terminal */

struct layout {
    bool shown[64];
    size_t width[64];
    size_t gap;
};

/* ---- what fits ----------------------------------------------------------------------------------------- */

/* One line of a heading that may have two; "" where it has fewer. BUFFER of 128, returned. */
static const char *heading_line(const char *heading, int line, char *buffer)
{
    const char *second = strchr(heading, '\n');
    const char *from = line == 0 ? heading : second ? second + 1 : "";
    size_t length = line == 0 && second ? (size_t)(second - heading) : strlen(from);
    snprintf(buffer, 128, "%.*s", (int)length, from);
    return buffer;
}

static size_t column_width(const struct sheet *sheet, const struct column *column)
{
    char buffer[CELL_MAX];
    size_t width = 0, i;
    for (int line = 0; line < HEADING_LINES; line++) {
        size_t heading = display_width(heading_line(sheet_heading(sheet, column), line, buffer));
        width = heading > width ? heading : width;
    }
    json_t *row;
    json_array_foreach(sheet->rows, i, row) {
        size_t cell = display_width(cell_text(column, row, buffer));
        width = cell > width ? cell : width;
    }
    return width;
}

static size_t total_width(const struct sheet *sheet, const struct layout *layout)
{
    size_t total = 0;
    for (size_t i = 0; i < sheet->column_count; i++)
        if (layout->shown[i])
            total += layout->width[i] + (total ? layout->gap : 0);
    return total;
}

/* Finds the column that can be spared most; false if none can. */
static bool find_spare(const struct sheet *sheet, const struct layout *layout, size_t *ret_column)
{
    int highest = 0;
    for (size_t i = 0; i < sheet->column_count; i++)
        if (layout->shown[i] && sheet->columns[i].rank > highest) {
            highest = sheet->columns[i].rank;
            *ret_column = i;
        }
    return highest > 0;
}

static void lay_out(const struct sheet *sheet, size_t width, struct layout *ret_layout)
{
    *ret_layout = (struct layout){.gap = 2};
    for (size_t i = 0; i < sheet->column_count; i++) {
        ret_layout->shown[i] = (sheet->columns[i].shown & SHOW_TABLE) != 0;
        ret_layout->width[i] = column_width(sheet, &sheet->columns[i]);
    }
    size_t spare;
    if (width > 0 && total_width(sheet, ret_layout) > width)
        ret_layout->gap = 1;
    while (width > 0 && total_width(sheet, ret_layout) > width && find_spare(sheet, ret_layout, &spare))
        ret_layout->shown[spare] = false;
}

/* ---- printing ------------------------------------------------------------------------------------------ */

static const char RESET[] = "\033[0m", BOLD[] = "\033[1m", DIM[] = "\033[2m";

static const char *colour_of(const struct column *column, const json_t *row)
{
    static const char *const COLOURS[VERDICT_COUNT] = {
        [VERDICT_OK] = "\033[32m",           [VERDICT_OVERSOLD_AS_EXPECTED] = "\033[33m",
        [VERDICT_FLAWED] = "\033[36m",       [VERDICT_UNKNOWN] = "",
        [VERDICT_UNAVAILABLE] = "\033[2m",   [VERDICT_NOTHING_SHOWN] = "\033[1;31m",
        [VERDICT_NOT_CAUGHT] = "\033[1;31m", [VERDICT_MIXED] = "\033[1;31m",
        [VERDICT_BROKEN] = "\033[1;31m",     [VERDICT_CAUGHT] = "\033[33m",
    };
    enum verdict verdict;
    const json_t *value = cell_value(column, row);
    if (column->type == COLUMN_MARK && value)
        return json_is_true(value) ? COLOURS[VERDICT_OK] : COLOURS[VERDICT_OVERSOLD_AS_EXPECTED];
    if (column->type == COLUMN_VERDICT && verdict_parse(json_string_value(value), &verdict))
        return COLOURS[verdict];
    return "";
}

static void print_spaces(FILE *out, size_t count)
{
    fprintf(out, "%*s", (int)count, "");
}

static void print_cell(FILE *out, const char *text, size_t width, bool right, const char *colour)
{
    size_t padding = width - display_width(text);
    if (right)
        print_spaces(out, padding);
    bool coloured = *colour && *text;
    fprintf(out, "%s%s%s", coloured ? colour : "", text, coloured ? RESET : "");
    if (!right)
        print_spaces(out, padding);
}

static void print_headings(const struct sheet *sheet, const struct layout *layout, const struct page *page,
                           FILE *out)
{
    char buffer[128];
    bool two = false;
    for (size_t i = 0; i < sheet->column_count; i++)
        two = two || (layout->shown[i] && strchr(sheet_heading(sheet, &sheet->columns[i]), '\n'));
    for (int line = two ? 0 : 1; line < HEADING_LINES; line++) {
        for (size_t i = 0, printed = 0; i < sheet->column_count; i++) {
            if (!layout->shown[i])
                continue;
            /* A heading of one line stands on the lower one. */
            const char *heading = sheet_heading(sheet, &sheet->columns[i]);
            bool single = !strchr(heading, '\n');
            heading_line(heading, single ? 1 - line : line, buffer);
            print_spaces(out, printed++ ? layout->gap : 0);
            print_cell(out, buffer, layout->width[i], sheet->columns[i].type == COLUMN_NUMBER,
                       page->colour ? BOLD : "");
        }
        fputc('\n', out);
    }
    for (size_t width = total_width(sheet, layout); width > 0; width--)
        fputs("─", out);
    fputc('\n', out);
}

static void print_rows(const struct sheet *sheet, const struct layout *layout, const struct page *page,
                       FILE *out)
{
    char buffer[CELL_MAX];
    size_t r;
    json_t *row;
    json_array_foreach(sheet->rows, r, row) {
        for (size_t i = 0, printed = 0; i < sheet->column_count; i++) {
            const struct column *column = &sheet->columns[i];
            if (!layout->shown[i])
                continue;
            print_spaces(out, printed++ ? layout->gap : 0);
            print_cell(out, cell_text(column, row, buffer), layout->width[i], column->type == COLUMN_NUMBER,
                       page->colour ? colour_of(column, row) : "");
        }
        fputc('\n', out);
    }
}

/* Words, wrapped, with what follows the first line indented by as much as HEAD takes. */
static void print_wrapped(FILE *out, const char *head, const char *text, size_t width)
{
    size_t indent = display_width(head), at = indent;
    fputs(head, out);
    for (const char *word = text; *word;) {
        size_t bytes = strcspn(word, " ");
        char copy[CELL_MAX];
        snprintf(copy, sizeof copy, "%.*s", (int)bytes, word);
        size_t columns = display_width(copy);
        if (at > indent && at + 1 + columns > width) {
            fputc('\n', out);
            print_spaces(out, indent);
            at = indent;
        }
        at += columns + (at > indent && fputc(' ', out) ? 1 : 0);
        fputs(copy, out);
        word += bytes + strspn(word + bytes, " ");
    }
    fputc('\n', out);
}

static void print_left_out(const struct sheet *sheet, const struct layout *layout, size_t width, FILE *out)
{
    char *names = NULL;
    size_t size, count = 0;
    FILE *list = open_memstream(&names, &size);
    if (!list)
        return;
    for (size_t i = 0; i < sheet->column_count; i++)
        if ((sheet->columns[i].shown & SHOW_TABLE) && !layout->shown[i]) {
            fprintf(list, "%s", count++ ? ", " : "");
            for (const char *c = sheet->columns[i].heading; *c; c++)
                if (*c != '\n')
                    fputc(*c, list);
                else if (c[-1] != '-')
                    fputc(' ', list);
        }
    if (fclose(list) == 0 && count > 0)
        print_wrapped(out, "Left out, because the terminal is too narrow: ", names, width);
    free(names);
}

bool format_table(const struct sheet *sheet, const struct page *page, FILE *out)
{
    static const char *const HEADS[] = {
        [NOTE_WITNESS] = "  ✗ ", [NOTE_ADVICE] = "  → ", [NOTE_WARNING] = "  ! ", [NOTE_CLOSING] = ""};
    struct layout layout;
    size_t note_width = page->width > 0 && page->width < NOTE_WIDTH ? page->width : NOTE_WIDTH;
    lay_out(sheet, page->width, &layout);

    print_wrapped(out, "", sheet->title, note_width);
    fputc('\n', out);
    print_headings(sheet, &layout, page, out);
    print_rows(sheet, &layout, page, out);
    print_left_out(sheet, &layout, note_width, out);
    for (size_t i = 0; i < sheet->notes.count; i++) {
        const struct note *note = &sheet->notes.item[i];
        if (i == 0 || note->kind != sheet->notes.item[i - 1].kind)
            fputc('\n', out);
        const char *style = !page->colour                ? ""
                            : note->kind == NOTE_CLOSING ? BOLD
                            : note->kind == NOTE_ADVICE  ? DIM
                                                         : "";
        fputs(style, out);
        print_wrapped(out, HEADS[note->kind], note->text, note_width);
        fputs(*style ? RESET : "", out);
    }
    return true;
}
