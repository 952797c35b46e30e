/* Writes the command line that repeats a run into its result. */
#include "loadtest/report/reproduce.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char command[4096]; /* a process has one command line */

/* Says where results go, or what the terminal shows: the figures are the same without it. Its value is the next word, or stands
 * behind '='. */
static bool is_output(const char *word)
{
    static const char *const NAMES[] = {"--format", "--output", "--export-", "--trace-out", "--progress"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        size_t length = strlen(NAMES[i]);
        if (strncmp(word, NAMES[i], length) == 0 &&
            (NAMES[i][length - 1] == '-' || word[length] == 0 || word[length] == '='))
            return true;
    }
    return false;
}

/* A word as a POSIX shell reads it back: in single quotes if it has another meaning without. */
static void print_word(FILE *out, const char *word)
{
    static const char PLAIN[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+:,./%@";
    if (*word && strspn(word, PLAIN) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

void reproduce_by(int argc, char *const *argv)
{
    FILE *out = fmemopen(command, sizeof command, "w");
    if (!out)
        return;
    fputs("build/loadtest", out);
    for (int i = 0; i < argc; i++) {
        if (i > 0 && is_output(argv[i])) {
            i += strchr(argv[i], '=') == NULL;
            continue;
        }
        fputc(' ', out);
        print_word(out, argv[i]);
    }
    bool fits = fflush(out) == 0 && ftell(out) < (long)sizeof command - 1;
    if (fclose(out) != 0 || !fits)
        command[0] = 0;
}

const char *reproduce_command(void)
{
    return command;
}
