/* Overwrites passwords in the command line, which every user of the machine can read in /proc while the process runs. */
#ifndef OVERSELL_SERVICE_CONFIG_HIDE_PASSWORDS_H
#define OVERSELL_SERVICE_CONFIG_HIDE_PASSWORDS_H

/* Returns a complete copy of ARGV, which is never freed, and overwrites in ARGV itself whatever may be a password. NULL: out of
 * memory. Call it first in main: before, the passwords can be read. */
char **hide_passwords(int argc, char *argv[]);

#endif
