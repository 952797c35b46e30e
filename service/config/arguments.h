/* The command line, which every user of the machine can read in /proc while the process runs. */
#ifndef OVERSELL_SERVICE_CONFIG_ARGUMENTS_H
#define OVERSELL_SERVICE_CONFIG_ARGUMENTS_H

/* Returns a copy of ARGV, whole and never freed, and overwrites in ARGV itself what may be a password. NULL when out of
 * memory. Called before anything else is done with them: until then they could be read. */
char **arguments_hide(int argc, char *argv[]);

#endif
