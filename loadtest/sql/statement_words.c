/* The words of a statement. */
#include "loadtest/sql/statement_words.h"

#include "base/hash.h"
#include "loadtest/sql/sql_signs.h"

#include <ctype.h>
#include <string.h>

/* Behind the values of parameters, which are the end of a statement: " [1, 'x']". AT: there are none. */
static const char *skip_parameters(const char *at)
{
    if (strncmp(at, " [", 2) != 0)
        return at;
    for (const char *end = strchr(at, ']'); end; end = strchr(end + 1, ']'))
        if (end[1] == '\0' || end[1] == ';')
            return end + 1;
    return at;
}

/* Behind what is no word. */
static const char *skip_to_word(const char *at)
{
    const char *from;
    do {
        from = at;
        at = sql_is_comment(at) ? sql_skip_comment(at) : skip_parameters(at);
        at += at == from && isspace((unsigned char)*at);
    } while (at != from);
    return at;
}

static void keep(struct sql_word *word, enum sql_kind kind, const char *from, const char *to)
{
    size_t length = (size_t)(to - from) < SQL_WORD ? (size_t)(to - from) : SQL_WORD - 1;
    word->kind = kind;
    memcpy(word->text, from, length);
    word->text[length] = '\0';
}

/* A name with its schema: shop."Product". */
static const char *take_name(const char *at, struct sql_word *word)
{
    size_t length = 0;
    for (bool quoted = false; *at && (quoted || sql_is_name(*at) || *at == '.' || *at == '"'); at++) {
        quoted ^= *at == '"';
        if (*at == '.' && !quoted)
            length = 0;
        else if (*at != '"' && length + 1 < SQL_WORD)
            word->text[length++] = (char)tolower((unsigned char)*at);
    }
    word->text[length] = '\0';
    word->kind = SQL_NAME;
    if (length == 0 && *at == '*') { /* product.* */
        keep(word, SQL_SIGN, at, at + 1);
        at++;
    }
    return at;
}

/* 'it''s' is one value. */
static const char *take_quoted(const char *at, bool has_escapes, struct sql_word *word)
{
    const char *from = at;
    do {
        at = sql_skip_quoted(at, has_escapes);
    } while (*at == '\'');
    keep(word, at - from > 1 && at[-1] == '\'' ? SQL_VALUE : SQL_UNKNOWN, from, at);
    return at;
}

/* READS_BODIES: a text between dollars is no value. */
static bool take_word(const char **at, bool reads_bodies, struct sql_word *ret_word)
{
    *ret_word = (struct sql_word){0};
    *at = skip_to_word(*at);
    const char *from = *at;
    if (!*from)
        return false;
    if (*from == '\'') {
        *at = take_quoted(from, false, ret_word);
    } else if (from[1] == '\'' && strchr("eEnNbBxX", *from)) {
        *at = take_quoted(from + 1, strchr("eE", *from) != NULL, ret_word);
    } else if ((*from == '$' && (!reads_bodies || isdigit((unsigned char)from[1]))) ||
               isdigit((unsigned char)*from)) {
        const char *to = *from == '$' ? sql_skip_dollars(from) : from;
        while (isalnum((unsigned char)*to) || (*to == '.' && isdigit((unsigned char)to[1])))
            to++;
        keep(ret_word, SQL_VALUE, from, to);
        *at = to;
    } else if (sql_is_name(*from) || *from == '"') {
        *at = take_name(from, ret_word);
    } else {
        keep(ret_word, SQL_SIGN, from, from + 1);
        *at = from + 1;
    }
    return true;
}

bool sql_word_next(const char **at, struct sql_word *ret_word)
{
    return take_word(at, false, ret_word);
}

bool sql_word_inside(const char **at, struct sql_word *ret_word)
{
    return take_word(at, true, ret_word);
}

/* ---- comparing ------------------------------------------------------------------------------------------------------- */

/* The part of NAME from *AT on, up to '_' or '-', without digits, and without a number in hexadecimal at its end: "t54b0" is "t". Copies it to TO. */
static char *copy_part(const char **at, char *to, bool is_one_of_several)
{
    const char *from = *at, *end = from + strcspn(from, "_-"), *number = end;
    while (number > from && isxdigit((unsigned char)number[-1]))
        number--;
    bool has_digit = strcspn(number, "0123456789") < (size_t)(end - number);
    if (!has_digit && !(number == from && is_one_of_several))
        number = end;
    for (; from < number; from++)
        if (!isdigit((unsigned char)*from))
            *to++ = *from;
    *at = end;
    return to;
}

/* Drivers and programs put counters and random numbers into names: __asyncpg_savepoint_5a__, t54b0f289, "9f8e-a1". The names of two runs
 * are the same without them. */
static void drop_counters(struct sql_word *word)
{
    const struct sql_word name = *word;
    bool has_parts = strpbrk(name.text, "_-") != NULL;
    char *to = word->text;
    if (word->kind != SQL_NAME)
        return;
    for (const char *at = name.text; *at;)
        if (*at == '_' || *at == '-')
            *to++ = *at++;
        else
            to = copy_part(&at, to, has_parts);
    *to = '\0';
}

bool sql_same_word(const struct sql_word *one, const struct sql_word *other)
{
    struct sql_word a = *one, b = *other;
    drop_counters(&a);
    drop_counters(&b);
    return a.kind == b.kind && (a.kind == SQL_VALUE || strcmp(a.text, b.text) == 0);
}

bool sql_same_words(const char *one, const char *other)
{
    struct sql_word a, b;
    bool has_a, has_b;
    do {
        has_a = sql_word_next(&one, &a);
        has_b = sql_word_next(&other, &b);
        if (!sql_same_word(&a, &b))
            return false;
    } while (has_a && has_b);
    return has_a == has_b;
}

uint64_t sql_shape(uint64_t hash, const char *text)
{
    struct sql_word word;
    while (sql_word_next(&text, &word)) {
        drop_counters(&word);
        hash = hash_add_number(hash, (uint64_t)word.kind);
        if (word.kind != SQL_VALUE && word.kind != SQL_UNKNOWN)
            hash = hash_add(hash, word.text, strlen(word.text));
    }
    return hash;
}
