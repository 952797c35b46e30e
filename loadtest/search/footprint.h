/* What a transition reads and writes: two transitions whose footprints do not meet may change places, and nothing else changes. Names are kept
 * as bits of their hashes, so two different names can seem to be one. Then a search runs more schedules than it needs, and misses none. */
#ifndef OVERSELL_LOADTEST_SEARCH_FOOTPRINT_H
#define OVERSELL_LOADTEST_SEARCH_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

enum { FOOTPRINT_WORDS = 2, FOOTPRINT_READS = 0, FOOTPRINT_WRITES = 1 };

/* Bits of what is read, and of what is written. All zero: nothing. */
struct footprint {
    uint64_t rows[2][FOOTPRINT_WORDS];   /* of single rows or keys */
    uint64_t parts[2][FOOTPRINT_WORDS];  /* of the tables of which a row, or all, is */
    uint64_t wholes[2][FOOTPRINT_WORDS]; /* of the tables of which all is */
};

/* Adds the row KEY of TABLE; NULL: all of the table, also rows that there are not yet. A write is a read as well. */
void footprint_add(struct footprint *footprint, bool writes, const char *table, const char *key);
/* It is not known what is written: meets all, also one that touches nothing. */
void footprint_add_all(struct footprint *footprint);
/* Adds what OTHER has. */
void footprint_join(struct footprint *footprint, const struct footprint *other);
/* One writes what the other reads or writes. */
bool footprints_meet(const struct footprint *one, const struct footprint *other);

#endif
