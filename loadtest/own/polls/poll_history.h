/* Recognizes a request that polls PostgreSQL, as a service does that keeps a lock in a table: it repeats statements that have no effect, and
 * will have none until another request has changed something. So a search holds it until then, and is finite. Pure. */
#ifndef OVERSELL_LOADTEST_OWN_POLLS_POLL_HISTORY_H
#define OVERSELL_LOADTEST_OWN_POLLS_POLL_HISTORY_H

#include "loadtest/own/polls/statement_effect.h"

#include <stddef.h>
#include <stdint.h>

enum { POLL_HISTORY = 128, POLL_WORDS = 512 };

/* What one request has sent since it, or another one, changed something. All zero: nothing. */
struct poll_history {
    struct {
        uint64_t exact; /* hash of the statement without what looks like a time */
        uint64_t loose; /* and without what looks like an identifier; both 0: COMMIT or ROLLBACK */
        bool in_vain;
    } item[POLL_HISTORY];
    size_t count;
    bool is_refused;               /* a lock of another one was a reason */
    bool reads_more;               /* a statement that was to write has a subquery or a second table */
    uint8_t words[POLL_WORDS / 8]; /* a bit for the hash of each word of the statements */
};

/* Adds a statement that has ended. TEXT as struct gate_connection has it; OPEN: it ran in a transaction that had begun before. One with
 * EFFECT_CHANGES clears the history. */
void poll_history_add(struct poll_history *history, const char *text, bool open,
                      enum statement_effect effect);
void poll_history_clear(struct poll_history *history);
/* Would the statement TEXT, which the request sends next, have no effect again? Then the hash of the statements that it repeats, which is not
 * 0. It counts from the second time on if one of them was in vain, and from the fourth time on if all of them read, or differ in identifiers: a
 * program may read the same row again. */
uint64_t poll_history_repeats(const struct poll_history *history, const char *text, bool open);
/* The statement is one of those that were repeated. */
bool poll_history_has(const struct poll_history *history, const char *text, bool open);
/* A number for the table that the statement TEXT writes, without its schema; 0: it begins otherwise. */
uint32_t poll_table(const char *text);
/* A statement of the history has that name as a word, or a word with the same bit. */
bool poll_history_names(const struct poll_history *history, uint32_t table);

#endif
