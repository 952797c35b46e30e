/* Random numbers that the same seed gives again, on every machine: xorshift64* (Marsaglia; Vigna 2016), seeded by splitmix64. A
 * state is never 0. */
#ifndef OVERSELL_BASE_PRNG_H
#define OVERSELL_BASE_PRNG_H

#include <stdint.h>

static inline uint64_t random_from(uint64_t seed)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return z ? z : 1;
}

/* The next 64 bits. */
static inline uint64_t random_bits(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* From 0 on, below BELOW, which is at least 1. */
static inline uint64_t random_below(uint64_t *state, uint64_t below)
{
    return random_bits(state) % below;
}

/* From 0 on, below 1. */
static inline double random_share(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) / (double)(UINT64_C(1) << 53);
}

/* From LEAST to MOST, which is not less. */
static inline int64_t random_between(uint64_t *state, int64_t least, int64_t most)
{
    return least + (int64_t)random_below(state, (uint64_t)(most - least) + 1);
}

static inline int64_t random_up_to(uint64_t *state, int64_t most)
{
    return random_between(state, 0, most);
}

#endif
