/* Knows as much of SQL as it takes to skip what is quoted: texts, names, dollar quotes, and comments. */
#include "loadtest/sqlspec/file/sql_block.h"

#include "loadtest/sql/sql_signs.h"

#include <stdbool.h>
#include <string.h>

/* The string is one with escapes: E'…'. */
static bool is_escaped(const char *begin, const char *at)
{
    return at > begin && (at[-1] == 'E' || at[-1] == 'e') && (at - 1 == begin || !sql_is_name(at[-2]));
}

const char *sql_block_end(const char *text)
{
    const char *at = text;
    while (*at && *at != '}' && *at != '{') {
        if (*at == '\'')
            at = sql_skip_quoted(at, is_escaped(text, at));
        else if (*at == '"' || *at == '`')
            at = sql_skip_quoted(at, false);
        else if (*at == '$')
            at = sql_skip_dollars(at);
        else if (sql_is_comment(at))
            at = sql_skip_comment(at);
        else if (!sql_is_name(*at))
            at++;
        while (sql_is_name(*at) || (*at == '$' && at > text && sql_is_name(at[-1]))) /* a$b is one name */
            at++;
    }
    return *at == '}' ? at : strchr(text, '}');
}
