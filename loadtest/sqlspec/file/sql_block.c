/* Knows as much of SQL as it takes to skip what is quoted: texts, names, dollar quotes, and comments. */
#include "loadtest/sqlspec/file/sql_block.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* AT is on the opening mark; two marks stand for one. Behind the closing one; NULL: it is missing. */
static const char *skip_quoted(const char *at, bool has_escapes)
{
    char mark = *at++;
    for (; *at; at++) {
        if ((has_escapes && *at == '\\' && at[1]) || (*at == mark && at[1] == mark))
            at++;
        else if (*at == mark)
            return at + 1;
    }
    return NULL;
}

/* AT is on a $. Behind the second $tag$, or behind the $ if no tag begins here; NULL: the second one is missing. */
static const char *skip_dollars(const char *begin, const char *at)
{
    bool is_in_name = at > begin && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '$');
    size_t length = 1;
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    if (is_in_name || at[length] != '$' || isdigit((unsigned char)at[1]))
        return at + 1;
    for (const char *end = at + ++length; *end; end++)
        if (strncmp(end, at, length) == 0)
            return end + length;
    return NULL;
}

/* AT is on the slash and star. Comments of this kind may have others inside. */
static const char *skip_comment(const char *at)
{
    for (int depth = 0; *at; at++) {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at++;
        } else if (at[0] == '*' && at[1] == '/') {
            at++;
            if (--depth == 0)
                return at + 1;
        }
    }
    return NULL;
}

/* The string is one with escapes: E'…'. */
static bool is_escaped(const char *begin, const char *at)
{
    return at > begin && (at[-1] == 'E' || at[-1] == 'e') &&
           (at - 1 == begin || (!isalnum((unsigned char)at[-2]) && at[-2] != '_'));
}

const char *sql_block_end(const char *text)
{
    const char *at = text, *next;
    for (; *at && *at != '}' && *at != '{'; at = next) {
        if (*at == '\'')
            next = skip_quoted(at, is_escaped(text, at));
        else if (*at == '"' || *at == '`')
            next = skip_quoted(at, false);
        else if (*at == '$')
            next = skip_dollars(text, at);
        else if (at[0] == '-' && at[1] == '-')
            next = at + strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*')
            next = skip_comment(at);
        else
            next = at + 1;
        if (!next)
            break;
    }
    return *at == '}' ? at : strchr(text, '}');
}
