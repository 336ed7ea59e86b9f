/*
 * Exercise 5.2 against a model that has a byte for each frame of the zone Normal: where two buddies
 * are wholly free they are one block. So the free blocks of each order are counted twice.
 *
 * Answers: what is wrong (enum), the round, and two figures.
 */
#include "mm/buddy.h"
#include "mm/zones.h"
#include "tests/lesson4/threads/thread_test.h"

#define FIRST  4096
#define END    6144
#define BLOCKS 300
#define PLACES 8

enum wrong {
	NOTHING,
	REFUSED,
	HANDED_OUT_TWICE,
	NOT_ALIGNED,
	BLOCK_COUNT,
	FREE_COUNT,
	BROKEN_LIST
};

void empty_zone(void);
void random_operations(uint32_t seed, uint32_t rounds);
void prepare_orders(uint32_t order);
void all_orders(uint32_t order, uint32_t most);

static uint8_t is_free[END - FIRST];
static struct zone *const zone = &zones[ZONE_NORMAL];
static struct page *blocks[BLOCKS];
static uint32_t block_count, round_now, random_state;
static bool failed;

static void wrong(enum wrong what, uint32_t seen, uint32_t expected)
{
	if (failed)
		return;
	failed = true;
	answer(what);
	answer(round_now);
	answer(seen);
	answer(expected);
}

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 16) % bound;
}

/* The zone gets all of its frames but one, in pieces. */
void empty_zone(void)
{
	char *bytes = direct_map(48u << 20);

	for (uint32_t i = 0; i < END * sizeof(struct page); i++)
		bytes[i] = 0;
	page_array = (struct page *)bytes;
	page_frames = END;
	buddy_initialize(&zones[ZONE_DMA], "DMA", 0, FIRST);
	buddy_initialize(zone, "Normal", FIRST, END);
	for (uint32_t i = 0; i < END - FIRST; i++)
		is_free[i] = i != 1333;
	buddy_give_range(zone, FIRST, 777);
	buddy_give_range(zone, FIRST + 1334, END - FIRST - 1334);
	buddy_give_range(zone, FIRST + 777, 1333 - 777);
	block_count = 0;
	round_now = 0;
	failed = false;
}

static unsigned order_at(uint32_t frame)
{
	unsigned order = 0;

	while (order < ORDERS - 1 && frame % (2u << order) == 0) {
		for (uint32_t i = frame + (1u << order); i < frame + (2u << order); i++)
			if (!is_free[i])
				return order;
		order++;
	}
	return order;
}

static void check(void)
{
	uint32_t wanted[ORDERS] = { 0 }, pages = 0;

	for (uint32_t frame = 0; frame < END - FIRST;) {
		unsigned order = order_at(frame);

		wanted[order] += is_free[frame];
		pages += is_free[frame] ? 1u << order : 0;
		frame += is_free[frame] ? 1u << order : 1;
	}
	for (unsigned order = 0; order < ORDERS; order++) {
		uint32_t listed = 0;

		for (const struct list *link = zone->lists[order].next;
		     link != &zone->lists[order] && listed <= END; link = link->next)
			listed++;
		if (listed > END)
			wrong(BROKEN_LIST, order, 0);
		if (listed != wanted[order])
			wrong(BLOCK_COUNT, listed, wanted[order]);
	}
	if (zone->free != pages)
		wrong(FREE_COUNT, zone->free, pages);
}

static bool can_give(unsigned wanted)
{
	for (uint32_t frame = 0; frame < END - FIRST; frame += 1u << wanted) {
		uint32_t i = frame;

		while (i < frame + (1u << wanted) && is_free[i])
			i++;
		if (i == frame + (1u << wanted))
			return true;
	}
	return false;
}

static void take(unsigned order)
{
	struct page *page = buddy_take(zone, order);

	if (!!page != can_give(order))
		wrong(REFUSED, !page, page ? order : !order);
	if (!page || failed)
		return;
	uint32_t frame = frame_of(page) - FIRST;

	if (frame >= END - FIRST || frame % (1u << order))
		return wrong(NOT_ALIGNED, frame, order);
	for (uint32_t i = frame; i < frame + (1u << order); i++) {
		if (!is_free[i])
			wrong(HANDED_OUT_TWICE, i, order);
		is_free[i] = 0;
	}
	blocks[block_count++] = page;
}

static void give(uint32_t number)
{
	struct page *page = blocks[number];
	uint32_t frame = frame_of(page) - FIRST;

	for (uint32_t i = frame; i < frame + (1u << page->order); i++)
		is_free[i] = 1;
	blocks[number] = blocks[--block_count];
	buddy_give(zone, page);
}

/* Phases in which memory fills, and in which it empties. */
void random_operations(uint32_t seed, uint32_t rounds)
{
	empty_zone();
	random_state = seed;
	for (round_now = 1; round_now <= rounds && !failed; round_now++) {
		bool fills = round_now / 400 % 2 == 0;

		if (block_count < BLOCKS && random_below(10) < (fills ? 7 : 3))
			take(random_below(1 + random_below(ORDERS)));
		else if (block_count > 0)
			give(random_below(block_count));
		check();
	}
	while (block_count > 0)
		give(block_count - 1);
	check();
	wrong(NOTHING, 0, 0);
}

static void swap(uint8_t *a, uint8_t *b)
{
	uint8_t kept = *a;

	*a = *b;
	*b = kept;
}

static uint8_t places[PLACES], turn[PLACES];

/* One block of 8 neighbours of an order, for all_orders; nothing else is free. */
void prepare_orders(uint32_t order)
{
	empty_zone();
	for (int taken = ORDERS - 1; taken >= 0; taken--)
		while (buddy_take(zone, taken))
			;
	page_array[FIRST].order = order + 3;
	buddy_give(zone, &page_array[FIRST]);
	for (unsigned i = 0; i < PLACES; i++) {
		places[i] = i;
		turn[i] = 0;
	}
}

static bool next_order(void)
{
	unsigned i = 0;

	while (i < PLACES && turn[i] >= i)
		turn[i++] = 0;
	if (i == PLACES)
		return false;
	swap(&places[i], &places[i % 2 ? turn[i] : 0]);
	turn[i]++;
	return true;
}

/* Takes the 8, and frees them in the next order of their 8! (Heap's algorithm): each time one block
 * is free in the end. At most `most` orders; answers how many there were in all, after the last. */
void all_orders(uint32_t order, uint32_t most)
{
	struct page *pages[PLACES];

	for (uint32_t i = 0; i < most && !failed; i++) {
		for (unsigned j = 0; j < PLACES; j++)
			if (!(pages[j] = buddy_take(zone, order)))
				return wrong(REFUSED, 1, 0);
		for (unsigned j = 0; j < PLACES; j++)
			buddy_give(zone, pages[places[j]]);
		round_now++;
		if (zone->lists[order + 3].next != &page_array[FIRST].link)
			wrong(BLOCK_COUNT, 0, 1);
		if (!next_order())
			wrong(NOTHING, 0, 0);
	}
}
