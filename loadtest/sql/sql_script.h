/* Splits a file of SQL, as psql reads it, into statements: pg_dump writes such files. Pure. */
#ifndef OVERSELL_LOADTEST_SQL_SQL_SCRIPT_H
#define OVERSELL_LOADTEST_SQL_SQL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* Where the splitting of a text is. Set AT to the text, and LINE to 1. */
struct sql_script {
    const char *at;
    int line;
};

struct sql_part {
    const char *text; /* a statement, without its semicolon; or a command of psql, to the end of its line */
    size_t length;
    bool is_command;
    const char *data; /* the lines that follow COPY … FROM STDIN; NULL: it is another statement */
    size_t data_length;
    int line; /* in which TEXT begins, from 1 */
};

/* The next part, which points into the text; false after the last one. */
bool sql_script_next(struct sql_script *script, struct sql_part *ret_part);

#endif
