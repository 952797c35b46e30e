/* What a transition reads and writes: two transitions whose footprints do not meet may change places, and nothing else changes. Tables and
 * rows are numbers, of which bits are kept, so two of them can seem to be one. Then a search runs more schedules than it needs, and misses none. */
#ifndef OVERSELL_LOADTEST_SEARCH_FOOTPRINT_H
#define OVERSELL_LOADTEST_SEARCH_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

enum { FOOTPRINT_WORDS = 2, FOOTPRINT_READS = 0, FOOTPRINT_WRITES = 1, ALL_ROWS = 0 };

/* Bits of what is read, and of what is written. All zero: nothing. */
struct footprint {
    uint64_t rows[2][FOOTPRINT_WORDS];   /* of single rows or keys */
    uint64_t parts[2][FOOTPRINT_WORDS];  /* of the tables of which a row, or all, is */
    uint64_t wholes[2][FOOTPRINT_WORDS]; /* of the tables of which all is */
};

/* Adds the row KEY of TABLE, numbers or hashes; ALL_ROWS: all of the table, also rows that there are not yet. A write is a read as well. */
void footprint_add(struct footprint *footprint, bool writes, uint64_t table, uint64_t key);
/* Adds a new row of TABLE that nothing but the table itself names yet: two of them do not meet. */
void footprint_add_new(struct footprint *footprint, uint64_t table);
/* It is not known what is written: meets all, also one that touches nothing. */
void footprint_add_all(struct footprint *footprint);
/* Adds what OTHER has. */
void footprint_join(struct footprint *footprint, const struct footprint *other);
/* One writes what the other reads or writes. */
bool footprints_meet(const struct footprint *one, const struct footprint *other);

#endif
