/* Error texts in buffers. */
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
