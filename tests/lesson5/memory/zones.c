/*
 * Exercises 5.2 and 5.3: a page array and two zones of the test's own, at first without a free
 * block, and the functions of the exercises, called with interrupts enabled or not.
 *
 *	frames	0 - 4095: DMA		4096 - 6143: Normal		48 MiB: the array itself
 */
#include "kernel/report/panic.h"
#include "mm/buddy.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"
#include "tests/lesson4/threads/thread_test.h"

#define BORDER 4096
#define FRAMES 6144
#define ARRAY  direct_map(48u << 20)
#define NONE   0xffffffffu

void two_zones(void);
void give_range(uint32_t zone, uint32_t first, uint32_t count);
uint32_t take(uint32_t zone, uint32_t order);
void give(uint32_t zone, uint32_t frame);
void set_reserves(uint32_t dma, uint32_t normal);
uint32_t ask_for_page(uint32_t order, uint32_t dma, uint32_t enabled);
void ask_with_interrupts(void);
uint32_t free_page(uint32_t address, uint32_t order, uint32_t enabled);
void free_wrongly(uint32_t address, uint32_t order);

void two_zones(void)
{
	char *bytes = ARRAY;

	quiet();
	for (uint32_t i = 0; i < FRAMES * sizeof(struct page); i++)
		bytes[i] = 0;
	page_array = ARRAY;
	page_frames = FRAMES;
	for (uint32_t frame = 0; frame < FRAMES; frame++)
		page_array[frame].order = 3; /* of an earlier life: it says nothing */
	allocation_fails_in = 0;
	buddy_initialize(&zones[ZONE_DMA], "DMA", 0, BORDER);
	buddy_initialize(&zones[ZONE_NORMAL], "Normal", BORDER, FRAMES);
}

void give_range(uint32_t zone, uint32_t first, uint32_t count)
{
	buddy_give_range(&zones[zone], first, count);
}

/* Returns the frame, or NONE. */
uint32_t take(uint32_t zone, uint32_t order)
{
	struct page *page = buddy_take(&zones[zone], order);

	return page ? frame_of(page) : NONE;
}

void give(uint32_t zone, uint32_t frame)
{
	buddy_give(&zones[zone], &page_array[frame]);
}

void set_reserves(uint32_t dma, uint32_t normal)
{
	zones[ZONE_DMA].reserve = dma;
	zones[ZONE_NORMAL].reserve = normal;
}

static void begin(uint32_t enabled)
{
	if (enabled)
		interrupts_enable();
}

/* Whether interrupts are as the question says; disables them. */
static void end(uint32_t enabled)
{
	answer(interrupts_disable() == !!enabled);
}

/* Returns the address, or 0. Answers: was the interrupt flag kept? */
uint32_t ask_for_page(uint32_t order, uint32_t dma, uint32_t enabled)
{
	begin(enabled);
	void *pages = dma ? page_alloc_dma(order) : page_alloc(order);

	end(enabled);
	return (uintptr_t)pages;
}

/* Requests of both kinds, one that falls back, and one in vain. */
void ask_with_interrupts(void)
{
	interrupts_enable();
	page_alloc(0);
	page_alloc_dma(0);
	page_alloc(2);
	page_alloc(ORDERS - 1);
	interrupts_disable();
}

/* Returns the first word of the pages afterwards. Answers as ask_for_page. */
uint32_t free_page(uint32_t address, uint32_t order, uint32_t enabled)
{
	begin(enabled);
	page_free((void *)(uintptr_t)address, order);
	end(enabled);
	return *(uint32_t *)(uintptr_t)address;
}

/* Should not come back. */
void free_wrongly(uint32_t address, uint32_t order)
{
	page_free((void *)(uintptr_t)address, order);
}
