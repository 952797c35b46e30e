/* Error texts in buffers, and the hash of a text. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

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
