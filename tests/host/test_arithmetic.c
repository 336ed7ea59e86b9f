/* kernel/lib/divide.h, kernel/task/time.h and kernel/lib/random.h. What numbers SplitMix64 gives,
 * the Python side checks. */
#include <inttypes.h>

#include "kernel/lib/divide.h"
#include "kernel/task/time.h"
#include "tests/host/unit.h"

static void try_divide(uint64_t dividend, uint32_t divisor)
{
	uint32_t rest = 0;
	uint64_t quotient = divide64(dividend, divisor, &rest);

	REQUIRE(quotient == dividend / divisor && rest == dividend % divisor,
		"%" PRIu64 " / %u gives %" PRIu64 ", rest %u", dividend, divisor, quotient, rest);
	REQUIRE(divide64(dividend, divisor, NULL) == quotient, "without a remainder");
}

static void test_divide(struct random *random, uint32_t rounds)
{
	static const uint64_t edges[] = { 0,	       1,
					  2,	       9,
					  10,	       0x7fffffff,
					  0x80000000,  0xfffffffe,
					  0xffffffff,  0x100000000,
					  0x1ffffffff, INT64_MAX,
					  1ull << 63,  UINT64_MAX - 1,
					  UINT64_MAX };
	const unsigned count = sizeof(edges) / sizeof(edges[0]);

	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < count; j++)
			if ((uint32_t)edges[j] != 0)
				try_divide(edges[i], edges[j]);
	for (unit_round = 0; unit_round < rounds; unit_round++)
		try_divide(random_wide(random), (uint32_t)(random_wide(random) >> 32) | 1u);
	for (unit_round = 0; unit_round < rounds; unit_round++)
		try_divide(random_next(random), (uint32_t)random_wide(random) | 1u);
}

/* Years of a fast processor's counts are time still, too short by less than a millionth. */
static void test_time(struct random *random, uint32_t rounds)
{
	static const uint32_t frequencies[] = { 1000001, 3600000 }; /* kHz */

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t khz = frequencies[unit_round % 2];
		uint64_t ns = random_next(random) >> (6 + unit_round % 58); /* up to 9 years */

		time_initialize(khz);
		uint64_t shown = time_of_cycles(ns / 1000000 * khz + ns % 1000000 * khz / 1000000);

		REQUIRE(shown <= ns && ns - shown <= ns / 1000000 + 2000,
			"%" PRIu64 " ns at %u kHz show as %" PRIu64, ns, khz, shown);
	}
}

/* Bounds on both sides of each power of two: a mask that is one bit short or long shows here. */
static void test_bounds(struct random *random, uint32_t rounds)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		for (int64_t around = -1; around <= 1; around++) {
			uint64_t bound = (1ull << bits) + around, all = 0;

			if (bound == 0)
				continue;
			for (unit_round = 0; unit_round < rounds / 192; unit_round++) {
				uint64_t value = random_below(random, bound);

				REQUIRE(value < bound, "%" PRIu64 " of bound %" PRIu64, value,
					bound);
				all |= value;
			}
			REQUIRE(rounds < 10000 || (all << 1 | 1) >= bound - 1,
				"no value near the bound %" PRIu64, bound);
		}
	}
}

/* Chi-square of the counts, with `bound` classes: its mean is bound - 1, its variance twice that.
 */
static double chi_square(struct random *random, unsigned bound, uint32_t rounds)
{
	uint32_t counts[200] = { 0 };
	double expected = (double)rounds / bound, sum = 0;

	for (uint32_t i = 0; i < rounds; i++)
		counts[random_below(random, bound)]++;
	for (unsigned i = 0; i < bound; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return sum;
}

/* Five standard deviations: a fair generator fails for one seed in a million. */
static void test_uniform(struct random *random, uint32_t rounds)
{
	static const unsigned bounds[] = { 2, 3, 5, 6, 7, 10, 64, 65, 100, 127, 200 };

	for (unsigned i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		double excess = chi_square(random, bounds[i], rounds) - (bounds[i] - 1);

		REQUIRE(excess * excess < 25.0 * 2 * (bounds[i] - 1) + 25,
			"bound %u: chi-square is %.1f beyond its mean", bounds[i], excess);
	}
}

const struct unit_test arithmetic_tests[] = {
	{ "divide", test_divide },	    { "time", test_time }, { "random_bounds", test_bounds },
	{ "random_uniform", test_uniform }, { NULL, NULL },
};
