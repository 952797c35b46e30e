/* Overwrites passwords in the command line, which every user of the machine can read in /proc while the process runs. */
#include "service/config/hide_passwords.h"

#include <stdlib.h>
#include <string.h>

/* Where a secret may begin in ARGUMENT: after the scheme of a URL, or after libpq's keyword `password`. NULL: nowhere. */
static char *find_secret(char *argument)
{
    static const char *const before[] = {"://", "password"};
    char *first = NULL;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        char *found = strstr(argument, before[i]);
        if (found && (!first || found < first))
            first = found + strlen(before[i]);
    }
    return first;
}

char **hide_passwords(int argc, char *argv[])
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i]) {
            while (i > 0)
                free(copy[--i]);
            free(copy);
            return NULL;
        }
    }
    for (int i = 1; copy && i < argc; i++) {
        char *secret = find_secret(argv[i]);
        if (secret)
            memset(secret, '*', strlen(secret));
    }
    return copy;
}
