/*
 * Large pages: one entry of a directory in place of a table with 1024 entries.
 *
 *	directory[n] --> block of 4 MiB			large: one entry of the TLB is enough
 *	directory[n] --> table --> page, page, page ...	split: each page has its own entry
 *
 * What happens to all of a large page happens to its entry: it is unmapped, protected, shared by
 * fork, copied on write. What happens to a part of it splits it first (demotion): a table takes the
 * entry's place, which maps the same pages, and the block becomes 1024 pages. That must not fail,
 * because a cut must not. So each large entry has a page put aside for its table from the start.
 *
 * A block is counted by its first page, once for each large entry that maps it. If one of two
 * spaces splits it, each of the 1024 pages gets that count, and the other space's entry goes on
 * mapping all of them: a large entry maps a whole block, or 1024 pages in a row.
 *
 * Called by tasks that cannot be pre-empted; nothing here sleeps. Only areas of private zeros have
 * large pages, so no object has to know.
 */
#include "mm/large_page.h"

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/area.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"

#define ORDER	 (ORDERS - 1)
#define PAGES	 1024u /* in a large page */
#define TABLE	 (PTE_PRESENT | PTE_WRITE | PTE_USER)
#define OWN_BITS (PTE_LARGE | PTE_RESERVED | PTE_POOL) /* what entries of tables do not have */
#define FLAGS	 (PAGE_SIZE - 1)

uint32_t *large_tables_aside;
struct large_counts large_counts;

/* ---- entries ---- */

static uint32_t *directory_entry(const struct space *space, uint32_t address)
{
	return &space->directory[address >> LARGE_SHIFT];
}

uint32_t large_entry(const struct space *space, uint32_t address)
{
	uint32_t entry = *directory_entry(space, address);

	return entry & PTE_LARGE ? entry : 0;
}

/* NULL: there was no memory for it. */
static bool put_aside(uint32_t *table)
{
	if (!table)
		return false;
	*(uint32_t **)table = large_tables_aside;
	large_tables_aside = table;
	return true;
}

static uint32_t *take_reserved_table(void)
{
	uint32_t *table = large_tables_aside;

	large_tables_aside = *(uint32_t **)table;
	return table;
}

/* ---- blocks ---- */

static struct page *block_of(uint32_t entry)
{
	return pte_page(entry & -LARGE_PAGE);
}

static bool is_whole_block(const struct page *block)
{
	return block->order == ORDER;
}

/* How many of its pages have a count. */
static uint32_t counted(const struct page *block)
{
	return is_whole_block(block) ? 1 : PAGES;
}

/* The counter of blocks of this kind. */
static uint32_t *counter(uint32_t entry)
{
	return entry & PTE_POOL ? &large_counts.pool : &large_counts.promoted;
}

static struct page *block_create(uint32_t kind)
{
	void *pages = page_alloc(ORDER);

	if (pages)
		++*counter(kind);
	return pages ? page_of(pages) : NULL;
}

static void block_hold(struct page *block)
{
	for (uint32_t i = 0; i < counted(block); i++)
		block[i].references++;
}

static void block_release(uint32_t entry)
{
	struct page *block = block_of(entry);
	uint32_t count = counted(block);

	*counter(entry) -= is_whole_block(block) && block->references == 1;
	for (uint32_t i = 0; i < count; i++)
		page_release(&block[i]);
}

/* Does no other entry map any of it? */
static bool is_alone(const struct page *block)
{
	uint32_t i = 0;

	while (i < counted(block) && block[i].references == 1)
		i++;
	return i == counted(block);
}

static void block_split(uint32_t entry)
{
	struct page *block = block_of(entry), first = *block;

	if (!is_whole_block(block))
		return;
	--*counter(entry);
	first.order = 0;
	for (uint32_t i = 0; i < PAGES; i++)
		block[i] = first;
}

/* ---- one large page ---- */

static void set_directory_entry(const struct space *space, uint32_t address, uint32_t entry)
{
	*directory_entry(space, address) = entry;
	tlb_flush_space(space);
}

/* What was reserved is touched, or split: its contents count from now on. */
static void count_contents(const struct space *space, uint32_t address)
{
	uint32_t entry = large_entry(space, address);

	if (!(entry & PTE_RESERVED))
		return;
	memset(page_address(block_of(entry)), 0, LARGE_PAGE);
	large_counts.reserved--;
	*directory_entry(space, address) = entry & ~PTE_RESERVED;
}

static void drop(struct space *space, uint32_t address)
{
	uint32_t entry = large_entry(space, address);

	large_counts.reserved -= !!(entry & PTE_RESERVED);
	set_directory_entry(space, address, 0);
	space->pages -= PAGES;
	block_release(entry);
	page_free(take_reserved_table(), 0);
}

/* Demotion. The table maps what the entry has mapped, the accessed and the dirty bit included. */
static void demote(const struct space *space, uint32_t address)
{
	count_contents(space, address);
	uint32_t entry = large_entry(space, address);
	uint32_t *table = take_reserved_table(), flags = entry & FLAGS & ~OWN_BITS;

	for (uint32_t i = 0; i < PAGES; i++)
		table[i] = ((entry & -LARGE_PAGE) + (i << PAGE_SHIFT)) | flags;
	page_of(table)->references += PAGES;
	block_split(entry);
	set_directory_entry(space, address, physical_address(table) | TABLE);
}

static void protect(const struct space *space, uint32_t address, uint32_t protection)
{
	uint32_t entry = large_entry(space, address);

	if (!(protection & SPACE_WRITE))
		entry &= ~PTE_WRITE;
	entry &= ~PTE_PRESENT;
	if (protection && !(entry & PTE_RESERVED))
		entry |= PTE_PRESENT;
	set_directory_entry(space, address, entry);
}

/* What was not touched stays with the one that asked for it, as in Linux. The caller flushes the
 * TLB. */
static int share(struct space *to, struct space *from, uint32_t address)
{
	uint32_t entry = large_entry(from, address) & ~PTE_WRITE;

	if (entry & PTE_RESERVED)
		return 0;
	if (!put_aside(page_alloc(0)))
		return -ENOMEM;
	*directory_entry(from, address) = entry;
	*directory_entry(to, address) = entry & ~(PTE_ACCESSED | PTE_DIRTY);
	block_hold(block_of(entry));
	to->pages += PAGES;
	return 0;
}

/* ---- before the functions of mm/page_table.h ---- */

bool large_covers(const struct space *space, uint32_t address, bool make)
{
	bool covers = large_entry(space, address);

	if (covers && make)
		demote(space, address);
	return covers && !make;
}

/* The first address of [start, end) where a large page begins that is in it as a whole; or end. One
 * that is there in part is split. */
static uint32_t next_whole(const struct space *space, uint32_t start, uint32_t end)
{
	for (uint32_t next; start < end; start = next) {
		next = (start & -LARGE_PAGE) + LARGE_PAGE;
		if (!large_entry(space, start))
			continue;
		if (start % LARGE_PAGE == 0 && next <= end)
			return start;
		demote(space, start);
	}
	return end;
}

void large_unmap(struct space *space, uint32_t start, uint32_t end)
{
	while ((start = next_whole(space, start, end)) < end)
		drop(space, start);
}

void large_protect(const struct space *space, uint32_t start, uint32_t end, uint32_t protection)
{
	for (; (start = next_whole(space, start, end)) < end; start += LARGE_PAGE)
		protect(space, start, protection);
}

int large_copy(struct space *to, struct space *from, uint32_t start, uint32_t end)
{
	int error = 0;

	to->large = true;
	for (; !error && (start = next_whole(from, start, end)) < end; start += LARGE_PAGE)
		error = share(to, from, start);
	return error;
}

/* ---- faults ---- */

/* An entry for a block of the program's own. */
static uint32_t own(const struct page *block, uint32_t kind)
{
	return frame_of(block) << PAGE_SHIFT | PTE_PAGE | PTE_LARGE | (kind & PTE_POOL);
}

/* A block that others map, too, is copied. False: no block is free for that. */
static bool make_own(struct space *space, uint32_t address)
{
	uint32_t entry = large_entry(space, address);
	struct page *block = block_of(entry), *copy = NULL;

	if (is_alone(block))
		return true;
	copy = block_create(entry);
	if (!copy)
		return false;
	memcpy(page_address(copy), page_address(block), LARGE_PAGE);
	set_directory_entry(space, address, own(copy, entry));
	block_release(entry);
	return true;
}

/* The entry allows the access from now on. */
static void allow(const struct space *space, uint32_t address, bool write)
{
	count_contents(space, address);
	uint32_t entry = large_entry(space, address) | PTE_PRESENT;

	set_directory_entry(space, address, write ? entry | PTE_WRITE : entry);
}

/* All of the 4 MiB around an address are in an area of MAP_HUGETLB, and nothing is there (any
 * more): a large page again, if there is a block. */
static void fault_in(struct space *space, uint32_t address, const struct area *area)
{
	uint32_t start = address & -LARGE_PAGE;

	if (area && (area->flags & AREA_LARGE) && start >= area_start(area) &&
	    area->end - start >= LARGE_PAGE && *directory_entry(space, address) == 0)
		large_map(space, start, start + LARGE_PAGE);
}

bool large_fault(struct space *space, uint32_t address, bool write, int *error)
{
	const struct area *area = area_find(space, address);

	if (!large_entry(space, address))
		fault_in(space, address, area);
	if (!large_entry(space, address))
		return false;
	*error = area && (area->flags & (write ? SPACE_WRITE : SPACE_PROTECTION)) ? 0 : -EACCES;
	if (!*error && write && !make_own(space, address))
		return false;
	if (!*error)
		allow(space, address, write);
	return true;
}

/* ---- making them ---- */

/* A table that maps nothing any more goes first. */
static bool map_one(struct space *space, uint32_t address)
{
	page_unmap_range(space, address, address + LARGE_PAGE);
	if (!put_aside(page_alloc(0)))
		return false;
	struct page *block = block_create(PTE_POOL);

	if (!block) {
		page_free(take_reserved_table(), 0);
		return false;
	}
	*directory_entry(space, address) = (own(block, PTE_POOL) | PTE_RESERVED) & ~PTE_PRESENT;
	large_counts.reserved++;
	space->pages += PAGES;
	return true;
}

int large_map(struct space *space, uint32_t start, uint32_t end)
{
	space->large = true;
	for (uint32_t at = start; at < end; at += LARGE_PAGE) {
		if (map_one(space, at))
			continue;
		while (at > start)
			drop(space, at -= LARGE_PAGE);
		return -ENOMEM;
	}
	return 0;
}

/* The table of 4 MiB that can be one large page; NULL: they cannot. */
static uint32_t *full_table(const struct space *space, uint32_t start, const struct area *area)
{
	uint32_t entry = *directory_entry(space, start);
	uint32_t *table = direct_map(entry & -PAGE_SIZE);

	if (!area || area->object || !(area->flags & SPACE_PROTECTION) ||
	    area->end - start < LARGE_PAGE || !(entry & PTE_PRESENT) || (entry & PTE_LARGE) ||
	    page_of(table)->references != 1 + PAGES)
		return NULL;
	return table;
}

/* The pages go after the TLB has forgotten them; the table is put aside for a demotion. */
static bool promote(struct space *space, uint32_t start)
{
	const struct area *area = area_find(space, start);
	uint32_t *table = full_table(space, start, area);
	uint32_t kind = area && (area->flags & AREA_LARGE) ? PTE_POOL : 0, used = 0;
	struct page *block = table ? block_create(kind) : NULL;

	if (!block)
		return false;
	for (uint32_t i = 0; i < PAGES; i++) {
		memcpy(page_address(block + i), page_address(pte_page(table[i])), PAGE_SIZE);
		used |= table[i] & (PTE_ACCESSED | PTE_DIRTY);
	}
	set_directory_entry(space, start,
			    own(block, kind) | used | (area->flags & SPACE_WRITE ? PTE_WRITE : 0));
	for (uint32_t i = 0; i < PAGES; i++)
		page_release(pte_page(table[i]));
	page_of(table)->references = 1;
	return space->large = put_aside(table);
}

uint32_t large_promote(struct space *space, uint32_t start, uint32_t end)
{
	uint32_t made = 0;

	for (start = (start + LARGE_PAGE - 1) & -LARGE_PAGE;
	     start < end && end - start >= LARGE_PAGE; start += LARGE_PAGE)
		made += promote(space, start);
	return made;
}
