/* Reading a database's address without connecting to it. */
#include "db/postgres/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool db_url_is_valid(const char *url)
{
    /* Where libpq finds neither, it takes a bare word for a database's name: a typing error, here. */
    if (!strchr(url, '=') && !strstr(url, "://"))
        return false;
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    PQconninfoFree(options);
    return options != NULL;
}

bool db_url_environment(const char *url, char **ret_variables, size_t most)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    size_t count = 0;
    bool complete = options != NULL;
    for (PQconninfoOption *option = options; option && option->keyword && complete; option++) {
        if (!option->val || !option->envvar)
            continue;
        complete = count < most && asprintf(&ret_variables[count], "%s=%s", option->envvar, option->val) > 0;
        count += complete;
    }
    if (count < most)
        ret_variables[count] = NULL; /* also where asprintf has left something there */
    PQconninfoFree(options);
    return complete;
}
