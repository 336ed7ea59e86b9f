/*
 * Latency histograms, and the comparison of a drive with its peers.
 *
 *	9.4 ms	powers[14] (8192 to 16383 us)	steps[MS][0] (0 to 9.9 ms)
 *	12 us	powers[4] (8 to 15 us)		steps[US][1] (10 to 19.9 us)
 *
 * A drive that is about to break still answers, but now and then only after many retries. Its own
 * history does not tell, because the load changes; its peers, which have the same load, do: a drive
 * whose mean is more than twice the median of the others' is slow (Hao et al., FAST 2016, found
 * 0.2 % of all drive-hours to be so). The median, because one slow peer must not hide another.
 *
 * From any context that may not be interrupted by itself; no allocation.
 */
#include "drivers/disk/latency.h"

#include <stddef.h>

#include "kernel/lib/divide.h"

#define SAMPLES 32u /* fewer say nothing */
#define PEERS	16u

/* EXERCISE S8 (how long requests take): the four functions of drivers/disk/latency.h. Times are cut
 * to whole microseconds, and to what 32 bits hold; what does not fit a histogram is in its last
 * place. A drive or a peer with fewer than SAMPLES requests says nothing. No 64-bit division:
 * divide64. */
/* SOLUTION S8 { */
/* What does not fit is counted in the last step. */
static void count_step(struct latency *latency, enum latency_range range, uint32_t value)
{
	uint32_t step = value / 10;

	latency->steps[range][step < LATENCY_STEPS ? step : LATENCY_STEPS - 1]++;
}

void latency_add(struct latency *latency, uint64_t ns)
{
	uint64_t all = divide64(ns, 1000, NULL);
	uint32_t us = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX; /* more than an hour */
	unsigned power = us ? 32 - __builtin_clz(us) : 0;

	latency->powers[power < LATENCY_POWERS ? power : LATENCY_POWERS - 1]++;
	if (us < 1000)
		count_step(latency, LATENCY_US, us);
	else if (us < 1000000)
		count_step(latency, LATENCY_MS, us / 1000);
	else
		count_step(latency, LATENCY_S, us / 1000000);
	latency->count++;
	latency->total_ns += ns;
}

uint32_t latency_mean_us(const struct latency *latency)
{
	if (latency->count == 0)
		return 0;
	return divide64(divide64(latency->total_ns, 1000, NULL), latency->count, NULL);
}

uint32_t latency_below_us(const struct latency *latency, uint32_t permille)
{
	uint64_t wanted = (uint64_t)latency->count * permille, seen = 0;

	for (unsigned power = 0; power < LATENCY_POWERS - 1; power++) {
		seen += latency->powers[power];
		if (seen * 1000 >= wanted)
			return 1u << power;
	}
	return UINT32_MAX;
}

/* Sorts a few numbers. */
static void sort(uint32_t *values, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned j = i; j > 0 && values[j] < values[j - 1]; j--) {
			uint32_t lower = values[j];

			values[j] = values[j - 1];
			values[j - 1] = lower;
		}
}

bool latency_is_suspicious(const struct latency *latency, const struct latency *const *peers,
			   unsigned count)
{
	uint32_t means[PEERS];
	unsigned known = 0;

	for (unsigned i = 0; i < count && known < PEERS; i++)
		if (peers[i]->count >= SAMPLES)
			means[known++] = latency_mean_us(peers[i]);
	if (known == 0 || latency->count < SAMPLES)
		return false;
	sort(means, known);
	uint64_t twice_median = (uint64_t)means[(known - 1) / 2] + means[known / 2];

	return latency_mean_us(latency) > twice_median;
}
/* } SOLUTION S8 */
