/* Saying what went wrong: one line on stderr, over a progress bar if there is one. */
#include "loadtest/cli/complain.h"

#include "loadtest/cli/plain_text.h"
#include "loadtest/cli/progress.h"

#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    progress_wipe();
    fputs("loadtest: ", stderr);
    plain_vprint(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}
