/* Random numbers that the same seed gives again (xorshift64*, Vigna 2016, seeded by splitmix64). */
#ifndef OVERSELL_LOADTEST_FAULT_RANDOM_H
#define OVERSELL_LOADTEST_FAULT_RANDOM_H

#include <stdint.h>

struct fault_random {
    uint64_t state;
};

static inline struct fault_random fault_random_from(uint64_t seed)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (struct fault_random){z ? z : 1};
}

/* From 0 to MOST, which is not negative. */
static inline int64_t fault_random_up_to(struct fault_random *random, int64_t most)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    uint64_t number = (random->state * 0x2545f4914f6cdd1du) >> 1;
    return (int64_t)(number % ((uint64_t)most + 1));
}

static inline int64_t fault_random_between(struct fault_random *random, int64_t least, int64_t most)
{
    return least + fault_random_up_to(random, most - least);
}

#endif
