/* A machine for mm/ on the host: see mmu.h. */
#define _GNU_SOURCE
#include "tests/host/space/mmu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/cpu/memory_layout.h"
#include "mm/fault.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/pool.h"
#include "mm/area.h"
#include "mm/space_layout.h"
#include "mm/user_copy.h"
#include "mm/zones.h"
#include "tests/host/unit.h"

#define FIRST 16u /* frames below are the kernel's: the zero page, which is no memory of ours */
#define SLOTS (SPACE_SHARED >> PAGE_SHIFT)

struct page *page_array;
uint32_t page_frames = MMU_FRAMES;
uint32_t kernel_page_directory[1024] __attribute__((aligned(4096)));

uint32_t mmu_fails_one_in;
void (*mmu_reclaim)(void);
static struct random chance = { 1 };
static uint32_t free_frames[MMU_FRAMES], free_count, objects;
static uint16_t remembered[MMU_FRAMES]; /* how many entries of the TLB show the frame */

/* ---- memory ---- */

/* The test program itself may be anywhere: pages that are not of this memory have frames beyond it,
 * so the array is as large as the address space. */
void mmu_initialize(void)
{
	void *wanted = direct_map(0);
	void *got = mmap(wanted, (size_t)MMU_FRAMES * PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);

	REQUIRE(got == wanted, "no memory at 3 GiB");
	page_array = mmap(NULL, (1u << 20) * sizeof(struct page), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(page_array != MAP_FAILED, "no page array");
	for (uint32_t frame = MMU_FRAMES - 1; frame >= FIRST; frame--) {
		page_array[frame].state = PAGE_FREE;
		free_frames[free_count++] = frame;
	}
}

bool (*page_reclaim)(void); /* there is none: what is given back is mmu_reclaim's */

size_t page_free_count(void)
{
	return free_count;
}

static bool fails(void)
{
	return mmu_fails_one_in && random_below(&chance, mmu_fails_one_in) == 0;
}

void *page_alloc(unsigned order)
{
	REQUIRE(order == 0, "page_alloc of order %u", order);
	if (mmu_reclaim)
		mmu_reclaim();
	if (fails() || free_count == 0)
		return NULL;
	struct page *page = &page_array[free_frames[--free_count]];

	page->state = PAGE_USED;
	page->references = 1;
	return memset(page_address(page), 0xa5, PAGE_SIZE);
}

void page_free_last(struct page *page)
{
	REQUIRE(page->state == PAGE_USED, "a page is freed that is not in use");
	REQUIRE(remembered[frame_of(page)] == 0,
		"a page is freed that the TLB still remembers: flush first");
	page->state = PAGE_FREE;
	free_frames[free_count++] = frame_of(page);
	memset(page_address(page), 0xcc, PAGE_SIZE);
}

void page_free(void *pages, unsigned order)
{
	page_free_last(&page_array[physical_address(pages) >> PAGE_SHIFT]);
}

void *pool_alloc(struct pool *pool)
{
	if (fails())
		return NULL;
	objects++;
	return calloc(1, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	objects--;
	memset(object, 0xcc, pool->size);
	free(object);
}

uint32_t mmu_free(void)
{
	return free_count;
}

uint32_t mmu_objects(void)
{
	return objects;
}

/* ---- the TLB ---- */

/* What is remembered of a page of the address space; 0: nothing. */
static uint32_t loaded, tlb[SLOTS];

/* The slots that may be in use, each once. */
static uint32_t listed[SLOTS], listed_count;
static bool is_listed[SLOTS];

static void remember(uint32_t slot, uint32_t entry)
{
	uint32_t old = tlb[slot];

	if ((old >> PAGE_SHIFT) < MMU_FRAMES)
		remembered[old >> PAGE_SHIFT] -= old != 0;
	if ((entry >> PAGE_SHIFT) < MMU_FRAMES)
		remembered[entry >> PAGE_SHIFT] += entry != 0;
	tlb[slot] = entry;
	if (!is_listed[slot])
		listed[listed_count++] = slot;
	is_listed[slot] = true;
}

uint32_t paging_directory(void)
{
	return loaded;
}

void paging_use(uint32_t directory)
{
	loaded = directory;
	while (listed_count > 0) {
		uint32_t slot = listed[--listed_count];

		remember(slot, 0);
		is_listed[slot] = false;
	}
}

void tlb_flush_page(uint32_t address)
{
	if (tlb[address >> PAGE_SHIFT])
		remember(address >> PAGE_SHIFT, 0);
}

/* Bits that an entry must not lose while they are remembered. A dirty bit that is remembered lets
 * the processor write without setting it again. */
static uint32_t kept_bits(uint32_t entry)
{
	uint32_t bits = PTE_PRESENT | PTE_USER | PTE_WRITE | PTE_ACCESSED;

	return entry & PTE_WRITE ? bits | PTE_DIRTY : bits;
}

void mmu_check_tlb(const struct space *space)
{
	REQUIRE(loaded == physical_address(space->directory), "another space is loaded");
	for (uint32_t i = 0; i < listed_count; i++) {
		uint32_t entry = tlb[listed[i]], address = listed[i] << PAGE_SHIFT;
		const uint32_t *pte = entry ? pte_of(space, address, false) : NULL;

		if (!entry)
			continue;
		REQUIRE(pte, "the TLB remembers 0x%x at 0x%x, where no table is: no flush", entry,
			address);
		REQUIRE((*pte ^ entry) >> PAGE_SHIFT == 0 && !(entry & ~*pte & kept_bits(entry)),
			"the TLB remembers 0x%x at 0x%x, and the entry is 0x%x: no flush", entry,
			address, *pte);
	}
}

/* ---- accesses ---- */

uint32_t mmu_translate(const struct space *space, uint32_t address, bool write)
{
	uint32_t needed = PTE_PRESENT | PTE_USER | (write ? PTE_WRITE : 0);
	uint32_t old = tlb[address >> PAGE_SHIFT];

	if ((old & needed) == needed && (!write || (old & PTE_DIRTY)))
		return old;
	uint32_t *pte = pte_of(space, address, false);

	if (!pte || (*pte & needed) != needed)
		return 0;
	*pte |= PTE_ACCESSED | (write ? PTE_DIRTY : 0);
	remember(address >> PAGE_SHIFT, *pte);
	return *pte;
}

static uint32_t *access(struct space *space, uint32_t address, bool write, int *error)
{
	uint32_t entry;

	REQUIRE(loaded == physical_address(space->directory), "another space is loaded");
	for (unsigned tries = 0; !(entry = mmu_translate(space, address, write)); tries++) {
		REQUIRE(tries < 2, "a fault at 0x%x does not help", address);
		*error = space_fault(space, address, write, true);
		if (*error)
			return NULL;
	}
	const struct page *page = pte_page(entry);

	if (page->state ==
	    PAGE_RESERVED) /* the zero page, which is at no physical address of ours */
		REQUIRE(!write, "the zero page may be written at 0x%x", address);
	else
		REQUIRE(page->state == PAGE_USED, "0x%x shows a page that is free", address);
	return (uint32_t *)((uintptr_t)direct_map(entry & -PAGE_SIZE) + address % PAGE_SIZE);
}

bool mmu_read(struct space *space, uint32_t address, uint32_t *value, int *error)
{
	uint32_t *word = access(space, address, false, error);

	if (word)
		*value = *word;
	return word;
}

bool mmu_write(struct space *space, uint32_t address, uint32_t value, int *error)
{
	uint32_t *word = access(space, address, true, error);

	if (word)
		*word = value;
	return word;
}

/* The heap's: only what the model of the test never uses. */
uint32_t clear_user(uint32_t to, uint32_t length)
{
	return length;
}
