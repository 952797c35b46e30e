/* Hides the passwords of servers that were given on the command line. */
#include "service/config/arguments.h"

#include <stdlib.h>
#include <string.h>

/* Where in ARGUMENT something secret may begin: in a URL behind its scheme, or among libpq's KEY=VALUE words. */
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

char **arguments_hide(int argc, char *argv[])
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
