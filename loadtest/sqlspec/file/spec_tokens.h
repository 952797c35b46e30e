/* The words of a file of SQL steps: names, SQL in braces, numbers and signs, and what is wrong where one of them stands. Pure. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_FILE_SPEC_TOKENS_H
#define OVERSELL_LOADTEST_SQLSPEC_FILE_SPEC_TOKENS_H

#include "loadtest/sqlspec/file/spec_file.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* a name, or a word of the format */
    TOKEN_QUOTED, /* a name in quotation marks, never a word of the format */
    TOKEN_BLOCK,  /* SQL in braces */
    TOKEN_NUMBER,
    TOKEN_SIGN, /* ( ) , or * */
    TOKEN_BAD,
};

struct token {
    enum token_kind kind;
    int line;
    const char *text; /* in the file; of a name or a block, without what encloses it */
    size_t length;
};

struct spec_reader {
    const char *path, *at;
    int line;
    struct token token; /* the current one */
    char *error;
    bool failed;
};

/* Keeps the first error only, with the path and, unless it is 0, the line. Returns false. */
__attribute__((format(printf, 3, 4))) bool spec_wrong(struct spec_reader *reader, int line,
                                                      const char *format, ...);
/* Complains that WANTED should stand where the current token is. Returns false. */
bool spec_expected(struct spec_reader *reader, const char *wanted);

/* Reads the next token. */
void spec_advance(struct spec_reader *reader);
/* Is the current token this word, this sign, or any word of the format? */
bool spec_at_word(const struct spec_reader *reader, const char *word);
bool spec_at_sign(const struct spec_reader *reader, char sign);
bool spec_at_keyword(const struct spec_reader *reader);

/* A copy of the current token, and advances. A quoted name loses the doubling of its quotation marks. NULL: no memory. */
char *spec_take(struct spec_reader *reader);
/* The name after a word such as "step"; WANTED is for the error. NULL, having complained. */
char *spec_take_name(struct spec_reader *reader, const char *wanted);
/* The word that is the current token, and its block. */
bool spec_take_block(struct spec_reader *reader, struct sql_block *ret_block);

#endif
