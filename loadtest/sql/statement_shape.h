/* What a statement does to tables, as far as its words show it. Pure. */
#ifndef OVERSELL_LOADTEST_SQL_STATEMENT_SHAPE_H
#define OVERSELL_LOADTEST_SQL_STATEMENT_SHAPE_H

#include "loadtest/sql/statement_words.h"

#include <stdbool.h>
#include <stddef.h>

enum { SHAPE_USES = 8, SHAPE_COLUMNS = 8 };

enum access { ACCESS_READ, ACCESS_LOCK, ACCESS_UPDATE, ACCESS_DELETE, ACCESS_INSERT };

/* A table in a statement. */
struct table_use {
    char table[SQL_WORD], alias[SQL_WORD]; /* ALIAS: what FOR UPDATE OF may call it */
    enum access access;                    /* ACCESS_LOCK: the rows that a SELECT returns are locked */
    unsigned query; /* number of the SELECT in the statement, which FOR UPDATE is for */
};

enum shape_end { ENDS_NOTHING, ENDS_COMMIT, ENDS_ROLLBACK };

struct statement_shape {
    struct table_use uses[SHAPE_USES];
    size_t use_count;
    char set[SHAPE_COLUMNS][SQL_WORD]; /* columns that UPDATE sets */
    size_t set_count;
    bool relative;     /* a column is set to a value that is computed from itself: count = count - 1 */
    bool conditional;  /* the WHERE of UPDATE names a column that it sets */
    bool aggregates;   /* count(*), sum(x) and the like, with which FOR UPDATE is not allowed */
    bool skips_locked; /* SKIP LOCKED */
    bool several;      /* several statements: the answer is that of the first */
    bool unknown;      /* a part of the statement is not known: it was cut off, or it continues another one */
    enum shape_end ends; /* the transaction; ENDS_NOTHING also for ROLLBACK TO a savepoint */
};

/* The shape of TEXT, which the gate has described; SIZE: the longest text that is surely not cut off. */
struct statement_shape statement_shape(const char *text, size_t size);

/* The first use of TABLE with an access from FROM to TO; NULL: there is none. TABLE is NULL: of any table. */
const struct table_use *shape_use(const struct statement_shape *shape, const char *table, enum access from,
                                  enum access to);

/* TEXT names one of the columns that SHAPE sets, or all columns, or calls an aggregate. */
bool shape_is_read_by(const struct statement_shape *shape, const char *text);

#endif
