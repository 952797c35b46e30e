/* What a stream can show: colour, width, and what it is. */
#include "loadtest/cli/terminal.h"

#include "loadtest/cli/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is_smart(FILE *stream)
{
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_has_colour(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR");
    return terminal_is_smart(stream) && !(no_colour && *no_colour);
}

size_t terminal_width(FILE *stream)
{
    struct winsize size;
    if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int64_t width;
    return columns && parse_number(columns, &width) && width > 0 && width < 10000 ? (size_t)width : 0;
}

size_t display_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80; /* bytes that continue a character take no place */
    return width;
}
