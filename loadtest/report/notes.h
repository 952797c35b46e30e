/* The notes below a result table: counterexamples, advice, warnings and a closing sentence. */
#ifndef OVERSELL_LOADTEST_REPORT_NOTES_H
#define OVERSELL_LOADTEST_REPORT_NOTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum note_kind {
    NOTE_WITNESS, /* how it happened */
    NOTE_ADVICE,  /* what follows from it */
    NOTE_WARNING, /* something is not as it should be */
    NOTE_CLOSING,
};

struct note {
    enum note_kind kind;
    char *text;
};

/* Notes that are being made. After a failure some may be missing. Zeroed: none. */
struct notes {
    struct note *item;
    size_t count;
    bool failed; /* out of memory */
};

/* Adds to *notes what a document of one kind calls for. */
typedef void notes_fn(const json_t *document, struct notes *notes);

__attribute__((format(printf, 3, 4))) void notes_add(struct notes *notes, enum note_kind kind,
                                                     const char *format, ...);
/* Continues the note that was added last. */
__attribute__((format(printf, 2, 3))) void notes_append(struct notes *notes, const char *format, ...);
/* Adds the closing sentence that counts the verdicts of ROWS, each of which is ONE ("row"), or else SEVERAL ("rows"). */
void notes_add_verdicts(struct notes *notes, const json_t *rows, const char *one, const char *several);
/* Adds a warning if the settings' "load_average" shows that other programs used the machine before the start. */
void notes_add_busy_machine(struct notes *notes, const json_t *document);
/* Adds a warning for each of ROWS that was not available, with the reason. */
void notes_add_unavailable(struct notes *notes, const json_t *rows);
void notes_free(struct notes *notes);

#endif
