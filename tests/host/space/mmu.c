/* A machine for mm/ on the host: see mmu.h. */
#define _GNU_SOURCE
#include "tests/host/space/mmu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/cpu/memory_layout.h"
#include "mm/fault.h"
#include "mm/large_page.h"
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
#define LARGE_FRAMES (LARGE_PAGE >> PAGE_SHIFT)

struct page *page_array;
uint32_t page_frames = MMU_FRAMES;
uint32_t kernel_page_directory[1024] __attribute__((aligned(4096)));

uint32_t mmu_fails_one_in;
void (*mmu_reclaim)(void);
static struct random chance = { 1 };
static uint32_t lowest = FIRST, free_count, objects;
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
		free_count++;
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

/* The first frame of a block of 4 MiB that is free as a whole; 0: there is none. */
static uint32_t find_block(void)
{
	for (uint32_t first = LARGE_FRAMES; first < MMU_FRAMES; first += LARGE_FRAMES) {
		uint32_t count = 0;

		while (count < LARGE_FRAMES && page_array[first + count].state == PAGE_FREE)
			count++;
		if (count == LARGE_FRAMES)
			return first;
	}
	return 0;
}

/* The first frame that is free, so that blocks above stay whole. */
static uint32_t find_frame(void)
{
	while (page_array[lowest].state != PAGE_FREE)
		lowest++;
	return lowest;
}

void *page_alloc(unsigned order)
{
	REQUIRE(order == 0 || order == ORDERS - 1, "page_alloc of order %u", order);
	if (mmu_reclaim)
		mmu_reclaim();
	if (fails() || free_count == 0)
		return NULL;
	uint32_t frame = order ? find_block() : find_frame();
	struct page *page = &page_array[frame];

	if (frame == 0)
		return NULL;
	free_count -= 1u << order;
	for (uint32_t tail = 1; tail < 1u << order; tail++)
		page[tail].state = PAGE_TAIL;
	page->state = PAGE_USED;
	page->order = order;
	page->references = 1;
	return memset(page_address(page), 0xa5, PAGE_SIZE << order);
}

void page_free_last(struct page *page)
{
	uint32_t first = frame_of(page), count = 1u << page->order;

	REQUIRE(page->state == PAGE_USED, "a page is freed that is not in use");
	for (uint32_t frame = first + count; frame-- > first;) {
		REQUIRE(remembered[frame] == 0,
			"a page is freed that the TLB still remembers: flush first");
		page_array[frame].state = PAGE_FREE;
		page_array[frame].order = 0;
	}
	free_count += count;
	lowest = first < lowest ? first : lowest;
	memset(page_address(page), 0xcc, count * PAGE_SIZE);
}

void page_free(void *pages, unsigned order)
{
	struct page *page = &page_array[physical_address(pages) >> PAGE_SHIFT];

	REQUIRE(page->order == order, "page_free of order %u, and it has %u", order, page->order);
	page_free_last(page);
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

static void forget(uint32_t slot)
{
	uint32_t old = tlb[slot];

	if ((old >> PAGE_SHIFT) < MMU_FRAMES)
		remembered[old >> PAGE_SHIFT] -= old != 0;
	tlb[slot] = 0;
}

static void remember(uint32_t slot, uint32_t entry)
{
	forget(slot);
	if ((entry >> PAGE_SHIFT) < MMU_FRAMES)
		remembered[entry >> PAGE_SHIFT]++;
	tlb[slot] = entry;
	if (!is_listed[slot])
		listed[listed_count++] = slot;
	is_listed[slot] = true;
}

uint32_t paging_directory(void)
{
	return loaded;
}

/* What is global stays. */
void paging_use(uint32_t directory)
{
	uint32_t count = listed_count;

	loaded = directory;
	listed_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = listed[i];

		is_listed[slot] = tlb[slot] & PTE_GLOBAL;
		if (is_listed[slot])
			listed[listed_count++] = slot;
		else
			forget(slot);
	}
}

void tlb_flush_page(uint32_t address)
{
	forget(address >> PAGE_SHIFT);
}

/* The entry that the processor finds for an address: of a table, or a large one. NULL: no table. */
static uint32_t *walk(const struct space *space, uint32_t address)
{
	uint32_t *entry = &space->directory[address >> LARGE_SHIFT];

	if ((*entry & PTE_LARGE) || !(*entry & PTE_PRESENT))
		return *entry & PTE_LARGE ? entry : NULL;
	uint32_t *table = direct_map(*entry & -PAGE_SIZE);

	return &table[address >> PAGE_SHIFT & (LARGE_FRAMES - 1)];
}

/* What the TLB remembers of it, for the page of this address. (In an entry of a table the bit of
 * large ones has another meaning, and is never set.) */
static uint32_t seen_at(const uint32_t *entry, uint32_t address)
{
	if (!(*entry & PTE_LARGE))
		return *entry;
	return (*entry & -LARGE_PAGE) | (address & (LARGE_PAGE - PAGE_SIZE)) |
	       (*entry & (PAGE_SIZE - 1) & ~PTE_LARGE);
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
		const uint32_t *pte = entry ? walk(space, address) : NULL;

		if (!entry)
			continue;
		REQUIRE(pte, "the TLB remembers 0x%x at 0x%x, where no table is: no flush", entry,
			address);
		uint32_t now = seen_at(pte, address);

		REQUIRE((now ^ entry) >> PAGE_SHIFT == 0 && !(entry & ~now & kept_bits(entry)),
			"the TLB remembers 0x%x at 0x%x, and the entry is 0x%x: no flush", entry,
			address, now);
	}
}

/* ---- accesses ---- */

uint32_t mmu_translate(const struct space *space, uint32_t address, bool write)
{
	uint32_t needed = PTE_PRESENT | PTE_USER | (write ? PTE_WRITE : 0);
	uint32_t old = tlb[address >> PAGE_SHIFT];

	if ((old & needed) == needed && (!write || (old & PTE_DIRTY)))
		return old;
	uint32_t *pte = walk(space, address);

	if (!pte || (*pte & needed) != needed)
		return 0;
	*pte |= PTE_ACCESSED | (write ? PTE_DIRTY : 0);
	remember(address >> PAGE_SHIFT, seen_at(pte, address));
	return tlb[address >> PAGE_SHIFT];
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
		REQUIRE(page->state == PAGE_USED || page->state == PAGE_TAIL,
			"0x%x shows a page that is free", address);
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
