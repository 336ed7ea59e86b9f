/*
 * mm/buddy.c and mm/page_alloc.c against a model that has a byte for each frame.
 *
 * Which blocks are free follows from which frames are: where two buddies are wholly free they are
 * one block. So after each operation the free blocks of each order are counted twice.
 */
#include <stdlib.h>
#include <string.h>

#include "mm/buddy.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"
#include "tests/host/mm/machine.h"
#include "tests/host/mm/shadow/kernel/cpu/interrupts.h"

#define FRAMES 6144u /* of the machine: 24 MiB, so that there are two zones */
#define BLOCKS 2000u

static uint8_t is_free[FRAMES];

/* Handed out. */
static struct block {
	void *pages;
	unsigned order;
} blocks[BLOCKS];
static uint32_t count;

static bool is_free_block(uint32_t frame, unsigned order)
{
	return !memchr(is_free + frame, 0, 1u << order);
}

/* The model's free blocks: the largest ones that are aligned. */
static void count_blocks(uint32_t first, uint32_t end, uint32_t found[ORDERS])
{
	for (uint32_t frame = first; frame < end;) {
		unsigned order = ORDERS - 1;

		if (!is_free[frame]) {
			frame++;
			continue;
		}
		while (frame & ((1u << order) - 1) || !is_free_block(frame, order))
			order--;
		found[order]++;
		frame += 1u << order;
	}
}

static void require_lists(void)
{
	for (const struct zone *zone = zones; zone < zones + ZONES; zone++) {
		uint32_t wanted[ORDERS] = { 0 }, pages = 0;

		count_blocks(zone->first, zone->end, wanted);
		for (unsigned order = 0; order < ORDERS; order++) {
			uint32_t listed = 0;

			for (const struct list *link = zone->lists[order].next;
			     link != &zone->lists[order]; link = link->next)
				listed++;
			REQUIRE(listed == wanted[order], "%s: %u free blocks of order %u, not %u",
				zone->name, listed, order, wanted[order]);
			pages += listed << order;
		}
		REQUIRE(zone->free == pages, "%s: %u pages free, not %u", zone->name, zone->free,
			pages);
	}
}

/* Can the zone give such a block, and leave so much? */
static bool can_give(const struct zone *zone, unsigned order, uint32_t kept)
{
	uint32_t found[ORDERS] = { 0 }, larger = 0;

	count_blocks(zone->first, zone->end, found);
	for (unsigned i = order; i < ORDERS; i++)
		larger += found[i];
	return larger > 0 && zone->free >= kept + (1u << order);
}

static void mark(void *pages, unsigned order, bool free)
{
	uint32_t frame = physical_address(pages) >> PAGE_SHIFT;

	REQUIRE(!memchr(is_free + frame, free, 1u << order), "frame %#x was %s already", frame,
		free ? "free" : "handed out");
	memset(is_free + frame, free, 1u << order);
}

static void take(unsigned order, bool dma, bool urgent)
{
	struct zone *device = &zones[ZONE_DMA], *normal = &zones[ZONE_NORMAL];
	bool possible = dma ? can_give(device, order, urgent ? 0 : device->reserve)
			    : can_give(normal, order, urgent ? 0 : normal->reserve) ||
				  can_give(device, order, urgent ? 0 : 2 * device->reserve);

	machine_interrupts = !urgent;
	void *pages = dma ? page_alloc_dma(order) : page_alloc(order);

	REQUIRE(machine_interrupts == !urgent, "interrupts are not as they were");
	machine_interrupts = true;
	REQUIRE(!!pages == possible, "a block of order %u: %s", order,
		possible ? "refused" : "not refused");
	if (!pages)
		return;
	REQUIRE(physical_address(pages) % (PAGE_SIZE << order) == 0, "%p of order %u", pages,
		order);
	REQUIRE(!dma || physical_address(pages) < 16u << 20, "%p for a device", pages);
	mark(pages, order, false);
	blocks[count++] = (struct block){ pages, order };
}

static void give(uint32_t number)
{
	struct block block = blocks[number];

	blocks[number] = blocks[--count];
	page_free(block.pages, block.order);
	mark(block.pages, block.order, true);
	REQUIRE(*(uint32_t *)block.pages == 0xcccccccc, "no junk in %p", block.pages);
}

static void begin(void)
{
	machine_start_pc(FRAMES >> (20 - PAGE_SHIFT));
	for (uint32_t frame = 0, block = 0; frame < FRAMES; frame++) {
		if (page_array[frame].state != PAGE_TAIL)
			block = frame;
		is_free[frame] = page_array[block].state == PAGE_FREE;
	}
}

/* Phases in which memory fills, and in which it empties. */
static void random_operations(struct random *random, uint32_t rounds)
{
	begin();
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t likely = unit_round / 5000 % 2 ? 4 : 7; /* tenths */
		unsigned order = random_below(random, 1 + random_below(random, ORDERS));

		if (count < BLOCKS && random_below(random, 10) < likely)
			take(order, random_below(random, 8) == 0, random_below(random, 8) == 0);
		else if (count > 0)
			give(random_below(random, count));
		require_lists();
		if (unit_round % 1000 == 0)
			machine_audit();
	}
	while (count > 0)
		give(random_below(random, count));
	require_lists();
	machine_audit();
}

static void swap(uint8_t *a, uint8_t *b)
{
	uint8_t kept = *a;

	*a = *b;
	*b = kept;
}

/* 8 neighbours, freed in all 8! orders, by Heap's algorithm: the same blocks are free in the end.
 */
static void every_order_of_frees(struct random *random, uint32_t rounds)
{
	uint8_t places[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, turn[8] = { 0 };

	(void)random;
	begin();
	for (unsigned i = 0; i < 8; unit_round++) {
		void *pages[8];

		for (unsigned j = 0; j < 8; j++)
			REQUIRE((pages[j] = page_alloc(2)), "no block");
		for (unsigned j = 0; j < 8; j++)
			page_free(pages[places[j]], 2);
		if (unit_round % rounds == 0)
			require_lists();
		for (i = 0; i < 8 && turn[i] >= i; i++)
			turn[i] = 0;
		if (i < 8) {
			swap(&places[i], &places[i % 2 ? turn[i] : 0]);
			turn[i]++;
		}
	}
	REQUIRE(unit_round == 40320, "%u orders", unit_round);
	machine_audit();
}

static struct {
	void *pages;
	unsigned order;
} wrong;

static void free_wrong(void *argument)
{
	(void)argument;
	page_free(wrong.pages, wrong.order);
}

static void require_refused(void *pages, unsigned order, const char *words)
{
	wrong.pages = pages;
	wrong.order = order;
	const char *said = unit_panic_of(free_wrong, NULL);

	REQUIRE(said && strstr(said, words), "%p of order %u: said \"%s\", not \"%s\"", pages,
		order, said ? said : "", words);
	machine_audit();
}

static void refusals(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	begin();
	char *pages = page_alloc(2);

	require_refused(pages, 1, "has another order");
	require_refused(pages, 3, "has another order");
	require_refused(pages + PAGE_SIZE, 0, "is not the first page");
	require_refused(pages + 4, 2, "");
	require_refused(direct_map(0), 0, "was never handed out");
	require_refused(page_array, 0, "was never handed out");
	require_refused(direct_map(FRAMES << PAGE_SHIFT), 0, "is not memory");
	require_refused(NULL, 0, "is not memory");
	page_free(pages, 2);
	require_refused(pages, 2, "is");
}

/* The n-th request fails, and only that one. */
static void failures(struct random *random, uint32_t rounds)
{
	(void)random;
	begin();
	for (unit_round = 1; unit_round <= rounds; unit_round++) {
		allocation_fails_in = unit_round;
		for (uint32_t i = 1; i <= rounds; i++) {
			void *page = i % 2 ? page_alloc(0) : page_alloc_dma(0);

			REQUIRE(!page == (i == unit_round), "request %u", i);
			if (page)
				page_free(page, 0);
		}
		REQUIRE(allocation_fails_in == 0, "%u", allocation_fails_in);
	}
	require_lists();
}

const struct unit_test buddy_tests[] = {
	{ "buddy_random", random_operations },
	{ "buddy_orders_of_frees", every_order_of_frees },
	{ "buddy_refusals", refusals },
	{ "buddy_failures", failures },
	{ NULL, NULL },
};
