/* Tells which statements are not atomic at READ COMMITTED: what runs inside them takes several snapshots, or reads more than it locks. It
 * looks for words only, so it errs towards "not atomic". No I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_EXPLORE_CORE_STATEMENT_INSIDE_H
#define OVERSELL_LOADTEST_EXPLORE_CORE_STATEMENT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

/* A function, trigger, rule or view of the database. */
struct routine {
    char *name; /* in a statement: of the function, or of the table or view */
    char *body; /* its SQL; of a trigger: the function's name; of a rule: "" */
    bool is_trigger, is_rule;
};

/* All zero: none. */
struct routines {
    struct routine *item;
    size_t count;
};

/* For PostgreSQL: name, body and kind of each, for routines_add. Left out is what belongs to PostgreSQL itself or an extension, is written in
 * C, or takes no snapshot. */
extern const char ROUTINES_SQL[];
/* Copies the texts. KIND: "function", "trigger", "rule" or "view". False: out of memory. */
bool routines_add(struct routines *routines, const char *name, const char *body, const char *kind);
void routines_free(struct routines *routines);

struct statement_inside {
    bool splits;    /* outside a transaction, another request can act between its reads and its COMMIT */
    bool can_split; /* and it may run inside a transaction block */
    bool calls;     /* SPLITS, apart from several statements in one text that only write */
    bool
        several; /* it takes more than one snapshot: a function or trigger with several statements, or several statements in one text */
};

/* TEXT: one statement, or several with semicolons, as the service sent them. */
struct statement_inside statement_inside(const struct routines *routines, const char *text);

/* TEXT names a function, a view, or a table with a trigger or rule. */
bool statement_runs_routine(const struct routines *routines, const char *text);

#endif
