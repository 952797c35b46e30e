/* Saying what went wrong: one line on stderr, over a progress bar if there is one. */
#ifndef OVERSELL_LOADTEST_CLI_COMPLAIN_H
#define OVERSELL_LOADTEST_CLI_COMPLAIN_H

/* Prints "loadtest: ", the text and a line end. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

#endif
