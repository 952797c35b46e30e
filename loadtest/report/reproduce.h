/* Writes the command line that repeats a run into its result. */
#ifndef OVERSELL_LOADTEST_REPORT_REPRODUCE_H
#define OVERSELL_LOADTEST_REPORT_REPRODUCE_H

/* Remembers the command line of this process, without the options that only say where results go. argv[0] is the command's word.
 * The main thread calls it, once. */
void reproduce_by(int argc, char *const *argv);
/* The remembered command line, as a shell reads it; "" if there is none, or it is too long. Static storage. */
const char *reproduce_command(void);

#endif
