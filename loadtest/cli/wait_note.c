/* Says on stderr for what a command waits, so that a wait is not taken for a hang. */
#include "loadtest/cli/wait_note.h"

#include "base/clock.h"
#include "loadtest/cli/complain.h"

#include <stdarg.h>
#include <stdio.h>

void wait_note(struct wait_note *note, const char *format, ...)
{
    char text[400];
    va_list arguments;
    int64_t now = monotonic_us();
    if (note->since_us == 0)
        note->since_us = now;
    if (note->said || now - note->since_us < (int64_t)WAIT_NOTE_MS * 1000)
        return;
    note->said = true;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    complain("waiting for %s", text);
}
