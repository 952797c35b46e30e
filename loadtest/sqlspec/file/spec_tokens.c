/* Reads the words of a file of SQL steps. */
#include "loadtest/sqlspec/file/spec_tokens.h"

#include "loadtest/sqlspec/file/sql_block.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool spec_wrong(struct spec_reader *reader, int line, const char *format, ...)
{
    char what[SPEC_ERROR_SIZE];
    va_list arguments;
    if (reader->failed)
        return false;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (line > 0)
        (void)snprintf(reader->error, SPEC_ERROR_SIZE, "%.150s:%d: %.230s", reader->path, line, what);
    else
        (void)snprintf(reader->error, SPEC_ERROR_SIZE, "%.150s: %.230s", reader->path, what);
    reader->failed = true;
    return false;
}

static bool begins_name(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Spaces at the ends of a block are no part of its SQL; line ends are, as in PostgreSQL's isolation tester. */
static bool is_blank(char c)
{
    return is_space(c) && c != '\n' && c != '\v';
}

static void skip_spaces(struct spec_reader *reader)
{
    for (; *reader->at; reader->at++) {
        if (*reader->at == '#' || (reader->at[0] == '-' && reader->at[1] == '-'))
            while (reader->at[1] && reader->at[1] != '\n')
                reader->at++;
        else if (*reader->at == '\n')
            reader->line++;
        else if (!is_space(*reader->at))
            return;
    }
}

static struct token bad(struct spec_reader *reader, const char *what)
{
    (void)spec_wrong(reader, reader->line, "%s", what);
    return (struct token){.kind = TOKEN_BAD, .line = reader->line, .text = "", .length = 0};
}

/* AT is on the first quotation mark; two of them inside stand for one. */
static struct token read_quoted(struct spec_reader *reader)
{
    struct token token = {.kind = TOKEN_QUOTED, .line = reader->line, .text = ++reader->at};
    for (; *reader->at && *reader->at != '\n'; reader->at++)
        if (*reader->at == '"') {
            if (reader->at[1] != '"') {
                token.length = (size_t)(reader->at++ - token.text);
                return token.length > 0
                           ? token
                           : bad(reader, "a name in quotation marks is empty. Write the name between them");
            }
            reader->at++;
        }
    return bad(reader, "a name in quotation marks does not end on its line. Add the second \"");
}

/* AT is on the brace. */
static struct token read_block(struct spec_reader *reader)
{
    const char *end = sql_block_end(++reader->at);
    struct token token = {.kind = TOKEN_BLOCK, .line = reader->line, .text = reader->at};
    if (!end)
        return bad(reader, "the block that begins here does not end. Add }");
    for (; reader->at < end; reader->at++)
        reader->line += *reader->at == '\n';
    reader->at++;
    while (token.text < end && is_blank(*token.text))
        token.text++;
    while (end > token.text && is_blank(end[-1]))
        end--;
    token.length = (size_t)(end - token.text);
    return token;
}

static struct token read_token(struct spec_reader *reader)
{
    skip_spaces(reader);
    struct token token = {.kind = TOKEN_END, .line = reader->line, .text = reader->at};
    if (!*reader->at)
        return token;
    if (*reader->at == '"')
        return read_quoted(reader);
    if (*reader->at == '{')
        return read_block(reader);
    if (strchr("(),*", *reader->at)) {
        reader->at++;
        token.kind = TOKEN_SIGN;
    } else if (is_digit(*reader->at)) {
        while (is_digit(*reader->at))
            reader->at++;
        token.kind = TOKEN_NUMBER;
    } else if (begins_name(*reader->at)) {
        while (begins_name(*reader->at) || is_digit(*reader->at) || *reader->at == '$')
            reader->at++;
        token.kind = TOKEN_WORD;
    } else {
        char what[80];
        (void)snprintf(what, sizeof what,
                       *reader->at == '}'
                           ? "'%c' ends no block: the block before it has ended"
                           : "'%c' is not valid here. Names with other characters need quotation marks",
                       *reader->at);
        return bad(reader, what);
    }
    token.length = (size_t)(reader->at - token.text);
    return token;
}

void spec_advance(struct spec_reader *reader)
{
    reader->token = read_token(reader);
}

bool spec_at_word(const struct spec_reader *reader, const char *word)
{
    const struct token *token = &reader->token;
    return token->kind == TOKEN_WORD && token->length == strlen(word) &&
           memcmp(token->text, word, token->length) == 0;
}

bool spec_at_sign(const struct spec_reader *reader, char sign)
{
    return reader->token.kind == TOKEN_SIGN && *reader->token.text == sign;
}

bool spec_at_keyword(const struct spec_reader *reader)
{
    static const char *const WORDS[] = {"setup",       "teardown",  "session", "step",
                                        "permutation", "invariant", "notices"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (spec_at_word(reader, WORDS[i]))
            return true;
    return false;
}

bool spec_expected(struct spec_reader *reader, const char *wanted)
{
    const struct token *token = &reader->token;
    if (token->kind == TOKEN_END)
        return spec_wrong(reader, token->line, "the file ends where %s should follow", wanted);
    int length = token->length > 40 ? 40 : (int)token->length;
    return spec_wrong(reader, token->line, "expected %s instead of %s%.*s%s", wanted,
                      token->kind == TOKEN_BLOCK ? "{ " : "'", length, token->text,
                      token->kind == TOKEN_BLOCK ? " }" : "'");
}

char *spec_take(struct spec_reader *reader)
{
    const struct token *token = &reader->token;
    char *copy = malloc(token->length + 1);
    size_t used = 0;
    for (size_t i = 0; copy && i < token->length; i++) {
        copy[used++] = token->text[i];
        i += token->kind == TOKEN_QUOTED && token->text[i] == '"';
    }
    if (copy)
        copy[used] = 0;
    else
        (void)spec_wrong(reader, 0, "out of memory");
    spec_advance(reader);
    return copy;
}

char *spec_take_name(struct spec_reader *reader, const char *wanted)
{
    if (reader->token.kind != TOKEN_QUOTED && (reader->token.kind != TOKEN_WORD || spec_at_keyword(reader))) {
        (void)spec_expected(reader, wanted);
        return NULL;
    }
    return spec_take(reader);
}

bool spec_take_block(struct spec_reader *reader, struct sql_block *ret_block)
{
    spec_advance(reader);
    if (reader->token.kind != TOKEN_BLOCK)
        return spec_expected(reader, "SQL in braces");
    ret_block->line = reader->token.line;
    ret_block->sql = spec_take(reader);
    return ret_block->sql != NULL;
}
