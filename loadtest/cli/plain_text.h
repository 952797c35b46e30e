/* Text of others on a terminal: of a row, an answer, a statement, an error. It can contain characters that move or hide other text, or give
 * commands to the terminal, so all that is printed goes through here. JSON, which has its own form for such characters, does not. */
#ifndef OVERSELL_LOADTEST_CLI_PLAIN_TEXT_H
#define OVERSELL_LOADTEST_CLI_PLAIN_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Copies TEXT to RET_TEXT (SIZE bytes; cut between two characters if it is longer). A control character (text_is_control) other than a
 * line feed, a carriage return before one, and a tab becomes \x1B or \u009B, and a byte that is not UTF-8 becomes \xFF. Returns the
 * length of the whole copy in bytes; with a SIZE of 0, RET_TEXT may be NULL. Any thread. */
size_t plain_text(const char *text, char *ret_text, size_t size);

/* The copy, which the caller frees; NULL: out of memory. Any thread. */
char *plain_copy(const char *text);

/* Prints to STREAM what FORMAT makes, as plain text. Without memory it prints FORMAT itself. Any thread. */
__attribute__((format(printf, 2, 3))) void plain_print(FILE *stream, const char *format, ...);
__attribute__((format(printf, 2, 0))) void plain_vprint(FILE *stream, const char *format, va_list arguments);

#endif
