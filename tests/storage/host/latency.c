/*
 * Asks drivers/disk/latency.c on this computer. Lines of standard input, about disks 0 to 19:
 *
 *	add DISK NS TIMES	counts this many requests
 *	buckets DISK		what is not 0: "power PLACE COUNT",
 *				"step RANGE PLACE COUNT"; then "total COUNT NS"
 *	mean DISK		prints "mean US"
 *	below DISK PERMILLE	prints "below US"
 *	slow DISK COUNT		is it slow, compared with the next COUNT disks?
 *				prints "slow 0" or "slow 1"
 */
#include <stdio.h>
#include <string.h>

#include "drivers/disk/latency.h"
#include "tests/host/question.h"

#define DISKS 20u

static struct latency disks[DISKS];

static void show(const struct latency *latency)
{
	for (unsigned i = 0; i < LATENCY_POWERS; i++)
		if (latency->powers[i])
			printf("power %u %u\n", i, latency->powers[i]);
	for (unsigned range = 0; range < LATENCY_RANGES; range++)
		for (unsigned i = 0; i < LATENCY_STEPS; i++)
			if (latency->steps[range][i])
				printf("step %u %u %u\n", range, i, latency->steps[range][i]);
	printf("total %u %llu\n", latency->count, (unsigned long long)latency->total_ns);
}

static bool is_slow(unsigned disk, unsigned count)
{
	const struct latency *peers[DISKS];

	for (unsigned i = 0; i < count; i++)
		peers[i] = &disks[(disk + 1 + i) % DISKS];
	return latency_is_suspicious(&disks[disk], peers, count);
}

int main(void)
{
	char word[16];
	unsigned disk, number;
	unsigned long long ns;

	while (scanf("%15s %u", word, &disk) == 2 && disk < DISKS) {
		question_begins();
		if (strcmp(word, "add") == 0 && scanf("%llu %u", &ns, &number) == 2) {
			while (number-- > 0)
				latency_add(&disks[disk], ns);
		} else if (strcmp(word, "buckets") == 0) {
			show(&disks[disk]);
		} else if (strcmp(word, "mean") == 0) {
			printf("mean %u\n", latency_mean_us(&disks[disk]));
		} else if (strcmp(word, "below") == 0 && scanf("%u", &number) == 1) {
			printf("below %u\n", latency_below_us(&disks[disk], number));
		} else if (strcmp(word, "slow") == 0 && scanf("%u", &number) == 1) {
			printf("slow %d\n", is_slow(disk, number));
		}
	}
	return 0;
}
