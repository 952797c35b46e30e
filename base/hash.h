/* A hash of 64 bits for fingerprints and tables: FNV-1a, by Fowler, Noll and Vo. It finds damage and differences, and keeps no secrets. */
#ifndef OVERSELL_BASE_HASH_H
#define OVERSELL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_OF_NOTHING UINT64_C(14695981039346656037)

/* HASH, which is HASH_OF_NOTHING at first, with SIZE more bytes. */
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The same with a number. */
static inline uint64_t hash_add_number(uint64_t hash, uint64_t number)
{
    for (unsigned bits = 0; bits < 64; bits += 8)
        hash = (hash ^ (number >> bits & 0xff)) * UINT64_C(1099511628211);
    return hash;
}

#endif
