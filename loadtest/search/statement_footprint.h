/* What a statement reads and writes at READ COMMITTED, by the names of the tables that its text has. It knows few words and takes the rest for
 * what may write everything, so it errs towards "meets". No I/O. Any thread. */
#ifndef OVERSELL_LOADTEST_SEARCH_STATEMENT_FOOTPRINT_H
#define OVERSELL_LOADTEST_SEARCH_STATEMENT_FOOTPRINT_H

#include "loadtest/search/footprint.h"
#include "loadtest/search/statement_inside.h"

#include <stddef.h>

enum known_kind {
    KNOWN_TABLE, /* there is NAME */
    KNOWN_CHILD, /* a foreign key of NAME names the table OTHER */
    KNOWN_UNCLEAR, /* NAME's rows are those of other tables as well, or its defaults count on what others change */
    KNOWN_GROWS, /* an INSERT into NAME neither fails nor waits because of another one, if it leaves out ... */
    KNOWN_NUMBERED, /* ... each column OTHER of NAME, whose unique values the database makes */
};

/* One row of TABLES_SQL. */
struct known_table {
    char *name, *other; /* OTHER: "" if the kind has none */
    enum known_kind kind;
};

/* The tables of a database. All zero: none. */
struct known_tables {
    struct known_table *item;
    size_t count;
    bool numbers_matter; /* so two INSERTs that draw numbers of one sequence cannot change places */
};

/* For PostgreSQL: name, other and kind of each row, for known_tables_add. */
extern const char TABLES_SQL[];
/* Copies the texts. KIND: "table", "child", "unclear", "grows" or "numbered". False: out of memory. */
bool known_tables_add(struct known_tables *tables, const char *name, const char *other, const char *kind);
void known_tables_free(struct known_tables *tables);

/* Of TEXT, one statement or several with semicolons. BEGIN, COMMIT, ROLLBACK and savepoints by themselves touch nothing: what the end of a
 * transaction publishes and unlocks is for the caller to add. ROUTINES: what runs inside statements. */
struct footprint statement_footprint(const struct known_tables *tables, const struct routines *routines,
                                     const char *text);
/* TEXT has a word of another isolation level than READ COMMITTED, where a statement also depends on when its transaction began. */
bool statement_isolates(const char *text);

#endif
