/* Sets of numbers as bits, of what is read and of what is written. */
#include "loadtest/search/footprint.h"

#include "base/hash.h"

#include <string.h>

enum { BITS = 64 * FOOTPRINT_WORDS };

/* The last bit is nobody's own: who writes all has it in each set. */
static void set_bit(uint64_t bits[static FOOTPRINT_WORDS], uint64_t number)
{
    const uint64_t bit = number % (BITS - 1);
    bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

void footprint_add(struct footprint *footprint, bool writes, uint64_t table, uint64_t key)
{
    for (int kind = FOOTPRINT_READS; kind <= (writes ? FOOTPRINT_WRITES : FOOTPRINT_READS); kind++) {
        set_bit(footprint->parts[kind], table);
        if (key != ALL_ROWS)
            set_bit(footprint->rows[kind], hash_add_number(hash_add_number(HASH_OF_NOTHING, table), key));
        else
            set_bit(footprint->wholes[kind], table);
    }
}

void footprint_add_new(struct footprint *footprint, uint64_t table)
{
    set_bit(footprint->parts[FOOTPRINT_READS], table);
    set_bit(footprint->parts[FOOTPRINT_WRITES], table);
}

void footprint_add_all(struct footprint *footprint)
{
    memset(footprint, 0xff, sizeof *footprint);
}

void footprint_join(struct footprint *footprint, const struct footprint *other)
{
    for (int kind = FOOTPRINT_READS; kind <= FOOTPRINT_WRITES; kind++)
        for (int i = 0; i < FOOTPRINT_WORDS; i++) {
            footprint->rows[kind][i] |= other->rows[kind][i];
            footprint->parts[kind][i] |= other->parts[kind][i];
            footprint->wholes[kind][i] |= other->wholes[kind][i];
        }
}

static bool share(const uint64_t one[static FOOTPRINT_WORDS], const uint64_t other[static FOOTPRINT_WORDS])
{
    for (int i = 0; i < FOOTPRINT_WORDS; i++)
        if (one[i] & other[i])
            return true;
    return false;
}

/* A write has its bits among the reads as well, so this finds two writes, too. */
static bool writes_what_is_read(const struct footprint *writer, const struct footprint *reader)
{
    return share(writer->rows[FOOTPRINT_WRITES], reader->rows[FOOTPRINT_READS]) ||
           share(writer->wholes[FOOTPRINT_WRITES], reader->parts[FOOTPRINT_READS]) ||
           share(writer->parts[FOOTPRINT_WRITES], reader->wholes[FOOTPRINT_READS]);
}

static bool writes_all(const struct footprint *footprint)
{
    return footprint->rows[FOOTPRINT_WRITES][FOOTPRINT_WORDS - 1] >> 63 & 1;
}

bool footprints_meet(const struct footprint *one, const struct footprint *other)
{
    return writes_all(one) || writes_all(other) || writes_what_is_read(one, other) ||
           writes_what_is_read(other, one);
}
