/* Prints text in columns side by side. */
#include "loadtest/cli/columns.h"

#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH_DEFAULT = 100, COLUMN_LEAST = 24, COLUMN_MOST = 60, GAP = 2, INDENT = 2 };

struct columns columns_of(FILE *stream, size_t count, size_t page_width)
{
    struct columns columns = {stream, count, (page_width ? page_width : WIDTH_DEFAULT) / count};
    columns.width = columns.width > COLUMN_MOST + GAP ? COLUMN_MOST : columns.width;
    columns.width = columns.width < COLUMN_LEAST + GAP ? COLUMN_LEAST : columns.width - GAP;
    return columns;
}

void columns_names(const struct columns *columns, const char *const *names)
{
    for (size_t i = 0; i < columns->count; i++) {
        char *name = plain_copy(names[i]);
        size_t taken = name ? display_width(name) : 0, room = columns->width + GAP;
        (void)fprintf(columns->stream, "%s%*s", name ? name : "",
                      i + 1 < columns->count && taken < room ? (int)(room - taken) : 0, "");
        free(name);
    }
    (void)fputc('\n', columns->stream);
}

/* Bytes of the longest beginning of TEXT that has up to WIDTH characters, and ends before a space if it can. */
static size_t fitting(const char *text, size_t width)
{
    size_t bytes = 0, characters = 0, space = 0;
    while (text[bytes] && characters < width) {
        bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80)
            bytes++;
        characters++;
        if (text[bytes] == ' ')
            space = bytes;
    }
    return text[bytes] && space ? space : bytes;
}

void columns_cell(const struct columns *columns, size_t column, const char *text)
{
    size_t indent = 0;
    char *plain = plain_copy(text);
    for (text = plain ? plain : ""; *text;) {
        size_t left = column * (columns->width + GAP) + indent,
               length = fitting(text, columns->width - indent);
        (void)fprintf(columns->stream, "%*s%.*s\n", (int)left, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
        indent = INDENT;
    }
    free(plain);
}
