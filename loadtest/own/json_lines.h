/* Finds the line of a member in a JSON text, because a parsed value does not have it. */
#ifndef OVERSELL_LOADTEST_OWN_JSON_LINES_H
#define OVERSELL_LOADTEST_OWN_JSON_LINES_H

/* TEXT is valid JSON. PATH names a value as "request.headers.Accept" or "reset[1]". The result counts from 1, and is the line of
 * the innermost value of PATH that exists; of the whole text for "". A member whose name has a dot or a bracket is not found.
 * Any thread. */
int json_line_of(const char *text, const char *path);

#endif
