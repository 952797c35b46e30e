/* A table as a table on a terminal: what was promised first, then figures, as many columns as there is
 * room for. */
#include "loadtest/report/format.h"

#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/terminal.h"

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

/* The text of a cell without what controls a terminal. BUFFER of CELL_MAX, returned. */
static const char *shown_text(const struct column *column, const json_t *row, char *buffer)
{
    char text[CELL_MAX];
    (void)plain_text(cell_text(column, row, text), buffer, CELL_MAX);
    return buffer;
}

static size_t column_width(const struct result_table *table, const struct column *column)
{
    char buffer[CELL_MAX];
    size_t width = 0, i;
    for (int line = 0; line < HEADING_LINES; line++) {
        size_t heading = display_width(heading_line(table_heading(table, column), line, buffer));
        width = heading > width ? heading : width;
    }
    json_t *row;
    json_array_foreach(table->rows, i, row) {
        size_t cell = display_width(shown_text(column, row, buffer));
        width = cell > width ? cell : width;
    }
    return width;
}

static size_t total_width(const struct result_table *table, const struct layout *layout)
{
    size_t total = 0;
    for (size_t i = 0; i < table->kind->column_count; i++)
        if (layout->shown[i])
            total += layout->width[i] + (total ? layout->gap : 0);
    return total;
}

/* Finds the column that can be spared most; false if none can. */
static bool find_spare(const struct result_table *table, const struct layout *layout, size_t *ret_column)
{
    int highest = 0;
    for (size_t i = 0; i < table->kind->column_count; i++)
        if (layout->shown[i] && table->kind->columns[i].rank > highest) {
            highest = table->kind->columns[i].rank;
            *ret_column = i;
        }
    return highest > 0;
}

static void lay_out(const struct result_table *table, size_t width, struct layout *ret_layout)
{
    *ret_layout = (struct layout){.gap = 2};
    for (size_t i = 0; i < table->kind->column_count; i++) {
        ret_layout->shown[i] = (table->kind->columns[i].shown & SHOW_TABLE) != 0;
        ret_layout->width[i] = column_width(table, &table->kind->columns[i]);
    }
    size_t spare;
    if (width > 0 && total_width(table, ret_layout) > width)
        ret_layout->gap = 1;
    while (width > 0 && total_width(table, ret_layout) > width && find_spare(table, ret_layout, &spare))
        ret_layout->shown[spare] = false;
}

/* ---- printing ------------------------------------------------------------------------------------------ */

static const char RESET[] = "\033[0m", BOLD[] = "\033[1m", DIM[] = "\033[2m";

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

static void print_headings(const struct result_table *table, const struct layout *layout,
                           const struct page *page, FILE *out)
{
    char buffer[128];
    bool two = false;
    for (size_t i = 0; i < table->kind->column_count; i++)
        two = two || (layout->shown[i] && strchr(table_heading(table, &table->kind->columns[i]), '\n'));
    for (int line = two ? 0 : 1; line < HEADING_LINES; line++) {
        for (size_t i = 0, printed = 0; i < table->kind->column_count; i++) {
            if (!layout->shown[i])
                continue;
            /* A heading of one line stands on the lower one. */
            const char *heading = table_heading(table, &table->kind->columns[i]);
            bool single = !strchr(heading, '\n');
            heading_line(heading, single ? 1 - line : line, buffer);
            print_spaces(out, printed++ ? layout->gap : 0);
            print_cell(out, buffer, layout->width[i], table->kind->columns[i].type == COLUMN_NUMBER,
                       page->colour ? BOLD : "");
        }
        fputc('\n', out);
    }
    for (size_t width = total_width(table, layout); width > 0; width--)
        fputs("─", out);
    fputc('\n', out);
}

static void print_rows(const struct result_table *table, const struct layout *layout, const struct page *page,
                       FILE *out)
{
    char buffer[CELL_MAX];
    size_t r;
    json_t *row;
    json_array_foreach(table->rows, r, row) {
        for (size_t i = 0, printed = 0; i < table->kind->column_count; i++) {
            const struct column *column = &table->kind->columns[i];
            if (!layout->shown[i])
                continue;
            print_spaces(out, printed++ ? layout->gap : 0);
            print_cell(out, shown_text(column, row, buffer), layout->width[i], column->type == COLUMN_NUMBER,
                       page->colour ? cell_style(column, row)->colour : "");
        }
        fputc('\n', out);
    }
}

/* Words, wrapped, with what follows the first line indented by as much as HEAD takes. */
static void print_wrapped(FILE *out, const char *head, const char *text, size_t width)
{
    size_t indent = display_width(head), at = indent;
    char *plain = plain_copy(text);
    fputs(head, out);
    for (const char *word = plain ? plain : ""; *word;) {
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
    free(plain);
    fputc('\n', out);
}

static void print_left_out(const struct result_table *table, const struct layout *layout, size_t width,
                           FILE *out)
{
    char *names = NULL;
    size_t size, count = 0;
    FILE *list = open_memstream(&names, &size);
    if (!list)
        return;
    for (size_t i = 0; i < table->kind->column_count; i++)
        if ((table->kind->columns[i].shown & SHOW_TABLE) && !layout->shown[i]) {
            fprintf(list, "%s", count++ ? ", " : "");
            for (const char *c = table->kind->columns[i].heading; *c; c++)
                if (*c != '\n')
                    fputc(*c, list);
                else if (c[-1] != '-')
                    fputc(' ', list);
        }
    if (fclose(list) == 0 && count > 0)
        print_wrapped(out, "Hidden, because the terminal is too narrow: ", names, width);
    free(names);
}

bool format_table(const struct result_table *table, const struct page *page, FILE *out)
{
    static const char *const HEADS[] = {
        [NOTE_WITNESS] = "  ✗ ", [NOTE_ADVICE] = "  → ", [NOTE_WARNING] = "  ! ", [NOTE_CLOSING] = ""};
    struct layout layout;
    size_t note_width = page->width > 0 && page->width < NOTE_WIDTH ? page->width : NOTE_WIDTH;
    lay_out(table, page->width, &layout);

    print_wrapped(out, "", table->title, note_width);
    fputc('\n', out);
    print_headings(table, &layout, page, out);
    print_rows(table, &layout, page, out);
    print_left_out(table, &layout, note_width, out);
    for (size_t i = 0; i < table->notes.count; i++) {
        const struct note *note = &table->notes.item[i];
        if (i == 0 || note->kind != table->notes.item[i - 1].kind)
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
