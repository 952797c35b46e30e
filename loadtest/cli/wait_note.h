/* Says on stderr for what a command waits, so that a wait is not taken for a hang. */
#ifndef OVERSELL_LOADTEST_CLI_WAIT_NOTE_H
#define OVERSELL_LOADTEST_CLI_WAIT_NOTE_H

#include <stdbool.h>
#include <stdint.h>

enum { WAIT_NOTE_MS = 4000 }; /* a look follows within a second, so a person reads it within 5 s */

/* One wait. All zero: it begins with the first call of wait_note. One thread at a time. */
struct wait_note {
    int64_t since_us; /* monotonic */
    bool said;
};

/* Called again and again during the wait: after WAIT_NOTE_MS it prints the text once, which completes "waiting for". */
__attribute__((format(printf, 2, 3))) void wait_note(struct wait_note *note, const char *format, ...);

#endif
