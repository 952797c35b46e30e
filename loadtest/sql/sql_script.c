/* Splits a file of SQL, as psql reads it, into statements: pg_dump writes such files. */
#include "loadtest/sql/sql_script.h"

#include "loadtest/sql/sql_signs.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 32 };

/* The words of a statement: whether it is a COPY that rows follow, and how deep in the body of an SQL function. */
struct words {
    char first[WORD_MAX], previous[WORD_MAX];
    size_t count;
    bool from_stdin, is_routine;
    size_t depth;
};

static const char *take_word(const char *at, struct words *words)
{
    char word[WORD_MAX] = "";
    size_t length = 0;
    while (sql_is_name(at[length]) || (length > 0 && at[length] == '$'))
        length++;
    memcpy(word, at, length < WORD_MAX ? length : WORD_MAX - 1);
    if (words->count++ == 0)
        memcpy(words->first, word, sizeof word);
    if (strcasecmp(word, "stdin") == 0 && strcasecmp(words->previous, "from") == 0)
        words->from_stdin = strcasecmp(words->first, "copy") == 0;
    if (strcasecmp(words->first, "create") == 0 &&
        (words->count == 2 || strcasecmp(words->previous, "replace") == 0))
        words->is_routine |= strcasecmp(word, "function") == 0 || strcasecmp(word, "procedure") == 0;
    if (words->is_routine &&
        (strcasecmp(word, "begin") == 0 || (words->depth > 0 && strcasecmp(word, "case") == 0)))
        words->depth++;
    else if (words->depth > 0 && strcasecmp(word, "end") == 0)
        words->depth--;
    memcpy(words->previous, word, sizeof word);
    return at + length;
}

/* Returns where the statement at AT ends: its semicolon, or the end of the text. */
static const char *end_of(const char *at, struct words *words)
{
    size_t brackets = 0;
    while (*at && (*at != ';' || brackets > 0 || words->depth > 0)) {
        if (sql_is_comment(at)) {
            at = sql_skip_comment(at);
        } else if (*at == '\'' || *at == '"') {
            bool has_escapes = *at == '\'' && strcasecmp(words->previous, "e") == 0 &&
                               tolower((unsigned char)at[-1]) == 'e';
            at = sql_skip_quoted(at, has_escapes);
        } else if (*at == '$') {
            at = sql_skip_dollars(at);
        } else if (sql_is_name(*at)) {
            at = take_word(at, words);
        } else {
            brackets += *at == '(';
            brackets -= *at == ')' && brackets > 0;
            at++;
        }
    }
    return at;
}

static void move_to(struct sql_script *script, const char *to)
{
    for (; script->at < to; script->at++)
        script->line += *script->at == '\n';
}

/* The lines after the one at AT, up to "\." */
static void take_data(struct sql_script *script, struct sql_part *part)
{
    const char *at = script->at + strcspn(script->at, "\n"), *line;
    part->data = *at ? at + 1 : at;
    for (line = part->data; *line && strncmp(line, "\\.", 2) != 0; line += *line != 0)
        line += strcspn(line, "\n");
    part->data_length = (size_t)(line - part->data);
    move_to(script, line + strcspn(line, "\n"));
}

bool sql_script_next(struct sql_script *script, struct sql_part *ret_part)
{
    struct words words = {0};
    const char *at = script->at;
    while (isspace((unsigned char)*at) || *at == ';' || sql_is_comment(at))
        at = sql_is_comment(at) ? sql_skip_comment(at) : at + 1;
    move_to(script, at);
    *ret_part = (struct sql_part){.text = at, .line = script->line, .is_command = *at == '\\'};
    const char *end = *at == '\\' ? at + strcspn(at, "\n") : end_of(at, &words);
    ret_part->length = (size_t)(end - at);
    move_to(script, end);
    if (words.from_stdin)
        take_data(script, ret_part);
    return ret_part->length > 0;
}
