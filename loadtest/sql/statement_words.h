/* The words of a statement, as it is written or as the gate describes it: one line, with the values of its parameters at the end. Pure. */
#ifndef OVERSELL_LOADTEST_SQL_STATEMENT_WORDS_H
#define OVERSELL_LOADTEST_SQL_STATEMENT_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { SQL_WORD = 64 };

enum sql_kind {
    SQL_END,
    SQL_NAME,    /* a name or keyword: its last part without the schema, in lower case */
    SQL_VALUE,   /* a number, a quoted text or a parameter, as it is written */
    SQL_SIGN,    /* one sign */
    SQL_UNKNOWN, /* a text that was cut off: the rest is not known */
};

struct sql_word {
    enum sql_kind kind;
    char text[SQL_WORD]; /* a longer one is cut off */
};

/* The next word at *AT, which moves behind it. False: there is none. Comments and the values of parameters are no words. */
bool sql_word_next(const char **at, struct sql_word *ret_word);
/* The same, but a text between dollars, as of a function or of DO, is no value: its words come as well. */
bool sql_word_inside(const char **at, struct sql_word *ret_word);

/* The words of two statements are the same; values may differ, and what looks like a counter or a random number in a name. */
bool sql_same_word(const struct sql_word *one, const struct sql_word *other);
bool sql_same_words(const char *one, const char *other);

/* HASH with the words of TEXT: the same for the same words. */
uint64_t sql_shape(uint64_t hash, const char *text);

#endif
