/*
 * The command `fragment`: raw figures of memory of which some pages are in use, at random.
 *
 *	fragment 50 7	takes all memory in single pages, and frees each with a chance of 50 %; 7 is
 *			the seed of the random numbers
 *
 * Then it asks sixteen times for one page, and for four together: page_alloc, and the search
 * in a map with one bit a page. Only raw figures are printed, times in TSC cycles;
 * labs/lesson5/measure.py makes tables of them. In the end all pages are free again.
 */

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"
#include "mm/kmalloc.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"

#define TIMES 16

static uint32_t *map, lowest; /* a set bit is a free page, and there is none below `lowest` */

/* All pages there are, with the reserves, in a list through their first words. */
static void **take_all(uint32_t *count)
{
	void **pages = NULL, **page;
	bool enabled = interrupts_disable();

	for (*count = 0; (page = page_alloc(0)); pages = page, ++*count)
		*page = pages;
	interrupts_restore(enabled);
	return pages;
}

/* Gives each page back with this chance, and notes it in the map. Returns the others. */
static void **thin_out(void **pages, uint32_t percent, uint32_t random)
{
	void **kept = NULL;

	for (void **page = pages, **next; page; page = next) {
		uint32_t frame = frame_of(page_at(page));

		next = *page;
		random ^= random << 13; /* Marsaglia, "Xorshift RNGs", 2003 */
		random ^= random >> 17;
		random ^= random << 5;
		if (random % 100 < percent) {
			map[frame / 32] |= 1u << frame % 32;
			lowest = frame < lowest ? frame : lowest;
			page_free(page, 0);
		} else {
			*page = kept;
			kept = page;
		}
	}
	return kept;
}

/* Takes the first free block of this order, up to 4, out of the map, if there is one. */
static void take_first_fit(unsigned order)
{
	uint32_t pages = 1u << order, block = (1u << pages) - 1;

	for (uint32_t frame = lowest & -pages; frame < page_frames; frame += pages) {
		if ((map[frame / 32] >> frame % 32 & block) == block) {
			map[frame / 32] &= ~(block << frame % 32);
			return;
		}
	}
}

static void print_blocks(void)
{
	printk("fragment: free blocks");
	for (unsigned order = 0; order < ORDERS; order++) {
		uint32_t blocks = 0;

		for (struct zone *zone = zones; zone < zones + ZONES; zone++)
			for (struct list *link = zone->lists[order].next;
			     link != &zone->lists[order]; link = link->next)
				blocks++;
		printk(" %u", blocks);
	}
	printk("\n");
}

/* Sixteen requests for blocks of this order, the same in the map, and the release of the blocks. */
static void print_times(unsigned order)
{
	bool enabled = interrupts_disable();
	uint32_t times[5] = { time_stamp() };
	void *blocks[TIMES];

	for (unsigned i = 0; i < TIMES; i++)
		blocks[i] = page_alloc(order);
	times[1] = time_stamp();
	for (unsigned i = 0; i < TIMES; i++)
		take_first_fit(order);
	times[2] = time_stamp();
	for (unsigned i = 0; i < TIMES; i++)
		if (blocks[i])
			memset(blocks[i], 0xcc, PAGE_SIZE << order);
	times[3] = time_stamp();
	for (unsigned i = 0; i < TIMES; i++)
		if (blocks[i])
			page_free(blocks[i], order);
	times[4] = time_stamp();
	interrupts_restore(enabled);
	printk("fragment: order %u, page_alloc %u, bitmap %u, junk %u, page_free %u\n", order,
	       times[1] - times[0], times[2] - times[1], times[3] - times[2], times[4] - times[3]);
}

static int run_fragment(int count, char **words)
{
	uint64_t percent, seed;
	uint32_t pages;

	map = kmalloc(page_frames / 8);
	if (!map || !number_parse(words[1], &percent) || !number_parse(words[2], &seed)) {
		kfree(map);
		return 1;
	}
	memset(map, 0, page_frames / 8);
	lowest = page_frames;
	void **kept = thin_out(take_all(&pages), percent, 2654435761u * seed | 1);

	printk("fragment: %u of %u pages free\n", page_free_count(), pages);
	print_blocks();
	print_times(2);
	print_times(0);
	thin_out(kept, 100, 1);
	kfree(map);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "fragment", "PERCENT SEED", "frees this many pages at random", 2, run_fragment },
};
