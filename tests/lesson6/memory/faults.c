/* Exercise 6.3: faults in a space of the test's own, over an object of its own. */
#include "tests/lesson6/memory/spaces.h"

#define OBJECT_PAGES 40u

static struct object {
	struct memory_object memory;
	uint32_t references;
	void *pages[OBJECT_PAGES];
} object;

uint32_t peeks_at_most = OBJECT_PAGES;
static uint32_t no_memory_at = -1; /* for this page of the object there is no memory */
static struct space *others_space; /* while the object is asked, another task maps a page there */
static uint32_t others_address;
static struct {
	struct space *space;
	uint32_t start, end, flags, of, index;
} change;			      /* or it changes its areas */
static uint32_t references_meanwhile; /* of the object, after that */

static void change_areas(void);

/* Answers which page it is asked for, and whether that is to be written to. */
static int object_page(struct memory_object *memory, uint32_t index, bool write, struct page **page)
{
	void *address = index < OBJECT_PAGES ? ((struct object *)memory)->pages[index] : NULL;

	answer(index);
	answer(write);
	if (change.space)
		change_areas();
	if (others_space)
		map_page(others_space, others_address, 1);
	others_space = NULL;
	if (!address)
		return index == no_memory_at ? -ENOMEM : -EIO;
	*page = page_of(address);
	page_hold(*page);
	return 0;
}

static void *const *object_peek(struct memory_object *memory, uint32_t index, uint32_t *count)
{
	if (index >= OBJECT_PAGES)
		return NULL;
	*count = OBJECT_PAGES - index < peeks_at_most ? OBJECT_PAGES - index : peeks_at_most;
	return &((struct object *)memory)->pages[index];
}

static void object_hold(struct memory_object *memory)
{
	((struct object *)memory)->references++;
}

static void object_release(struct memory_object *memory)
{
	((struct object *)memory)->references--;
}

static const struct memory_object_ops object_ops = {
	.page = object_page, .peek = object_peek, .hold = object_hold, .release = object_release
};
static const struct memory_object_ops ops_without_peek = { .page = object_page,
							   .hold = object_hold,
							   .release = object_release };

/* A space without areas, and an object of which every page is in memory: its words are 0x1000 and
 * its number. */
struct space *begin_faults(uint32_t with_peek)
{
	object_initialize(&object.memory, with_peek ? &object_ops : &ops_without_peek);
	object.references = 0;
	for (uint32_t i = 0; i < OBJECT_PAGES; i++)
		if (!object.pages[i])
			object.pages[i] = new_page(0x1000 + i);
	return empty_space();
}

int put_area(struct space *space, uint32_t start, uint32_t end, uint32_t flags, uint32_t of,
	     uint32_t index)
{
	const struct area form = { .flags = flags,
				   .object = of ? &object.memory : NULL,
				   .index = index };

	return area_put(space, start, end, &form);
}

/* The address of a page of the object. */
void *object_address(uint32_t index)
{
	return object.pages[index];
}

/* A page of the object is not in memory any more, and cannot be had: it cannot be read, or there is
 * no memory for it. */
void lose_page(uint32_t index, uint32_t no_memory)
{
	object.pages[index] = NULL;
	if (no_memory)
		no_memory_at = index;
}

/* Another task of the space is faster, the next time that the object is asked. */
void be_faster(struct space *space, uint32_t address)
{
	others_space = space;
	others_address = address;
}

/* Another task of the space changes the areas of a range, the next time that the object is asked:
 * it puts one there, as put_area does; or (`flags` 0) takes all away; or (`of` 2) changes the
 * rights alone. */
void be_changed(struct space *space, uint32_t start, uint32_t end, uint32_t flags, uint32_t of,
		uint32_t index)
{
	change.space = space;
	change.start = start;
	change.end = end;
	change.flags = flags;
	change.of = of;
	change.index = index;
}

static void change_areas(void)
{
	if (change.of == 2)
		area_protect(change.space, change.start, change.end, change.flags);
	else if (change.flags)
		put_area(change.space, change.start, change.end, change.flags, change.of,
			 change.index);
	else
		area_cut(change.space, change.start, change.end);
	change.space = NULL;
	references_meanwhile = object.references;
}

/* References of the object: while it was asked, after the change; and now. */
uint32_t object_references(uint32_t now)
{
	return now ? object.references : references_meanwhile;
}

/* An entry changes as if the processor or another exercise had changed it. */
void change_entry(struct space *space, uint32_t address, uint32_t value)
{
	*pte_of(space, address, false) = value;
}

/* The next `count` pages that are handed out are full of junk. */
void spill_junk(uint32_t count)
{
	static uint32_t *pages[64];

	for (uint32_t i = 0; i < count; i++)
		pages[i] = new_page(0xa5a5a5a5);
	while (count > 0)
		page_free(pages[--count], 0);
}

/* How many words of a page are not `word`. */
uint32_t count_others(const uint32_t *page, uint32_t word)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < PAGE_SIZE / sizeof(word); i++)
		found += page[i] != word;
	return found;
}
