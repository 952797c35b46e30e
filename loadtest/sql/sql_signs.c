/* The ends of names, comments and quoted texts in SQL. */
#include "loadtest/sql/sql_signs.h"

#include <ctype.h>
#include <string.h>

bool sql_is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c > 127;
}

const char *sql_skip_comment(const char *at)
{
    size_t depth = 1;
    if (at[0] == '-')
        return at + strcspn(at, "\n");
    for (at += 2; *at && depth > 0;) {
        bool opens = at[0] == '/' && at[1] == '*', closes = at[0] == '*' && at[1] == '/';
        depth = depth + opens - closes;
        at += opens || closes ? 2 : 1;
    }
    return at;
}

bool sql_is_comment(const char *at)
{
    return (at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*');
}

const char *sql_skip_blank(const char *at)
{
    while (isspace((unsigned char)*at) || sql_is_comment(at))
        at = sql_is_comment(at) ? sql_skip_comment(at) : at + 1;
    return at;
}

/* *AT is a quotation mark, which ends the text as well. Two of them stand for one, which looks like two texts. */
const char *sql_skip_quoted(const char *at, bool has_escapes)
{
    char quote = *at++;
    while (*at && *at != quote)
        at += has_escapes && *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

/* *AT is '$'. $name$ begins a text that the same sign ends. */
const char *sql_skip_dollars(const char *at)
{
    size_t length = 1;
    while (sql_is_name(at[length]) && !(length == 1 && isdigit((unsigned char)at[1])))
        length++;
    if (at[length++] != '$')
        return at + 1;
    for (const char *end = strchr(at + length, '$'); end; end = strchr(end + 1, '$'))
        if (strncmp(end, at, length) == 0)
            return end + length;
    return at + strlen(at);
}
