/* Page tables: which page of memory is mapped at which address of a space. */
#pragma once

#include "kernel/lib/optional.h"
#include "mm/page.h"

struct space;

/* An entry of a page table: Intel SDM volume 3, 4.3. The upper 20 bits are the page's address. An
 * entry that is 0 maps no page. One that is not 0 but lacks PTE_PRESENT has a page that the
 * program may not use at the moment (mprotect with PROT_NONE). */
#define PTE_PRESENT  0x001u
#define PTE_WRITE    0x002u
#define PTE_USER     0x004u
#define PTE_ACCESSED 0x020u
#define PTE_DIRTY    0x040u
#define PTE_HIDDEN   0x200u /* the processor ignores it: so that no entry with a page is 0 */

/* Bits of every page of a program; with PTE_WRITE, too, if it may be written to now. */
#define PTE_PAGE (PTE_PRESENT | PTE_USER | PTE_HIDDEN)

/* A directory that maps the kernel and nothing else, or NULL without memory. */
uint32_t *page_directory_create(void);

/* Gives back a directory that no longer maps anything of a program. */
void page_directory_destroy(uint32_t *directory);

/* The entry of a user address. NULL if there is no table for it and `make` is false, or there is no
 * memory for one. Valid until the next unmap in the same 4 MiB. A large page has no table: `make`
 * splits it. */
uint32_t *pte_of(const struct space *space, uint32_t address, bool make);

/* Writes an entry, and flushes the old one from the TLB if necessary. The caller counts the page's
 * references; those of the table are counted here. */
void pte_set(const struct space *space, uint32_t address, uint32_t *pte, uint32_t value);

/* Unmaps the pages of [start, end) that are there, and releases them. A table that becomes empty is
 * freed. */
void page_unmap_range(struct space *space, uint32_t start, uint32_t end);

/* The pages of [start, end) that are there lose what `protection` (bits of SPACE_*) does not allow:
 * the right to write without SPACE_WRITE, PTE_PRESENT without any bit. With any bit they have
 * PTE_PRESENT again at once; the right to write comes back only by a fault, which knows whether the
 * page is shared. */
void page_protect_range(struct space *space, uint32_t start, uint32_t end, uint32_t protection);

/* Makes `to` map the pages of [start, end) that `from` maps, where `to` maps nothing yet. Both
 * lose the right to write; the caller flushes the TLB. Returns 0; or -ENOMEM, after some entries
 * have been copied. */
int page_copy_range(struct space *to, struct space *from, uint32_t start, uint32_t end);

/*
 * Large pages, 4 MiB by one entry of a directory (mm/large_page.c), in a space with space->large.
 * They are given: the functions above and space_fault call these first.
 *
 * large_unmap, large_protect and large_copy do it for the large pages that are in the range as a
 * whole, and split those that are there in part. pte_of finds no table for what remains large.
 * large_covers: is a large page at the address? With `make` it is split, and no longer one.
 * large_fault: true if a large page is there, and *error is the result; false: look for 4 KiB.
 */
void large_unmap(struct space *space, uint32_t start, uint32_t end) OPTIONAL;
void large_protect(const struct space *space, uint32_t start, uint32_t end,
		   uint32_t protection) OPTIONAL;
int large_copy(struct space *to, struct space *from, uint32_t start, uint32_t end) OPTIONAL;
bool large_covers(const struct space *space, uint32_t address, bool make) OPTIONAL;
bool large_fault(struct space *space, uint32_t address, bool write, int *error) OPTIONAL;

/* Flushes all of a space's entries from the TLB. */
void tlb_flush_space(const struct space *space);

/* Gives back the memory that is kept for the next tables. Returns how many pages. */
uint32_t page_table_shrink(void);

/* An entry for a page. */
static inline uint32_t pte_for(const struct page *page, bool writable)
{
	return frame_of(page) << PAGE_SHIFT | PTE_PAGE | (writable ? PTE_WRITE : 0);
}

/* pte_set for an entry that is 0: there is nothing to flush. */
static inline void pte_fill(uint32_t *pte, uint32_t value)
{
	page_of(pte)->references++;
	*pte = value;
}

/* The page that an entry maps. */
static inline struct page *pte_page(uint32_t pte)
{
	return &page_array[pte >> PAGE_SHIFT];
}

/* Takes a reference to a page, or drops one; dropping the last one frees the page. Pages of the
 * kernel itself, such as the zero page, are not counted. */
static inline void page_hold(struct page *page)
{
	page->references += page->state != PAGE_RESERVED;
}

static inline void page_release(struct page *page)
{
	if (page->state != PAGE_RESERVED && --page->references == 0)
		page_free_last(page);
}
