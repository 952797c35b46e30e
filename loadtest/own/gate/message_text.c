/* Builds the line of text that represents a message. Pure. */
#include "loadtest/own/gate/message_text.h"

#include <string.h>

/* The length of the UTF-8 character at BYTES; 0: there is none. Unicode 15, table 3-7. */
static size_t character_length(const unsigned char *bytes, size_t count)
{
    unsigned char first = bytes[0], low = 0x80, high = 0xbf;
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length > count)
        return 0;
    if (first == 0xe0)
        low = 0xa0;
    if (first == 0xed)
        high = 0x9f;
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (bytes[i] < low || bytes[i] > high)
            return 0;
    return length;
}

void message_append(char *text, const char *bytes, size_t count)
{
    size_t length = strlen(text);
    for (size_t i = 0, size; i < count; i += size) {
        size = character_length((const unsigned char *)bytes + i, count - i);
        char byte = bytes[i];
        bool space = size == 1 && byte && strchr(" \t\r\n", byte);
        bool strange = size == 0 || (size == 1 && !space && ((unsigned char)byte < ' ' || byte == 0x7f));
        size = size ? size : 1;
        if (space && (length == 0 || text[length - 1] == ' '))
            continue;
        if (length + size >= MESSAGE_TEXT)
            break;
        memcpy(text + length, space ? " " : strange ? "?" : bytes + i, size);
        length += size;
    }
    text[length] = '\0';
}

void message_append_text(char *text, const char *more)
{
    message_append(text, more, strlen(more));
}
