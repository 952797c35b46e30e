/* Recognises the numbers that sequences and AUTO_INCREMENT counters have generated, wherever they occur in results and tables, and compares two
 * outcomes up to a renaming of these numbers. Every sequence counts from a number that nothing else has: see sequences.h. Pure. Any thread. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_NUMBERS_NUMBERS_H
#define OVERSELL_LOADTEST_SQLSPEC_NUMBERS_NUMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { NUMBERS_SEQUENCES_MAX = 64 };

/* The first number of sequence K in an execution is NUMBERS_FIRST + K * NUMBERS_EACH: ten digits, less than 2^31. */
#define NUMBERS_FIRST INT64_C(1934617001)
#define NUMBERS_EACH INT64_C(100000)

/* The sequences that count from there. COUNT 0: none, and nothing is recognised. */
struct numbers {
    int64_t next[NUMBERS_SEQUENCES_MAX]; /* what each would have generated first without us */
    size_t count;
    /* their sequence counts as well: a number is named after its place among those of its sequence */
    bool by_size;
};

/* A copy of VALUE, strings in arrays and objects, in which each generated number has a name that depends only on where it occurs: two values have equal
 * copies only if a one-to-one renaming of the numbers of each sequence makes them equal, which keeps their sequence if BY_SIZE. In an object with "unordered": true the array "rows" has
 * no sequence, nor has the array "tables" of any object. The caller's to release. NULL: out of memory. */
json_t *numbers_canonical(const struct numbers *numbers, const json_t *value);
/* A copy of VALUE with the numbers that the sequences would have generated without us, and without the member "unordered". The same ownership. */
json_t *numbers_small(const struct numbers *numbers, const json_t *value);
/* Sorts an array by the texts of its members. Without memory it stays as it is. */
void numbers_sort(json_t *rows);

#endif
