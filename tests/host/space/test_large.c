/*
 * Large pages against a naive model: for each page of three times 4 MiB whether it is mapped, what
 * a program may do there, and what its first word is.
 *
 * Large and small mappings, cuts and protections of parts and of all, forks, promotions, ends and
 * accesses, in three spaces; allocations may fail. After each operation the TLB remembers nothing
 * that is not so, and the account of memory closes: each block, and each page of one that was
 * split, has as many references as there are entries that show it.
 */
#include "tests/host/space/test_large.h"

#include <string.h>

#include "kernel/cpu/paging.h"
#include "kernel/lib/errno.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"
#include "tests/host/space/account.h"
#include "tests/host/space/mmu.h"
#include "tests/host/unit.h"

#define LARGE  3u
#define INSIDE 1024u /* pages in a large page */
#define PAGES  (LARGE * INSIDE)
#define BASE   0x50000000u
#define SPACES 3u

struct model_page {
	bool is_mapped;
	uint8_t protection;
	uint32_t value;
};

static struct space *spaces[SPACES];
static struct model_page models[SPACES][PAGES];
static uint32_t promoted, whole; /* so that the test has had something to test */

static uint32_t at(uint32_t page)
{
	return BASE + page * PAGE_SIZE;
}

/* Most ranges are whole large pages; of the others most are short. */
static void random_range(struct random *random, uint32_t *first, uint32_t *count)
{
	*first = random_below(random, PAGES);
	*count = 1 + random_below(random, random_below(random, 4) ? 8 : PAGES);
	if (random_below(random, 8)) {
		*first -= *first % INSIDE;
		*count = (1 + random_below(random, LARGE)) * INSIDE;
	}
	if (*count > PAGES - *first)
		*count = PAGES - *first;
}

static void map_pages(unsigned number, uint32_t first, uint32_t count, struct area form)
{
	struct model_page page = { true, form.flags & SPACE_PROTECTION, 0 };

	if (area_put(spaces[number], at(first), at(first + count), &form) != 0)
		return;
	if ((form.flags & AREA_LARGE) &&
	    large_map(spaces[number], at(first), at(first + count)) != 0) {
		area_cut(spaces[number], at(first), at(first + count));
		page.is_mapped = false;
	}
	for (uint32_t i = 0; i < count; i++)
		models[number][first + i] = page;
}

/* As mmap does it: by large pages where MAP_HUGETLB asks for it. */
static void map(struct random *random, unsigned number)
{
	uint32_t first, count;
	struct area form = { .flags = SPACE_READ | (random_below(random, 4) ? SPACE_WRITE : 0) };

	random_range(random, &first, &count);
	if (random_below(random, 4)) {
		first -= first % INSIDE;
		count = (count + INSIDE - 1) / INSIDE * INSIDE;
		form.flags |= AREA_LARGE;
	}
	map_pages(number, first, count > PAGES - first ? PAGES - first : count, form);
}

static void cut(struct random *random, unsigned number)
{
	uint32_t first, count;

	random_range(random, &first, &count);
	if (area_cut(spaces[number], at(first), at(first + count)) == 0)
		memset(&models[number][first], 0, count * sizeof(struct model_page));
}

static void protect(struct random *random, unsigned number)
{
	uint32_t first, count, protection = random_below(random, 4) ? 3 : random_below(random, 4);

	random_range(random, &first, &count);
	for (uint32_t i = 0; i < count; i++)
		if (!models[number][first + i].is_mapped)
			count = i;
	if (count == 0 ||
	    area_protect(spaces[number], at(first), at(first + count), protection) != 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		models[number][first + i].protection = protection;
}

/* madvise's MADV_DONTNEED: it is zero again. */
static void forget(struct random *random, unsigned number)
{
	uint32_t first, count;

	random_range(random, &first, &count);
	page_unmap_range(spaces[number], at(first), at(first + count));
	for (uint32_t i = 0; i < count; i++)
		models[number][first + i].value = 0;
}

static void access_page(struct random *random, unsigned number, uint32_t index, bool write)
{
	struct model_page *page = &models[number][index];
	uint32_t value = random_next(random);
	int error = 0, wanted = 0;
	bool done;

	if (!page->is_mapped)
		wanted = -EFAULT;
	else if (!(page->protection & (write ? SPACE_WRITE : SPACE_PROTECTION)))
		wanted = -EACCES;
	done = write ? mmu_write(spaces[number], at(index), value, &error)
		     : mmu_read(spaces[number], at(index), &value, &error);
	if (error == -ENOMEM)
		return;
	REQUIRE(error == wanted, "%s at 0x%x: %d and not %d", write ? "writing" : "reading",
		at(index), error, wanted);
	if (done && write)
		page->value = value;
	REQUIRE(!done || value == page->value, "0x%x has 0x%x and not 0x%x", at(index), value,
		page->value);
}

/* Often all of a large page is mapped and touched before, so that there is something to promote. */
static void promote(struct random *random, unsigned number)
{
	uint32_t first = random_below(random, LARGE) * INSIDE;
	bool write = random_below(random, 2);

	if (random_below(random, 2))
		map_pages(number, first, INSIDE,
			  (struct area){ .flags = SPACE_READ | SPACE_WRITE });
	for (uint32_t i = 0; i < INSIDE; i++)
		access_page(random, number, first + i, write);
	promoted += large_promote(spaces[number], at(first), at(first + INSIDE));
}

static void copy(struct random *random, unsigned number)
{
	unsigned other = random_below(random, SPACES);

	if (!spaces[other] && (spaces[other] = space_copy(spaces[number])))
		memcpy(models[other], models[number], sizeof(models[other]));
}

static void destroy(unsigned number)
{
	if (paging_directory() == physical_address(spaces[number]->directory))
		paging_use(0);
	space_destroy(spaces[number]);
	spaces[number] = NULL;
	memset(models[number], 0, sizeof(models[number]));
}

/* Entries and counts of large pages fit, and a range that is large is so as a whole. */
static void check(unsigned number)
{
	uint32_t pool = 0, others = 0;

	account_begin();
	for (unsigned each = 0; each < SPACES; each++)
		account_space(spaces[each]);
	account_end(0);
	for (unsigned each = 0; each < SPACES; each++)
		for (uint32_t page = 0; spaces[each] && page < PAGES; page += INSIDE) {
			uint32_t entry = large_entry(spaces[each], at(page));

			pool += entry && (entry & PTE_POOL);
			others += entry && !(entry & PTE_POOL);
		}
	whole += pool + others;
	REQUIRE(large_counts.pool <= pool && large_counts.promoted <= others,
		"%u + %u large pages are counted, and there are %u + %u", large_counts.pool,
		large_counts.promoted, pool, others);
	if (spaces[number])
		mmu_check_tlb(spaces[number]);
}

static void step(struct random *random)
{
	static unsigned number;
	unsigned what = random_below(random, 100);

	if (random_below(random, 20) == 0)
		number = random_below(random, SPACES);
	if (!spaces[number] && !(spaces[number] = space_create()))
		return;
	if (paging_directory() != physical_address(spaces[number]->directory))
		paging_use(physical_address(spaces[number]->directory));
	if (what < 8)
		map(random, number);
	else if (what < 14)
		cut(random, number);
	else if (what < 20)
		protect(random, number);
	else if (what < 23)
		forget(random, number);
	else if (what < 28)
		copy(random, number);
	else if (what < 31)
		destroy(number);
	else if (what < 34)
		promote(random, number);
	else
		access_page(random, number, random_below(random, PAGES), random_below(random, 2));
	check(number);
}

void large_random(struct random *random, uint32_t rounds)
{
	static uint8_t shared[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

	mmu_initialize();
	space_share(shared);
	uint32_t free = mmu_free();

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		mmu_fails_one_in = unit_round / 1000 % 2 ? 20 : 0;
		step(random);
	}
	mmu_fails_one_in = 0;
	for (unsigned number = 0; number < SPACES; number++)
		if (spaces[number])
			destroy(number);
	page_table_shrink();
	REQUIRE(mmu_free() == free, "%u pages of %u are free at the end", mmu_free(), free);
	REQUIRE(large_counts.pool + large_counts.reserved + large_counts.promoted == 0,
		"large pages are counted, and there are none");
	REQUIRE(rounds < 1000 || (promoted > rounds / 1000 && whole > rounds / 20),
		"%u promotions, and %u times a large page", promoted, whole);
}
