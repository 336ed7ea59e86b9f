/*
 * Page tables against a naive model: for each page of some windows of the address space, what its
 * entry must be. A window is across the border of two tables; the others begin and end where a
 * program's part of the address space does.
 *
 * Random entries, unmapped, protected and copied ranges (small, and nearly as large as the address
 * space), and accesses, in two spaces. After each operation all entries are compared, the TLB
 * remembers nothing that is not so, and the account of memory closes.
 */
#include "tests/host/space/test_tables.h"

#include <string.h>

#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/paging.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"
#include "tests/host/space/account.h"
#include "tests/host/space/mmu.h"
#include "tests/host/unit.h"

#define WINDOWS 3u
#define WINDOW	64u /* pages */
#define PAGES	(WINDOWS * WINDOW)
#define FRAMES	24u /* few, so that the same page is mapped again */
#define SPACES	2
#define BITS	(PTE_PRESENT | PTE_WRITE | PTE_USER | PTE_ACCESSED | PTE_DIRTY)

static const uint32_t bases[WINDOWS] = {
	SPACE_LOWEST,
	0x40400000u - WINDOW / 2 * PAGE_SIZE,
	SPACE_SHARED - WINDOW * PAGE_SIZE,
};

static struct page *frames[FRAMES];
static struct space *spaces[SPACES];
static uint32_t models[SPACES][PAGES]; /* the entry, but for PTE_HIDDEN; 0: none */

static uint32_t address_at(uint32_t page)
{
	return bases[page / WINDOW] + page % WINDOW * PAGE_SIZE;
}

/* The end of a range whose last page this is. */
static uint32_t end_at(uint32_t page)
{
	return address_at(page) + PAGE_SIZE;
}

static struct page *page_in(uint32_t entry)
{
	return &page_array[entry >> PAGE_SHIFT];
}

/* ---- what must be so ---- */

static void check_entries(const struct space *space, const uint32_t *model)
{
	for (uint32_t page = 0; page < PAGES; page++) {
		const uint32_t *pte = pte_of(space, address_at(page), false);
		uint32_t entry = pte ? *pte : 0;

		REQUIRE((entry & (BITS | -PAGE_SIZE)) == model[page],
			"the entry of 0x%x is 0x%x and not 0x%x", address_at(page), entry,
			model[page]);
		REQUIRE(!entry == !model[page], "0x%x has an entry without a page",
			address_at(page));
	}
}

static void check(unsigned loaded)
{
	account_begin();
	for (unsigned i = 0; i < FRAMES; i++)
		account_hold(frames[i]);
	for (unsigned number = 0; number < SPACES; number++) {
		check_entries(spaces[number], models[number]);
		account_space(spaces[number]);
	}
	account_end(unit_round % 64 == 0);
	mmu_check_tlb(spaces[loaded]);
}

/* ---- operations ---- */

/* Two pages in order; seldom in different windows, which may be as far apart as can be. */
static void random_range(struct random *random, uint32_t *first, uint32_t *last)
{
	*first = random_below(random, PAGES);
	*last = random_below(random, PAGES);
	if (random_below(random, 8))
		*last = *first / WINDOW * WINDOW + *last % WINDOW;
	if (*first <= *last)
		return;
	uint32_t page = *first;

	*first = *last;
	*last = page;
}

/* Another page, the same again, or none. What the entry showed loses its reference after the TLB
 * has forgotten it. */
static void set(struct random *random, unsigned number)
{
	uint32_t page = random_below(random, PAGES), address = address_at(page);
	struct page *target = frames[random_below(random, FRAMES)];
	uint32_t *pte = pte_of(spaces[number], address, true);
	uint32_t old = models[number][page], value = 0;

	if (!pte) {
		REQUIRE(mmu_fails_one_in, "no table for 0x%x", address);
		return;
	}
	if (random_below(random, 4)) {
		value = pte_for(target, random_below(random, 2));
		page_hold(target);
	}
	pte_set(spaces[number], address, pte, value);
	spaces[number]->pages += !!value - !!old;
	if (old)
		page_release(page_in(old));
	models[number][page] = value & (BITS | -PAGE_SIZE);
}

static void unmap(struct random *random, unsigned number)
{
	uint32_t first, last;

	random_range(random, &first, &last);
	page_unmap_range(spaces[number], address_at(first), end_at(last));
	memset(&models[number][first], 0, (last - first + 1) * sizeof(models[0][0]));
}

static void protect(struct random *random, unsigned number)
{
	uint32_t first, last, protection = random_below(random, 8);

	random_range(random, &first, &last);
	page_protect_range(spaces[number], address_at(first), end_at(last), protection);
	for (uint32_t page = first; page <= last; page++) {
		uint32_t *entry = &models[number][page];

		if (!*entry)
			continue;
		*entry = protection ? *entry | PTE_PRESENT : *entry & ~PTE_PRESENT;
		if (!(protection & SPACE_WRITE))
			*entry &= ~PTE_WRITE;
	}
}

/* Where nothing is mapped in the other space, what is mapped here. Without memory some pages have
 * been copied; both spaces must still be whole. */
static void copy(struct random *random, unsigned number)
{
	uint32_t first, last, *from = models[number], *to = models[!number];

	random_range(random, &first, &last);
	page_unmap_range(spaces[!number], address_at(first), end_at(last));
	memset(&to[first], 0, (last - first + 1) * sizeof(*to));
	int error =
	    page_copy_range(spaces[!number], spaces[number], address_at(first), end_at(last));

	tlb_flush_space(spaces[number]);
	REQUIRE(error == 0 || (error == -ENOMEM && mmu_fails_one_in), "a copy returns %d", error);
	for (uint32_t page = first; page <= last; page++) {
		const uint32_t *pte = pte_of(spaces[!number], address_at(page), false);

		if (!from[page] || (error && (!pte || !*pte)))
			continue;
		from[page] &= ~PTE_WRITE;
		to[page] = from[page] & ~(PTE_ACCESSED | PTE_DIRTY);
	}
}

static void access(struct random *random, unsigned number)
{
	uint32_t page = random_below(random, PAGES), *model = &models[number][page];
	bool write = random_below(random, 2);
	uint32_t needed = PTE_PRESENT | PTE_USER | (write ? PTE_WRITE : 0);
	uint32_t entry = mmu_translate(spaces[number], address_at(page), write);

	REQUIRE(!entry == ((*model & needed) != needed), "%s at 0x%x by 0x%x, with 0x%x",
		write ? "writing" : "reading", address_at(page), entry, *model);
	if (!entry)
		return;
	REQUIRE((entry ^ *model) >> PAGE_SHIFT == 0, "0x%x shows 0x%x and not 0x%x",
		address_at(page), entry, *model);
	*model |= PTE_ACCESSED | (write ? PTE_DIRTY : 0);
}

static void step(struct random *random)
{
	static unsigned loaded;
	unsigned number = random_below(random, SPACES), what = random_below(random, 100);

	if (random_below(random, 20) == 0 || paging_directory() == 0) {
		loaded = number;
		paging_use(physical_address(spaces[number]->directory));
	}
	if (what < 30)
		set(random, number);
	else if (what < 36)
		unmap(random, number);
	else if (what < 42)
		protect(random, number);
	else if (what < 46)
		copy(random, number);
	else
		access(random, loaded);
	check(loaded);
}

void table_random(struct random *random, uint32_t rounds)
{
	static uint8_t shared[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

	mmu_initialize();
	space_share(shared);
	uint32_t free = mmu_free();

	for (unsigned i = 0; i < FRAMES; i++)
		frames[i] = page_of(page_alloc(0));
	for (unsigned number = 0; number < SPACES; number++)
		spaces[number] = space_allocate();
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		mmu_fails_one_in = unit_round / 1000 % 2 ? 20 : 0;
		step(random);
	}
	mmu_fails_one_in = 0;
	paging_use(0);
	for (unsigned number = 0; number < SPACES; number++) {
		page_unmap_range(spaces[number], 0, SPACE_SHARED);
		space_destroy(spaces[number]);
	}
	for (unsigned i = 0; i < FRAMES; i++)
		page_release(frames[i]);
	page_table_shrink();
	REQUIRE(mmu_free() == free, "%u pages of %u are free at the end", mmu_free(), free);
}
