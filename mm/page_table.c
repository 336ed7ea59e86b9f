/*
 * Page tables of programs: two levels, 1024 entries each.
 *
 *	address		31..22 directory	21..12 table	11..0 offset
 *	0x08049123	32			73		0x123
 *
 *	space->directory[32] --> table of 0x08000000 - 0x083fffff
 *				 table[73] --> the page of 0x08049000
 *
 * The kernel's part of a directory is the same in all of them. A table belongs to one directory.
 * The references of its page are the number of its entries that are not 0, and one more; when the
 * last entry goes, so does the table.
 *
 * A table that is given back is all zeros, as a new one must be; and a directory that maps nothing
 * of a program is like a new one. So a few of both are kept: clearing a page takes as long as the
 * rest of a fault.
 *
 * The TLB caches translations. It never caches an entry that is *not* present; and if a cached
 * entry has fewer rights than the one in memory, one page fault too many flushes the address. So an
 * entry that gains a right needs no flush. One that loses something (present, writable, or its
 * page) is flushed before its page can belong to another program (Intel SDM volume 3, 4.10.4). Only
 * entries of the loaded space can be in the TLB: CR3 says which space that is.
 *
 * Called by tasks that cannot be pre-empted.
 */
#include "mm/page_table.h"

#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/paging.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"
#include "mm/space_layout.h"

#define ENTRIES 1024u
#define KERNEL	(KERNEL_BASE >> LARGE_SHIFT) /* the first entry of the kernel's */
#define TABLE	(PTE_PRESENT | PTE_WRITE | PTE_USER)
#define LOSABLE (PTE_PRESENT | PTE_WRITE | PTE_ACCESSED)
#define STOCK	16u

/* ---- tables and directories ---- */

struct stock {
	uint32_t count;
	uint32_t *pages[STOCK];
};

static struct stock tables, directories;

/* Takes a page whose first `entries` words are zero. */
static uint32_t *take_table(struct stock *stock, uint32_t entries)
{
	if (stock->count > 0)
		return stock->pages[--stock->count];
	uint32_t *page = page_alloc(0);

	return page ? memset(page, 0, entries * sizeof(uint32_t)) : NULL;
}

static void put_table(struct stock *stock, uint32_t *page)
{
	if (stock->count < STOCK)
		stock->pages[stock->count++] = page;
	else
		page_free(page, 0);
}

static uint32_t empty(struct stock *stock)
{
	uint32_t pages = stock->count;

	while (stock->count > 0)
		page_free(stock->pages[--stock->count], 0);
	return pages;
}

uint32_t page_table_shrink(void)
{
	return empty(&tables) + empty(&directories);
}

uint32_t *page_directory_create(void)
{
	bool is_new = directories.count == 0;
	uint32_t *directory = take_table(&directories, KERNEL);

	if (directory && is_new)
		memcpy(&directory[KERNEL], &kernel_page_directory[KERNEL],
		       (ENTRIES - KERNEL) * sizeof(uint32_t));
	return directory;
}

void page_directory_destroy(uint32_t *directory)
{
	put_table(&directories, directory);
}

/* ---- the TLB ---- */

static bool is_loaded(const struct space *space)
{
	return paging_directory() == physical_address(space->directory);
}

void tlb_flush_space(const struct space *space)
{
	if (is_loaded(space))
		paging_use(physical_address(space->directory));
}

/* EXERCISE 6.1 (page tables): see mm/page_table.h for the contracts.

   - pte_of finds an entry; pte_set changes one, keeps the table's count, and flushes the TLB.
   - page_unmap_range, page_protect_range, page_copy_range do so for ranges. A range may be as large
     as the user's part of a space, and nearly all of it without tables: the time must grow with the
     number of tables, not with the number of addresses.
   - space->pages is the number of entries that are not 0. page_unmap_range and page_copy_range keep
     it right; for pte_set its callers do.
   - given: take_table and put_table; page_hold and page_release for pages; is_loaded;
   tlb_flush_page (kernel/cpu/paging.h); physical_address and direct_map
   (kernel/cpu/memory_layout.h); and the first lines of four functions, for large pages
   (mm/page_table.h) and getrusage: keep them.

   Pitfalls: a page is released after the TLB has forgotten it, not before. A range may go up to
   KERNEL_BASE, and the kernel's entries stay as they are. A table is given back with its last
   entry. A page that mprotect has hidden is a page like any other. The accessed and the dirty bit
   survive a change of protection, and are clear in a copy. */
/* SOLUTION 6.1 { */
/* Inline, because the functions for ranges call it for each table. */
inline uint32_t *pte_of(const struct space *space, uint32_t address, bool make)
{
	uint32_t *entry = &space->directory[address >> LARGE_SHIFT];

	if (space->large && large_covers(space, address, make))
		return NULL;
	if (!(*entry & PTE_PRESENT)) {
		uint32_t *table = make ? take_table(&tables, ENTRIES) : NULL;

		if (!table)
			return NULL;
		*entry = physical_address(table) | TABLE;
	}
	uint32_t *table = direct_map(*entry & -PAGE_SIZE);

	return &table[address >> PAGE_SHIFT & (ENTRIES - 1)];
}

/* An entry that now maps another page needs a flush, too: the TLB may have the old page. */
void pte_set(const struct space *space, uint32_t address, uint32_t *pte, uint32_t value)
{
	uint32_t old = *pte;
	bool loses = (old & ~value & LOSABLE) || (old ^ value) >> PAGE_SHIFT;

	page_of(pte)->references += !!value - !!old;
	*pte = value;
	if ((old & PTE_PRESENT) && loses && is_loaded(space))
		tlb_flush_page(address);
}

/* Where the part of [start, end) ends that is in the same table as start. */
static uint32_t end_in_table(uint32_t start, uint32_t end)
{
	uint32_t next = (start & -LARGE_PAGE) + LARGE_PAGE;

	return next < end ? next : end;
}

/* The first entry in [pte, end) that is not 0; or end. Most tables are nearly empty. */
static uint32_t *find_entry(uint32_t *pte, uint32_t *end)
{
	uint32_t count = end - pte;
	bool found = false;

	if (count > 0)
		__asm__ volatile("repe scasl; setne %2"
				 : "+D"(pte), "+c"(count), "=q"(found)
				 : "a"(0)
				 : "cc", "memory");
	return found ? pte - 1 : end;
}

/* The entries of one table, from pte on, until none is left or the end is reached. */
static void unmap_entries(struct space *space, uint32_t *pte, uint32_t start, uint32_t end)
{
	uint32_t *first = pte, *last = pte + ((end - start) >> PAGE_SHIFT);
	struct page *table = page_of(pte);
	bool flush = is_loaded(space);

	uint32_t left = table->references - 1;

	for (; pte < last; pte++) {
		uint32_t old = *pte;

		if (!old) {
			pte = find_entry(pte + 1, last) - 1;
			continue;
		}
		*pte = 0;
		if (flush)
			tlb_flush_page(start + ((pte - first) << PAGE_SHIFT));
		page_release(pte_page(old));
		if (--left == 0)
			break;
	}
	space->pages -= table->references - 1 - left;
	table->references = left + 1;
}

/* INVLPG also flushes what the processor has cached of the directory's entry (4.10.4.1), so a table
 * that has become empty needs no flush of its own. */
void page_unmap_range(struct space *space, uint32_t start, uint32_t end)
{
	space_note_most(space);
	if (space->large)
		large_unmap(space, start, end);
	for (uint32_t next; start < end; start = next) {
		uint32_t *pte = pte_of(space, start, false);

		next = end_in_table(start, end);
		if (!pte)
			continue;
		unmap_entries(space, pte, start, next);
		if (page_of(pte)->references > 1)
			continue;
		space->directory[start >> LARGE_SHIFT] = 0;
		put_table(&tables, (uint32_t *)((uintptr_t)pte & -PAGE_SIZE));
	}
}

void page_protect_range(struct space *space, uint32_t start, uint32_t end, uint32_t protection)
{
	uint32_t kept = protection & SPACE_WRITE ? -1u : ~PTE_WRITE;
	uint32_t present = protection ? PTE_PRESENT : 0;

	if (space->large)
		large_protect(space, start, end, protection);
	for (uint32_t next; start < end; start = next) {
		uint32_t *pte = pte_of(space, start, false);

		next = end_in_table(start, end);
		for (; pte && start < next; start += PAGE_SIZE, pte++)
			if (*pte)
				pte_set(space, start, pte, (*pte & kept & ~PTE_PRESENT) | present);
	}
}

/* The entries of one table. Returns how many there are. */
static uint32_t copy_entries(uint32_t *target, uint32_t *source, uint32_t count)
{
	uint32_t *pte = source, *end = source + count, copied = 0;

	for (; pte < end; pte++) {
		uint32_t entry = *pte & ~PTE_WRITE;

		if (!entry) {
			pte = find_entry(pte + 1, end) - 1;
			continue;
		}
		*pte = entry;
		target[pte - source] = entry & ~(PTE_ACCESSED | PTE_DIRTY);
		page_hold(pte_page(entry));
		copied++;
	}
	return copied;
}

int page_copy_range(struct space *to, struct space *from, uint32_t start, uint32_t end)
{
	if (from->large && large_copy(to, from, start, end) != 0)
		return -ENOMEM;
	for (uint32_t next; start < end; start = next) {
		uint32_t *source = pte_of(from, start, false);

		next = end_in_table(start, end);
		if (!source)
			continue;
		uint32_t *target = pte_of(to, start, true);

		if (!target)
			return -ENOMEM;
		uint32_t copied = copy_entries(target, source, (next - start) >> PAGE_SHIFT);

		page_of(target)->references += copied;
		to->pages += copied;
	}
	return 0;
}
/* } SOLUTION 6.1 */
