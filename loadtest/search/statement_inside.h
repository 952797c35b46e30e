/* Tells which statements are not atomic at READ COMMITTED: what runs inside them takes several snapshots, or reads more than it locks. It
 * looks for words only, so it errs towards "not atomic". No I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_SEARCH_STATEMENT_INSIDE_H
#define OVERSELL_LOADTEST_SEARCH_STATEMENT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

enum routine_kind {
    ROUTINE_FUNCTION, /* each statement in it takes a snapshot */
    ROUTINE_READ,     /* a view, a policy, or a function that reads with the snapshot of the statement */
    ROUTINE_TRIGGER, /* runs when the table is written: a trigger, a CHECK, a default; also a table that is written together with this one */
    ROUTINE_DEFERRED, /* a trigger that may run at COMMIT */
    ROUTINE_RULE,
};

/* What can run inside a statement that names it, or its table. */
struct routine {
    char *name; /* in a statement: of the function, or of the table or view */
    char *body; /* its SQL; of a trigger: the function's name; of a rule: "" */
    enum routine_kind kind;
};

/* All zero: none. */
struct routines {
    struct routine *item;
    size_t count;
};

/* For PostgreSQL: name, body and kind of each, for routines_add. Left out is what belongs to PostgreSQL itself or an extension, or is
 * written in C. */
extern const char ROUTINES_SQL[];
/* Copies the texts. KIND: "function", "read", "trigger", "deferred" or "rule". False: out of memory. */
bool routines_add(struct routines *routines, const char *name, const char *body, const char *kind);
void routines_free(struct routines *routines);

struct statement_inside {
    bool splits;    /* outside a transaction, another request can act between its reads and its COMMIT */
    bool can_split; /* and it may run inside a transaction block */
    bool calls;     /* SPLITS, apart from several statements in one text that only write */
    bool many;      /* its text has several statements, apart from those that only change the session */
    bool runs;      /* a function, a procedure or a trigger with statements runs in it */
    bool reads_and_writes; /* outside of these */
    /* it takes more than one snapshot: a function or trigger with several statements, or several statements in one text */
    bool several;
};

/* TEXT: one statement, or several with semicolons, as the service sent them. */
struct statement_inside statement_inside(const struct routines *routines, const char *text);

/* TEXT writes a table with a deferred trigger that reads: another request can act inside the COMMIT of its transaction. */
bool statement_defers(const struct routines *routines, const char *text);

/* TEXT names a function, a view, or a table with a trigger, rule or policy. */
bool statement_runs_routine(const struct routines *routines, const char *text);

#endif
