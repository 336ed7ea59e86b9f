/*
 * The page allocator of the first lessons: one bit a page, first fit.
 *
 * A set bit is a free page. 896 MiB are 229376 pages, so the map has 28 KiB, and exists before
 * anything can be allocated:
 *
 *	page	 ...	0x1f8	0x1f9	0x1fa	0x1fb	0x1fc	0x1fd	0x1fe	0x1ff
 *	bit		1	1	1	1	0	0	1	0
 *
 * page_alloc(2) wants four free pages at a multiple of four, and finds 0x1f8. A block of 2^order
 * pages aligned to its size is a run of bits inside one word, or some whole words: never parts of
 * two. Searching takes time in proportion to memory, which is why lesson 5 replaces this file.
 *
 * Invariants: all free pages are in [lowest_free, free_end); free_pages counts the set bits;
 * unusable memory, the first MiB and the kernel itself are never free.
 *
 * Any context: a page that was found free must still be free when it is taken, so interrupts are
 * disabled from the search to the change of the map.
 */
#include "mm/early.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/multiboot.h"
#include "kernel/report/panic.h"
#include "kernel/lib/string.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

#define PAGES	    (DIRECT_MAP_SIZE / PAGE_SIZE)
#define ORDER_LIMIT 10
#define JUNK	    0xcc /* INT3: executing freed memory shows as well */

/* Small blocks come from the top of memory, large ones from the bottom, so that the small ones do
 * not break up what the large ones need. Only small ones are filled with junk completely: it takes
 * long. */
#define SMALL_ORDER 4

extern const char kernel_end[];

/* The map and its summary. The bounds keep a search from walking over memory that is in use. */
static uint32_t free_map[PAGES / 32];
static size_t free_pages;
static uint32_t lowest_free, free_end;

/* Pages are numbered from physical address 0 on. */
static bool is_free(uint32_t page)
{
	return free_map[page / 32] >> page % 32 & 1;
}

/* Moves the bounds to free pages, past whole words where nothing is free. */
static void tighten(void)
{
	while (lowest_free < free_end && !is_free(lowest_free))
		lowest_free += lowest_free % 32 == 0 && !free_map[lowest_free / 32] ? 32 : 1;
	while (lowest_free < free_end && !is_free(free_end - 1))
		free_end -= free_end % 32 == 0 && !free_map[free_end / 32 - 1] ? 32 : 1;
}

/* Changes `count` pages from `first` on: a power of two, and `first` is a multiple of it. So they
 * are one bit, neighbouring bits of one word, or whole words. A page that already is what it should
 * become was freed twice, or handed out twice. */
static void set_free(uint32_t first, uint32_t count, bool free)
{
	uint32_t width = count < 32 ? count : 32;
	uint32_t mask = (uint32_t)((1ull << width) - 1) << first % 32;

	for (uint32_t page = first; page < first + count; page += width) {
		ASSERT((free_map[page / 32] & mask) == (free ? 0 : mask));
		free_map[page / 32] ^= mask;
	}
	free_pages += free ? count : -count;
	if (free && (first < lowest_free || lowest_free == free_end))
		lowest_free = first;
	if (free && first + count > free_end)
		free_end = first + count;
	tighten();
}

/* Frees the whole pages of a range that the kernel sees. The memory map calls the kernel's image
 * usable, with its BSS and the boot stack. It begins at 1 MiB; below are the BIOS and the boot
 * loader. */
static void free_range(const struct boot_memory_range *range)
{
	uint64_t first = range->base / PAGE_SIZE + (range->base % PAGE_SIZE > 0);
	uint64_t end = (range->base + range->length) / PAGE_SIZE;

	for (uint64_t page = first; page < end && page < PAGES; page++)
		if (page >= physical_address(kernel_end) / PAGE_SIZE)
			set_free(page, 1, true);
}

/* After memory_map_initialize. Everything is in use until a range says otherwise. */
void early_initialize(void)
{
	const struct boot_memory_range *range;

	for (uint32_t i = 0; (range = memory_map_range(i)); i++)
		if (range->type == MULTIBOOT_MEMORY_AVAILABLE)
			free_range(range);
}

/* How many of the pages from page on are free, counted up to count. */
static uint32_t free_run(uint32_t page, uint32_t count)
{
	uint32_t run = 0;

	while (run < count && is_free(page + run))
		run++;
	return run;
}

/* The lowest free block of `count` pages; PAGES when there is none. -count, as unsigned arithmetic
 * has it, is a mask that rounds down to a multiple of the power of two. */
static uint32_t find_low(uint32_t count)
{
	for (uint32_t page = lowest_free & -count; page + count <= free_end; page += count)
		if (free_run(page, count) == count)
			return page;
	return PAGES;
}

/* The same from the top of memory. */
static uint32_t find_high(uint32_t count)
{
	for (uint32_t end = free_end & -count; end >= lowest_free + count; end -= count)
		if (free_run(end - count, count) == count)
			return end - count;
	return PAGES;
}

/* Pages are above 1 MiB, so page 0 cannot be a result: direct_map(0) never means "allocated". */
void *page_alloc(unsigned order)
{
	uint32_t count = 1u << order;

	ASSERT(order <= ORDER_LIMIT);
	bool enabled = interrupts_disable();
	uint32_t page = order <= SMALL_ORDER ? find_high(count) : find_low(count);

	if (page != PAGES)
		set_free(page, count, false);
	interrupts_restore(enabled);
	return page == PAGES ? NULL : direct_map(page * PAGE_SIZE);
}

/* Junk instead of zeros: code that still uses the page fails soon and visibly. 0xcc is INT3, if it
 * is executed. */
void page_free(void *pages, unsigned order)
{
	uint32_t first = physical_address(pages) / PAGE_SIZE;

	ASSERT(order <= ORDER_LIMIT && first % (1u << order) == 0 && first < PAGES);
	memset(pages, JUNK, PAGE_SIZE << (order <= SMALL_ORDER ? order : 0));
	bool enabled = interrupts_disable();

	set_free(first, 1u << order, true);
	interrupts_restore(enabled);
}

size_t page_free_count(void)
{
	return free_pages;
}
