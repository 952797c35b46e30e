/* `loadtest explore FILE.spec`: SQL alone, in the format of PostgreSQL's isolation tester. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_SPEC_COMMAND_H
#define OVERSELL_LOADTEST_SQLSPEC_SPEC_COMMAND_H

#include <stdbool.h>

/* Does the command line name a file of this kind? */
bool spec_is_meant(int argc, char **argv);
/* Runs the command; returns an exit status of loadtest/cli/commands.h. */
int spec_main(int argc, char **argv);

#endif
