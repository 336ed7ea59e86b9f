/*
 * mapcost: the cost of mmap and munmap of a page, in steps of the time stamp counter: with nothing
 * else mapped, and with 256 other pages.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#define TIMES 101
#define PAGES 256

static char *map(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static uint64_t stamp(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* The lowest of many: no interrupt falls into that one. */
static unsigned cost(void)
{
	unsigned lowest = -1u;

	for (int i = 0; i < TIMES; i++) {
		uint64_t start = stamp();

		munmap(map(), 4096);
		unsigned taken = stamp() - start;

		lowest = taken < lowest ? taken : lowest;
	}
	return lowest;
}

int main(void)
{
	unsigned alone = cost();

	for (int i = 0; i < PAGES; i++)
		if (map() == MAP_FAILED)
			return 1;
	printf("mapcost alone=%u others=%u\n", alone, cost());
	return 0;
}
