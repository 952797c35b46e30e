/* Looks for words that compare or sort. */
#include "loadtest/sqlspec/numbers/number_order.h"

#include "loadtest/sql/statement_words.h"

#include <stddef.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

bool number_order_matters(const char *sql)
{
    static const char *const SORT[] = {"max", "min", "order", "between", "greatest", "least", NULL};
    static const char *const COMPARE[] = {"<", ">", "<=", ">=", NULL};
    struct sql_word word;
    char operator[4] = "";
    while (sql_word_next(&sql, &word)) {
        size_t used = strlen(operator);
        if (word.kind == SQL_UNKNOWN || (word.kind == SQL_NAME && is_one_of(word.text, SORT)))
            return true;
        if (word.kind == SQL_SIGN && strchr("<>=!", *word.text)) {
            if (used + 1 < sizeof operator)
                memcpy(operator+ used, word.text, 2);
            continue;
        }
        /* A literal is no generated number: nobody has chosen those. */
        if (is_one_of(operator, COMPARE) && word.kind != SQL_VALUE)
            return true;
        *operator= '\0';
    }
    return false;
}
