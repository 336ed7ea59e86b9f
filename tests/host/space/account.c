/* The account of memory: see account.h. */
#include "tests/host/space/account.h"

#include <string.h>

#include "kernel/cpu/memory_layout.h"
#include "mm/large_page.h"
#include "mm/page.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"
#include "tests/host/space/mmu.h"
#include "tests/host/unit.h"

#define ENTRIES	  1024u
#define USERS	  (KERNEL_BASE >> LARGE_SHIFT) /* the entries of a directory that are a program's */
#define KEPT_MOST 32u /* tables and directories that mm/page_table.c keeps */

static uint32_t counted[MMU_FRAMES]; /* references to pages */
static bool is_table[MMU_FRAMES];    /* or a directory */
static uint32_t large;		     /* entries */

void account_begin(void)
{
	memset(counted, 0, sizeof(counted));
	memset(is_table, 0, sizeof(is_table));
	large = 0;
}

static uint32_t frame_in(uint32_t physical, const char *what)
{
	uint32_t frame = physical >> PAGE_SHIFT;

	REQUIRE(frame < MMU_FRAMES && page_array[frame].state == PAGE_USED,
		"%s is at 0x%x, which is no page in use", what, physical);
	REQUIRE(!is_table[frame], "%s is at 0x%x, which is another table, too", what, physical);
	is_table[frame] = true;
	return frame;
}

/* Returns how many entries the table has. */
static uint32_t count_entries(const uint32_t *table)
{
	uint32_t entries = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		uint32_t frame = table[i] >> PAGE_SHIFT;

		if (!table[i])
			continue;
		entries++;
		if (frame < MMU_FRAMES)
			counted[frame]++;
	}
	return entries;
}

/* A block that is whole is counted by its first page; else all of its pages are. */
static void count_large(uint32_t entry)
{
	uint32_t first = (entry & -LARGE_PAGE) >> PAGE_SHIFT;

	REQUIRE(first < MMU_FRAMES, "a large entry is 0x%x", entry);
	counted[first]++;
	for (uint32_t i = 1; page_array[first].order == 0 && i < ENTRIES; i++)
		counted[first + i]++;
}

/* One page for the table of each large entry. */
static void count_aside(void)
{
	const uint32_t *table = large_tables_aside;
	uint32_t aside = 0;

	for (; table; table = *(uint32_t *const *)table, aside++)
		account_hold(page_of(table));
	REQUIRE(large == aside, "%u large entries, and %u tables aside", large, aside);
}

void account_space(const struct space *space)
{
	uint32_t pages = 0;

	if (!space)
		return;
	frame_in(physical_address(space->directory), "a directory");
	for (uint32_t i = 0; i < USERS; i++) {
		if (space->directory[i] & PTE_LARGE) {
			count_large(space->directory[i]);
			pages += ENTRIES;
			large++;
			continue;
		}
		if (!space->directory[i])
			continue;
		uint32_t frame = frame_in(space->directory[i], "a table");
		uint32_t entries = count_entries(direct_map(space->directory[i] & -PAGE_SIZE));

		REQUIRE(page_array[frame].references == entries + 1,
			"table %u has %u entries, and counts %u", i, entries,
			page_array[frame].references - 1);
		pages += entries;
	}
	REQUIRE(space->pages == pages, "%u pages are mapped, and the space counts %u", pages,
		space->pages);
}

void account_hold(const struct page *page)
{
	counted[frame_of(page)]++;
}

static void check_kept(uint32_t frame, int thorough)
{
	const uint32_t *words = direct_map(frame << PAGE_SHIFT);

	REQUIRE(page_array[frame].references == 1, "frame 0x%x is no one's, and has %u references",
		frame, page_array[frame].references);
	for (unsigned i = 0; thorough && i < USERS; i++)
		REQUIRE(words[i] == 0, "frame 0x%x is no one's: it leaks, or is not zero", frame);
}

void account_end(int thorough)
{
	uint32_t kept = 0, free = 0;

	count_aside();
	for (uint32_t frame = 0; frame < MMU_FRAMES; frame++) {
		const struct page *page = &page_array[frame];

		free += page->state == PAGE_FREE;
		if (page->state != PAGE_USED) {
			REQUIRE(counted[frame] == 0, "frame 0x%x is free, and %u entries show it",
				frame, counted[frame]);
		} else if (is_table[frame]) {
			REQUIRE(counted[frame] == 0, "frame 0x%x is a table, and a page", frame);
		} else if (counted[frame] > 0) {
			REQUIRE(page->references == counted[frame],
				"frame 0x%x has %u references, and is used %u times", frame,
				page->references, counted[frame]);
		} else {
			check_kept(frame, thorough);
			kept++;
		}
	}
	REQUIRE(kept <= KEPT_MOST, "%u frames are no one's: they leak", kept);
	REQUIRE(free == mmu_free(), "%u frames are free, and %u can be had", free, mmu_free());
}
