/* drivers/disk/latency.h: the borders of its buckets, and when a drive is slow beside its peers. */
#include <inttypes.h>
#include <string.h>

#include "drivers/disk/latency.h"
#include "tests/host/unit.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S  (1000 * MS)

static void require_buckets(uint64_t ns, unsigned power, enum latency_range range, unsigned step)
{
	struct latency latency = { 0 };

	latency_add(&latency, ns);
	REQUIRE(latency.powers[power] == 1, "%" PRIu64 " ns is not in power %u", ns, power);
	REQUIRE(latency.steps[range][step] == 1, "%" PRIu64 " ns is not in step %u of range %u", ns,
		step, range);
	REQUIRE(latency.count == 1 && latency.total_ns == ns, "%" PRIu64 " ns is not counted", ns);
}

static void test_borders(struct random *random, uint32_t rounds)
{
	static const struct {
		uint64_t ns;
		unsigned power;
		enum latency_range range;
		unsigned step;
	} table[] = {
		{ 0, 0, LATENCY_US, 0 },	   { 999, 0, LATENCY_US, 0 },
		{ 1 * US, 1, LATENCY_US, 0 },	   { 9 * US + 999, 4, LATENCY_US, 0 },
		{ 10 * US, 4, LATENCY_US, 1 },	   { 15 * US, 4, LATENCY_US, 1 },
		{ 16 * US, 5, LATENCY_US, 1 },	   { 1 * MS - 1, 10, LATENCY_US, 99 },
		{ 1 * MS, 10, LATENCY_MS, 0 },	   { 9400 * US, 14, LATENCY_MS, 0 },
		{ 10 * MS, 14, LATENCY_MS, 1 },	   { 1 * S - 1, 20, LATENCY_MS, 99 },
		{ 1 * S, 20, LATENCY_S, 0 },	   { 10 * S, 24, LATENCY_S, 1 },
		{ 999 * S, 30, LATENCY_S, 99 },	   { 4000 * S, 31, LATENCY_S, 99 },
		{ 100000 * S, 31, LATENCY_S, 99 },
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		require_buckets(table[i].ns, table[i].power, table[i].range, table[i].step);
}

/* A number of requests of one length. */
static void add(struct latency *latency, unsigned count, uint64_t ns)
{
	while (count-- > 0)
		latency_add(latency, ns);
}

static void test_percentile(struct random *random, uint32_t rounds)
{
	struct latency latency = { 0 };

	REQUIRE(latency_mean_us(&latency) == 0, "a mean of nothing");
	add(&latency, 990, 100 * US);
	add(&latency, 10, 50 * MS);
	REQUIRE(latency_below_us(&latency, 990) == 128, "99 %%: %u",
		latency_below_us(&latency, 990));
	REQUIRE(latency_below_us(&latency, 991) == 65536, "more: %u",
		latency_below_us(&latency, 991));
	REQUIRE(latency_mean_us(&latency) == 599, "the mean: %u", latency_mean_us(&latency));
}

static void test_detector(struct random *random, uint32_t rounds)
{
	struct latency drives[4];
	const struct latency *peers[3] = { &drives[1], &drives[2], &drives[3] };

	memset(drives, 0, sizeof(drives));
	REQUIRE(!latency_is_suspicious(&drives[0], peers, 0), "without peers");
	add(&drives[0], 31, 100 * MS);
	for (unsigned i = 1; i < 4; i++)
		add(&drives[i], 1000, 10 * MS);
	REQUIRE(!latency_is_suspicious(&drives[0], peers, 3), "31 requests say nothing");
	add(&drives[0], 1, 100 * MS);
	REQUIRE(latency_is_suspicious(&drives[0], peers, 3), "ten times as slow");
	peers[0] = &drives[0]; /* a peer that is broken, too */
	REQUIRE(!latency_is_suspicious(&drives[1], peers, 3), "a good drive");
	add(&drives[1], 1000, 30 * MS);
	REQUIRE(!latency_is_suspicious(&drives[1], peers, 3), "twice the median is not more");
	add(&drives[1], 50, 30 * MS);
	REQUIRE(latency_is_suspicious(&drives[1], peers, 3), "the broken peer hides it");
}

const struct unit_test latency_tests[] = {
	{ "latency_borders", test_borders },
	{ "latency_percentile", test_percentile },
	{ "latency_detector", test_detector },
	{ 0 },
};
