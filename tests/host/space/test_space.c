/*
 * Address spaces against a naive model: for each page an entry in an array that says what a program
 * must find there.
 *
 * Random mappings, cuts, protections, forks, ends and accesses, in four spaces over three objects,
 * of which the last is a page cache; the spaces' areas are compared with the model after each
 * operation, and the accesses go through page tables and a TLB that forgets nothing by itself.
 * Allocations may fail: then nothing has changed. Each may give pages of the cache back first; and
 * while the cache reads a page, which sleeps in the kernel, another task reads the same one.
 * After each operation the TLB remembers nothing that is not so, and the account of memory closes:
 * each frame has one owner, or as many references as there are entries that show it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/cpu/paging.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"
#include "mm/page_cache.h"
#include "mm/page_table.h"
#include "mm/reverse_map.h"
#include "mm/area.h"
#include "mm/space_layout.h"
#include "tests/host/space/account.h"
#include "tests/host/space/mmu.h"
#include "tests/host/space/test_large.h"
#include "tests/host/space/test_tables.h"
#include "tests/host/unit.h"

#define PAGES	     256u
#define BASE	     (0x40400000u - PAGES / 2 * PAGE_SIZE) /* across the border of two tables */
#define SPACES	     4
#define OBJECTS	     3
#define OBJECT_PAGES 64u
#define STACK	     (4 * PAGE_SIZE)
#define CACHED	     (OBJECTS - 1) /* the object that is a page cache */
#define NOBODY	     OBJECTS	   /* zeros */

struct model_page {
	bool is_mapped, is_shared, is_own;
	uint8_t protection, object;
	uint32_t index, value;
};

struct object {
	struct memory_object memory;
	int references;
	void *pages[OBJECT_PAGES];
};

struct task *current; /* no task has faults here */

static struct object objects[OBJECTS];
static struct page_cache cache;
static uint32_t disk[OBJECT_PAGES]; /* what the cache reads and writes back */
static struct random accident;
static unsigned in_use; /* the space that is loaded */
static uint32_t object_values[OBJECTS][OBJECT_PAGES];
static struct space *spaces[SPACES];
static struct model_page models[SPACES][PAGES];

/* ---- objects ---- */

#include "tests/host/space/objects.h"

static void make_objects(struct random *random)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		object_initialize(&objects[i].memory, &object_ops);
		for (unsigned page = 0; page < OBJECT_PAGES; page++) {
			objects[i].pages[page] = page_alloc(0);
			object_values[i][page] = random_next(random);
			*(uint32_t *)objects[i].pages[page] = object_values[i][page];
		}
	}
	page_cache_initialize(&cache, &cache_ops);
	memcpy(disk, object_values[CACHED], sizeof(disk));
	accident = *random;
	mmu_reclaim = give_back;
}

/* ---- the model ---- */

static uint32_t model_value(const struct model_page *page)
{
	if (page->is_own)
		return page->value;
	return page->object == NOBODY ? 0 : object_values[page->object][page->index];
}

static void check_area(const struct area *area, const struct model_page *model)
{
	uint32_t first = (area_start(area) - BASE) / PAGE_SIZE,
		 end = (area->end - BASE) / PAGE_SIZE;

	for (uint32_t page = first; page < end; page++) {
		const struct model_page *wanted = &model[page];
		uint32_t at = BASE + page * PAGE_SIZE;
		unsigned object = number_of(area->object);

		REQUIRE(wanted->is_mapped, "0x%x is in an area", at);
		REQUIRE((area->flags & SPACE_PROTECTION) == wanted->protection &&
			    !(area->flags & AREA_SHARED) == !wanted->is_shared,
			"0x%x has flags 0x%x", at, area->flags);
		REQUIRE(object == wanted->object, "0x%x has object %u", at, object);
		REQUIRE(object == NOBODY || area_index(area, at) == wanted->index,
			"0x%x has page %u of its object and not %u", at, area_index(area, at),
			wanted->index);
	}
}

static bool is_one(const struct area *lower, const struct area *upper)
{
	return lower->end == area_start(upper) &&
	       ((lower->flags ^ upper->flags) & ~AREA_COPIED) == 0 &&
	       lower->object == upper->object &&
	       (!lower->object || area_index(lower, lower->end) == upper->index);
}

/* The naive search: the model's page says whether there is an area at an address. */
static void check_find(struct random *random, const struct space *space,
		       const struct model_page *model)
{
	uint32_t page = random_below(random, PAGES), next = page;
	uint32_t at = BASE + page * PAGE_SIZE + random_below(random, PAGE_SIZE);
	const struct area *found = area_find(space, at), *from = area_from(space, at);

	REQUIRE(!!found == model[page].is_mapped, "area_find at 0x%x", at);
	while (next < PAGES && !model[next].is_mapped)
		next++;
	uint32_t wanted = BASE + next * PAGE_SIZE;

	if (next == PAGES)
		REQUIRE(from && area_start(from) > wanted, "area_from at 0x%x: not the stack", at);
	else
		REQUIRE(from && area_start(from) <= wanted && from->end > wanted,
			"area_from at 0x%x is not the area of 0x%x", at, wanted);
}

static void check_space(const struct space *space, const struct model_page *model)
{
	uint32_t mapped = 0, size = 0;
	const struct area *area = area_from(space, BASE), *before = NULL;

	for (; area && area_start(area) < BASE + PAGES * PAGE_SIZE;
	     before = area, area = area_from(space, area->end)) {
		REQUIRE(area->space == space, "an area of another space");
		REQUIRE(!before || before->end <= area_start(area), "areas overlap");
		REQUIRE(!before || !is_one(before, area), "two areas could be one at 0x%x",
			area_start(area));
		check_area(area, model);
		size += area->end - area_start(area);
	}
	for (uint32_t page = 0; page < PAGES; page++)
		mapped += model[page].is_mapped;
	REQUIRE(size == mapped * PAGE_SIZE, "%u pages in areas and not %u", size / PAGE_SIZE,
		mapped);
	REQUIRE(space->size == size + STACK, "the space says that it has %u bytes", space->size);
}

/* ---- operations ---- */

struct range {
	uint32_t first, count;
};

static struct range random_range(struct random *random)
{
	uint32_t first = random_below(random, PAGES);
	uint32_t most = PAGES - first < 40 ? PAGES - first : 40;

	return (struct range){ first, 1 + random_below(random, most) };
}

static uint32_t start_of(struct range range)
{
	return BASE + range.first * PAGE_SIZE;
}

static uint32_t end_of(struct range range)
{
	return start_of(range) + range.count * PAGE_SIZE;
}

static void put(struct random *random, unsigned number)
{
	struct range range = random_range(random);
	unsigned object = random_below(random, 2) ? NOBODY : random_below(random, OBJECTS);
	bool shared = object != NOBODY && random_below(random, 2);
	struct area form = {
		.flags = random_below(random, 4) * 2 % 8 | 1 | (shared ? AREA_SHARED : 0),
		.object = memory_of(object),
	};

	form.flags &= ~4u;
	if (object != NOBODY) {
		if (range.count > OBJECT_PAGES)
			range.count = OBJECT_PAGES;
		form.index = random_below(random, OBJECT_PAGES - range.count + 1);
		if (random_below(random, 2)) /* likely to continue a neighbour */
			form.index = range.first % (OBJECT_PAGES - range.count + 1);
	}
	if (area_put(spaces[number], start_of(range), end_of(range), &form) != 0)
		return;
	for (uint32_t i = 0; i < range.count; i++)
		models[number][range.first + i] = (struct model_page){
			.is_mapped = true,
			.is_shared = shared,
			.protection = form.flags & SPACE_PROTECTION,
			.object = object,
			.index = form.index + i,
		};
}

static void cut(struct random *random, unsigned number)
{
	struct range range = random_range(random);

	if (area_cut(spaces[number], start_of(range), end_of(range)) == 0)
		memset(&models[number][range.first], 0, range.count * sizeof(struct model_page));
}

static void protect(struct random *random, unsigned number)
{
	struct range range = random_range(random);
	uint32_t protection = random_below(random, 4);

	for (uint32_t i = 0; i < range.count; i++)
		if (!models[number][range.first + i].is_mapped)
			range.count = i;
	if (range.count == 0 ||
	    area_protect(spaces[number], start_of(range), end_of(range), protection) != 0)
		return;
	for (uint32_t i = 0; i < range.count; i++)
		models[number][range.first + i].protection = protection;
}

static void access(struct random *random, unsigned number)
{
	struct model_page *page = &models[number][random_below(random, PAGES)];
	uint32_t address = BASE + (page - models[number]) * PAGE_SIZE, value = random_next(random);
	bool write = random_below(random, 2), done;
	int error = 0, wanted = 0;

	if (!page->is_mapped)
		wanted = -EFAULT;
	else if (!(page->protection & (write ? SPACE_WRITE : SPACE_PROTECTION)))
		wanted = -EACCES;
	if (write)
		done = mmu_write(spaces[number], address, value, &error);
	else
		done = mmu_read(spaces[number], address, &value, &error);
	if (error == -ENOMEM && mmu_fails_one_in)
		return;
	REQUIRE(error == wanted, "%s at 0x%x: %d and not %d", write ? "writing" : "reading",
		address, error, wanted);
	if (done && write && page->is_shared)
		object_values[page->object][page->index] = value;
	else if (done && write)
		page->is_own = true, page->value = value;
	else if (done)
		REQUIRE(value == model_value(page), "0x%x has 0x%x and not 0x%x", address, value,
			model_value(page));
}

static void load(unsigned number)
{
	uint32_t directory = physical_address(spaces[number]->directory);

	in_use = number;
	if (paging_directory() != directory)
		paging_use(directory);
}

static void copy(struct random *random, unsigned number)
{
	unsigned other = random_below(random, SPACES);

	if (spaces[other] || !(spaces[other] = space_copy(spaces[number])))
		return;
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

/* A file is cut: its pages go from every space, with the copies of them. */
static void cut_object(struct random *random)
{
	unsigned object = random_below(random, OBJECTS);
	uint32_t first = random_below(random, OBJECT_PAGES);
	uint32_t end = first + 1 + random_below(random, OBJECT_PAGES - first);

	object_unmap(memory_of(object), first, end);
	for (struct model_page *page = models[0]; page < models[0] + SPACES * PAGES; page++)
		if (page->is_mapped && page->object == object && page->index >= first &&
		    page->index < end)
			page->is_own = false;
}

/* There is one page for each number. */
static void check_cache(void)
{
	bool is_there[OBJECT_PAGES] = { false };

	for (struct list *link = page_cache_ring.next; link != &page_cache_ring;
	     link = link->next) {
		uint32_t index = list_entry(link, struct cached_page, in_ring)->node.key;

		REQUIRE(!is_there[index], "two pages of the cache have number %u", index);
		is_there[index] = true;
	}
}

/* Some of the cache's pages are written back; no page may be written to after that without a fault,
 * or the next write would be lost when the page is given back. */
static void sync(struct random *random)
{
	uint32_t first = random_below(random, OBJECT_PAGES);

	page_cache_sync(&cache, first, first + 1 + random_below(random, 8));
	page_cache_reclaim(random_below(random, 8));
	check_cache();
}

/* What write-back and reclaim ask of the reverse map: the page loses its dirty, or its accessed
 * bit, in every space. The count is that of the entries that show it. */
static void look_at_object(struct random *random)
{
	struct object *object = &objects[random_below(random, CACHED)];
	uint32_t index = random_below(random, OBJECT_PAGES);
	const struct page *page = page_of(object->pages[index]);
	bool was_used;

	if (random_below(random, 2)) {
		object_clean(&object->memory, index, page);
		return;
	}
	uint32_t shown = object_shown(&object->memory, index, page, &was_used);

	REQUIRE(shown == page->references - 1, "page %u is shown %u times, and counts %u", index,
		shown, page->references - 1);
	object_shown(&object->memory, index, page, &was_used);
	REQUIRE(!was_used, "page %u was used, and nobody has", index);
}

static void check_gap(struct random *random, unsigned number)
{
	uint32_t count = 1 + random_below(random, 20), run = 0, page;
	uint32_t found =
	    area_gap(spaces[number], BASE, BASE + PAGES * PAGE_SIZE, count * PAGE_SIZE);

	for (page = PAGES; page > 0 && run < count; page--)
		run = models[number][page - 1].is_mapped ? 0 : run + 1;
	REQUIRE(found == (run == count ? BASE + page * PAGE_SIZE : 0),
		"the highest gap of %u pages is at 0x%x", count, found);
}

/* Every frame has its owner, and the pools have as many objects as there are areas and spaces. */
static void check_account(void)
{
	uint32_t expected = 0;

	account_begin();
	for (unsigned i = 0; i < OBJECTS; i++)
		for (unsigned page = 0; page < OBJECT_PAGES; page++)
			account_hold(page_of(objects[i].pages[page]));
	for (struct list *link = page_cache_ring.next; link != &page_cache_ring;
	     link = link->next) {
		account_hold(list_entry(link, struct cached_page, in_ring)->page);
		expected++;
	}
	for (unsigned number = 0; number < SPACES; number++) {
		if (!spaces[number])
			continue;
		account_space(spaces[number]);
		expected++;
		for (const struct area *area = area_from(spaces[number], 0); area;
		     area = area_from(spaces[number], area->end))
			expected++;
	}
	account_end(unit_round % 64 == 0);
	REQUIRE(mmu_objects() == expected, "%u objects of pools are in use, and there are %u",
		mmu_objects(), expected);
}

static void step(struct random *random)
{
	static unsigned number; /* for a while the same, so that the TLB has something to forget */
	unsigned what = random_below(random, 100);

	if (random_below(random, 20) == 0)
		number = random_below(random, SPACES);
	if (!spaces[number] && !(spaces[number] = space_create()))
		return;
	load(number);
	if (what < 15)
		put(random, number);
	else if (what < 25)
		cut(random, number);
	else if (what < 35)
		protect(random, number);
	else if (what < 40)
		copy(random, number);
	else if (what < 43)
		destroy(number);
	else if (what < 44)
		cut_object(random);
	else if (what < 47)
		sync(random);
	else if (what < 48)
		look_at_object(random);
	else if (what < 51)
		check_gap(random, number);
	else
		access(random, number);
	for (unsigned each = 0; each < SPACES; each++)
		if (spaces[each] && (each == number || unit_round % 64 == 0))
			check_space(spaces[each], models[each]);
	if (spaces[number]) {
		check_find(random, spaces[number], models[number]);
		mmu_check_tlb(spaces[number]);
	}
	check_account();
}

static void space_random(struct random *random, uint32_t rounds)
{
	static uint8_t shared[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

	mmu_initialize();
	space_share(shared);
	make_objects(random);
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
	page_cache_cut(&cache, 0);
	REQUIRE(cache.references == 1, "the cache has %u references", cache.references);
	REQUIRE(mmu_free() == free, "%u pages of %u are free at the end", mmu_free(), free);
	REQUIRE(mmu_objects() == 0, "%u objects are left", mmu_objects());
	for (unsigned i = 0; i < OBJECTS; i++)
		REQUIRE(objects[i].references == 0, "object %u has %d references", i,
			objects[i].references);
}

int main(int count, char **words)
{
	static const struct unit_test tests[] = { { "space_random", space_random },
						  { "table_random", table_random },
						  { "large_random", large_random } };
	struct random random = { count > 2 ? strtoull(words[2], NULL, 0) : 1 };

	for (unsigned i = 0; count > 3 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(words[1], tests[i].name) == 0)
			tests[i].run(&random, strtoul(words[3], NULL, 0));
	return 0;
}

/* ---- what the kernel's files call ---- */

uint32_t unit_round;

void unit_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("%s:%d: round %u: ", file, line, unit_round);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(EXIT_FAILURE);
}
