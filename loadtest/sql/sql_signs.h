/* The ends of names, comments and quoted texts in SQL, as PostgreSQL reads it. Pure. */
#ifndef OVERSELL_LOADTEST_SQL_SQL_SIGNS_H
#define OVERSELL_LOADTEST_SQL_SQL_SIGNS_H

#include <stdbool.h>

/* C can be a part of a name. */
bool sql_is_name(char c);
/* A comment begins at AT. */
bool sql_is_comment(const char *at);
/* Returns where the comment ends that begins at AT: of --, its line. */
const char *sql_skip_comment(const char *at);
/* Returns the first sign from AT on that is neither white space nor in a comment. */
const char *sql_skip_blank(const char *at);
/* *AT is a quotation mark, which ends the text as well: returns what is behind that. Two of them stand for one, which looks like two texts.
 * HAS_ESCAPES: a backslash before it keeps it from ending the text. */
const char *sql_skip_quoted(const char *at, bool has_escapes);
/* *AT is '$'. $name$ begins a text that the same sign ends; any other is a sign alone. Returns what is behind it. */
const char *sql_skip_dollars(const char *at);

#endif
