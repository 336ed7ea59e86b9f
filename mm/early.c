/*
 * The page allocator of the first lessons: one bit a page, first fit.
 *
 * It is slow and simple, and it needs nothing but a static bitmap, so it can be there from the
 * start.
 */
#include "mm/early.h"

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lib/multiboot.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/panic.h"
#include "kernel/lib/string.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

#define PAGES	    (DIRECT_MAP_SIZE / PAGE_SIZE)
#define FIRST_PAGE  (0x100000u / PAGE_SIZE) /* the first MiB stays the BIOS's and the loader's */
#define ORDER_LIMIT 10
#define JUNK	    0xcc /* INT3: executing freed memory shows as well */

/* Small blocks come from the top of memory, large ones from below, so that the small ones do not
 * break up what the large ones need. Only small ones are filled with junk whole: it takes long. */
#define SMALL_ORDER 4

extern const char kernel_start[], kernel_end[];

/* A set bit is a free page. What is not usable memory is never free. All free pages lie in
 * [lowest_free, free_end). */
static uint32_t free_map[PAGES / 32];
static size_t free_pages;
static uint32_t lowest_free, free_end;

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

/* Changes count pages, a power of two that divides first: one bit, some, or whole words. */
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

static bool is_kernel(uint32_t page)
{
	return page >= physical_address(kernel_start) / PAGE_SIZE &&
	       page < physical_address(kernel_end) / PAGE_SIZE;
}

/* Frees the whole pages of a range that the kernel sees. */
static void add_range(const struct boot_memory_range *range)
{
	uint64_t first = (range->base + PAGE_SIZE - 1) / PAGE_SIZE;
	uint64_t end = (range->base + range->length) / PAGE_SIZE;

	for (uint64_t page = first; page < end && page < PAGES; page++)
		if (page >= FIRST_PAGE && !is_kernel(page))
			set_free(page, 1, true);
}

void early_initialize(void)
{
	const struct boot_memory_range *range;

	for (uint32_t i = 0; (range = memory_map_range(i)); i++)
		if (range->type == MULTIBOOT_MEMORY_AVAILABLE)
			add_range(range);
}

/* How many of the pages from page on are free, counted up to count. */
static uint32_t free_run(uint32_t page, uint32_t count)
{
	uint32_t run = 0;

	while (run < count && is_free(page + run))
		run++;
	return run;
}

/* The first free block of count pages from below, or the last one; PAGES when there is none. */
static uint32_t find_low(uint32_t count)
{
	for (uint32_t page = lowest_free & -count; page + count <= free_end; page += count)
		if (free_run(page, count) == count)
			return page;
	return PAGES;
}

static uint32_t find_high(uint32_t count)
{
	for (uint32_t end = free_end & -count; end >= lowest_free + count; end -= count)
		if (free_run(end - count, count) == count)
			return end - count;
	return PAGES;
}

void *page_alloc(unsigned order)
{
	uint32_t count = 1u << order;

	ASSERT(order <= ORDER_LIMIT);
	uint32_t page = order <= SMALL_ORDER ? find_high(count) : find_low(count);

	if (page == PAGES)
		return NULL;
	set_free(page, count, false);
	return direct_map(page * PAGE_SIZE);
}

void page_free(void *pages, unsigned order)
{
	uint32_t first = physical_address(pages) / PAGE_SIZE;

	ASSERT(order <= ORDER_LIMIT && first % (1u << order) == 0 && first < PAGES);
	memset(pages, JUNK, PAGE_SIZE << (order <= SMALL_ORDER ? order : 0));
	set_free(first, 1u << order, true);
}

size_t page_free_count(void)
{
	return free_pages;
}
