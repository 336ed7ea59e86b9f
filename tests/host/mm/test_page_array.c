/* mm/page_array.c: every frame against what a map of the bytes says. */
#include <string.h>

#include "kernel/lib/multiboot.h"
#include "mm/memory_map.h"
#include "mm/page.h"
#include "mm/zones.h"
#include "tests/host/mm/machine.h"

/* Is all of the frame usable, and beyond the kernel? */
static bool is_usable(uint32_t frame)
{
	const struct boot_memory_range *range;
	uint64_t start = (uint64_t)frame << PAGE_SHIFT;

	for (uint32_t i = 0; (range = memory_map_range(i)); i++)
		if (range->type == MULTIBOOT_MEMORY_AVAILABLE && range->base <= start &&
		    start + PAGE_SIZE <= range->base + range->length)
			return start >= MACHINE_KERNEL_END - KERNEL_BASE;
	return false;
}

static bool is_in_the_array(uint32_t frame)
{
	const char *page = direct_map(frame << PAGE_SHIFT), *array = (const char *)page_array;

	return page + PAGE_SIZE > array && page < array + page_frames * sizeof(struct page);
}

/* The states of all frames, a block's tail as its first page. */
static void require_states(void)
{
	uint32_t pages[ZONES] = { 0 }, block = 0;

	for (uint32_t frame = 0; frame < page_frames; frame++) {
		const struct page *page = &page_array[frame];
		bool free = is_usable(frame) && !is_in_the_array(frame);

		if (page->state != PAGE_TAIL)
			block = frame;
		REQUIRE(page->state == PAGE_FREE || page->state == PAGE_TAIL ||
			    page->state == PAGE_RESERVED,
			"frame %#x: state %u", frame, page->state);
		REQUIRE((page_array[block].state == PAGE_FREE) == free, "frame %#x: is%s free",
			frame, free ? " not" : "");
		pages[zone_of(page) - zones] += free;
	}
	for (unsigned i = 0; i < ZONES; i++) {
		REQUIRE(zones[i].free == pages[i], "%s: %u pages free, not %u", zones[i].name,
			zones[i].free, pages[i]);
		REQUIRE(zones[i].reserve == pages[i] / 64, "%s: a reserve of %u", zones[i].name,
			zones[i].reserve);
	}
	machine_audit();
}

static void of_a_pc(struct random *random, uint32_t megabytes)
{
	(void)random;
	machine_start_pc(megabytes);
	REQUIRE(page_frames == ((megabytes + 3) & -4u) << (20 - PAGE_SHIFT), "%u frames",
		page_frames);
	require_states();
}

/* Ranges that begin and end anywhere, with holes, across 16 MiB and across 4 GiB. */
static void random_ranges(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct boot_memory_range ranges[16];
		uint32_t count = random_below(random, 16);

		ranges[0] = (struct boot_memory_range){ 0x100000, 6 << 20, 1 };
		for (uint32_t i = 1; i <= count; i++)
			ranges[i] = (struct boot_memory_range){
				(6 << 20) + random_below(random, 40 << 20),
				random_below(random, random_below(random, 2) ? 10000 : 8 << 20),
				1 + random_below(random, 4) / 3,
			};
		machine_start(64, ranges, count + 1);
		require_states();
	}
}

const struct unit_test page_array_tests[] = {
	{ "page_array_pc", of_a_pc },
	{ "page_array_random", random_ranges },
	{ NULL, NULL },
};
