/* Text of others on a terminal, without what controls the terminal. */
#include "loadtest/cli/plain_text.h"

#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

size_t plain_text(const char *text, char *ret_text, size_t size)
{
    size_t whole = 0, used = 0, length;
    for (; *text; text += length ? length : 1) {
        uint32_t point = text_code_point(text, &length);
        bool is_layout = *text == '\n' || *text == '\t' || (*text == '\r' && text[1] == '\n');
        char piece[12];
        if (length == 0)
            (void)snprintf(piece, sizeof piece, "\\x%02X", (unsigned)(unsigned char)*text);
        else if (is_layout || !text_is_control(point))
            (void)snprintf(piece, sizeof piece, "%.*s", (int)length, text);
        else
            (void)snprintf(piece, sizeof piece, point < 0x80 ? "\\x%02X" : "\\u%04X", (unsigned)point);
        size_t more = strlen(piece);
        if (used == whole && used + more < size) {
            memcpy(ret_text + used, piece, more);
            used += more;
        }
        whole += more;
    }
    if (size > 0)
        ret_text[used] = '\0';
    return whole;
}

char *plain_copy(const char *text)
{
    size_t size = plain_text(text, NULL, 0) + 1;
    char *copy = malloc(size);
    if (copy)
        (void)plain_text(text, copy, size);
    return copy;
}

void plain_vprint(FILE *stream, const char *format, va_list arguments)
{
    char *text = NULL, *plain = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    if (text)
        plain = plain_copy(text);
    (void)fputs(plain ? plain : format, stream);
    free(text);
    free(plain);
}

void plain_print(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    plain_vprint(stream, format, arguments);
    va_end(arguments);
}
