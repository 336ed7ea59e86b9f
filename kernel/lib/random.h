/*
 * Seeded random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). The kernel, the host's
 * tools and the user programs include this one file, so the same seed gives the same sequence
 * everywhere.
 */
#pragma once

#include <stdint.h>

struct random {
	uint64_t state; /* the seed, at first; any value will do */
};

/* The next 64 random bits. */
static inline uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/*
 * A random number in [0, bound), bound at least 1, every value equally likely. It masks and tries
 * again instead of taking a remainder: no bias, and no 64-bit division. Fewer than two draws on
 * average.
 */
static inline uint64_t random_below(struct random *random, uint64_t bound)
{
	uint64_t mask = bound - 1, value;

	for (unsigned shift = 1; shift < 64; shift *= 2)
		mask |= mask >> shift;
	do
		value = random_next(random) & mask;
	while (value >= bound);
	return value;
}
