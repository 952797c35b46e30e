/* Error texts in buffers, the hash of a text, and its characters in UTF-8. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool text_fail(char *ret_error, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(ret_error, size, format, arguments);
    va_end(arguments);
    return false;
}

uint32_t text_hash(const char *text)
{
    uint32_t hash = 2166136261;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619;
    return hash;
}

void text_mend(char *text)
{
    char *end = text;
    while (*text) {
        size_t length;
        (void)text_code_point(text, &length);
        memmove(end, text, length);
        end += length;
        text += length ? length : 1;
    }
    *end = '\0';
}

bool text_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

bool text_is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x61c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069);
}

uint32_t text_code_point(const char *text, size_t *ret_length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800,
                                     0x10000}; /* a longer form of a smaller one is not valid */
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80       ? 1
                    : byte[0] >> 5 == 6  ? 2
                    : byte[0] >> 4 == 14 ? 3
                    : byte[0] >> 3 == 30 ? 4
                                         : 0;
    uint32_t point = length == 1 ? byte[0] : byte[0] & (0x7fU >> length);
    *ret_length = 0;
    for (size_t i = 1; i < length; i++) {
        if (byte[i] >> 6 != 2)
            return 0;
        point = point << 6 | (byte[i] & 0x3fU);
    }
    if (length > 0 && point >= least[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff))
        *ret_length = length;
    return point;
}
