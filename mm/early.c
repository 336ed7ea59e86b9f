/*
 * The page allocator of the first lessons: one bit a page, first fit.
 *
 * It is slow and simple, and it needs nothing but a static bitmap, so it can be there from the
 * start.
 */
#include "mm/early.h"

#include <stdbool.h>
#include <stdint.h>

#include "boot/multiboot.h"
#include "kernel/memory_layout.h"
#include "kernel/panic.h"
#include "kernel/string.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

#define PAGES	    (DIRECT_MAP_SIZE / PAGE_SIZE)
#define FIRST_PAGE  (0x100000u / PAGE_SIZE) /* the first MiB stays the BIOS's and the loader's */
#define ORDER_LIMIT 10
#define JUNK	    0xcc /* INT3: executing freed memory shows as well */
#define JUNK_ORDER  4	 /* of larger blocks only the first page is filled: that would take long */

extern const char kernel_start[], kernel_end[];

/* A set bit is a free page. What is not usable memory is never free. */
static uint32_t free_map[PAGES / 32];
static size_t free_pages;
static uint32_t lowest_free; /* no page below it is free */

static bool is_free(uint32_t page)
{
	return free_map[page / 32] >> page % 32 & 1;
}

static void set_free(uint32_t page, bool free)
{
	ASSERT(is_free(page) != free);
	free_map[page / 32] ^= 1u << page % 32;
	free_pages += free ? 1 : -1;
	if (free && page < lowest_free)
		lowest_free = page;
	while (!free && page == lowest_free && lowest_free < PAGES && !is_free(lowest_free))
		page = ++lowest_free;
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
			set_free(page, true);
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

void *page_alloc(unsigned order)
{
	uint32_t count = 1u << order;

	ASSERT(order <= ORDER_LIMIT);
	for (uint32_t page = lowest_free & -count; page < PAGES; page += count) {
		if (free_run(page, count) < count)
			continue;
		for (uint32_t i = 0; i < count; i++)
			set_free(page + i, false);
		return direct_map(page * PAGE_SIZE);
	}
	return NULL;
}

void page_free(void *pages, unsigned order)
{
	uint32_t first = physical_address(pages) / PAGE_SIZE;

	ASSERT(order <= ORDER_LIMIT && first % (1u << order) == 0 && first < PAGES);
	memset(pages, JUNK, PAGE_SIZE << (order <= JUNK_ORDER ? order : 0));
	for (uint32_t i = 0; i < 1u << order; i++)
		set_free(first + i, true);
}

size_t page_free_count(void)
{
	return free_pages;
}
