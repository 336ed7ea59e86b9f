/*
 * Exercise 6.2: areas of a space of the test's own, over objects of its own; and operations that
 * the test has written down, one after the other, each with what the space looks like afterwards.
 */
#include "tests/lesson6/memory/spaces.h"

#include "kernel/lib/string.h"
#include "mm/kmalloc.h"
#include "mm/pool.h"

#define OBJECTS	   3
#define OPERATIONS 400
#define WINDOW	   256u /* pages */
#define MOST_AREAS 1000u
#define FNV	   16777619u

enum { PUT, CUT, PROTECT, TOUCH, FIND, FROM, GAP };

struct operation {
	uint32_t what, start, end, flags, object, index, fails;
};

struct operation operations[OPERATIONS]; /* from the test */
struct operation meanwhile;		 /* another thread's, while an object is released */
uint32_t fails_in;			 /* the n-th pool_alloc from now on fails; 0: none */
static int areas_out;
static uint32_t window;

/* ---- memory for areas ---- */

void *own_pool_alloc(struct pool *pool)
{
	if (fails_in > 0 && --fails_in == 0)
		return NULL;
	void *object = kmalloc(pool->size);

	areas_out++;
	return object ? memset(object, 0, pool->size) : NULL;
}

void own_pool_free(struct pool *pool, void *object)
{
	areas_out--;
	memset(object, 0xcc, pool->size);
	kfree(object);
}

int count_out(void)
{
	return areas_out;
}

/* ---- objects ---- */

static struct object {
	struct memory_object memory;
	uint32_t references;
} objects[OBJECTS];

static void object_hold(struct memory_object *memory)
{
	((struct object *)memory)->references++;
}

static struct space *whole; /* the space of begin_areas */
static uint32_t perform(struct space *space, const struct operation *each);

/* The last reference goes: that may sleep. */
static void object_release(struct memory_object *memory)
{
	struct operation each = meanwhile;

	if (--((struct object *)memory)->references > 0 || each.end == 0)
		return;
	meanwhile.end = 0;
	perform(whole, &each);
}

static const struct memory_object_ops object_ops = { .hold = object_hold,
						     .release = object_release };

/* A space, and objects that no area has; `at` is the first page of what is looked at. */
struct space *begin_areas(uint32_t at)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		object_initialize(&objects[i].memory, &object_ops);
		objects[i].references = 0;
	}
	areas_out = 0;
	fails_in = 0;
	window = at;
	return whole = empty_space();
}

/* Object 0 is none, 1 is the first one. */
struct memory_object *object_at(uint32_t number)
{
	return number > 0 ? &objects[number - 1].memory : NULL;
}

uint32_t references_of(uint32_t number)
{
	return objects[number - 1].references;
}

int put_area(struct space *space, uint32_t start, uint32_t end, uint32_t flags, uint32_t object,
	     uint32_t index)
{
	const struct area form = { .flags = flags, .object = object_at(object), .index = index };

	return area_put(space, start, end, &form);
}

/* ---- what a space looks like ---- */

static uint32_t digest;
static uint32_t seen_areas, seen_bytes;
static uint32_t seen_objects[OBJECTS + 1];

static void mix(uint32_t word)
{
	digest = (digest ^ word) * FNV;
}

static void mix_area(const struct area *area, struct space *space)
{
	uint32_t number = area->object ? (struct object *)area->object - objects + 1 : 0;

	seen_areas++;
	seen_bytes += area->end - area->node.key;
	seen_objects[number <= OBJECTS ? number : 0]++;
	mix(area->node.key);
	mix(area->end);
	mix(area->flags);
	mix(number);
	mix(number > 0 ? area->index : 0);
	mix(area->space == space);
}

static void mix_tree(const struct tree_node *node, struct space *space, uint32_t depth)
{
	if (!node || depth > 100 || seen_areas > MOST_AREAS)
		return;
	mix_tree(node->left, space, depth + 1);
	mix_area((const struct area *)node, space);
	mix_tree(node->right, space, depth + 1);
}

static uint32_t length_of(const struct list *head)
{
	const struct list *link = head->next;
	uint32_t count = 0;

	for (; link != head && count < MOST_AREAS; link = link->next)
		count++;
	return count;
}

/* Does what is counted agree with what is there? */
static bool is_counted(const struct space *space)
{
	bool right = seen_bytes == space->size && (int)seen_areas == areas_out;

	for (unsigned i = 0; i < OBJECTS; i++)
		right = right && objects[i].references == seen_objects[i + 1] &&
			length_of(&objects[i].memory.areas) == seen_objects[i + 1];
	return right;
}

/* For each page of the window: is there an entry, writable, present? */
static void mix_entries(const struct space *space)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		uint32_t address = window + i * PAGE_SIZE;
		uint32_t table = space->directory[address >> LARGE_SHIFT];
		uint32_t entry = 0;

		if (table)
			entry = ((uint32_t *)direct_map(table &
							-PAGE_SIZE))[address >> PAGE_SHIFT & 1023];
		mix(entry ? 4 | (entry & (PTE_PRESENT | PTE_WRITE)) : 0);
	}
}

static void answer_look(struct space *space)
{
	digest = seen_areas = seen_bytes = 0;
	memset(seen_objects, 0, sizeof(seen_objects));
	mix_tree(space->areas, space, 0);
	mix_entries(space);
	answer(digest);
	answer(is_counted(space));
}

/* ---- operations ---- */

static uint32_t start_of(const struct area *area)
{
	return area ? area_start(area) : 0;
}

static uint32_t perform(struct space *space, const struct operation *each)
{
	switch (each->what) {
	case PUT:
		return put_area(space, each->start, each->end, each->flags, each->object,
				each->index);
	case CUT:
		return area_cut(space, each->start, each->end);
	case PROTECT:
		return area_protect(space, each->start, each->end, each->flags);
	case TOUCH:
		return map_page(space, each->start, each->flags & SPACE_WRITE) != 0;
	case FIND:
		return start_of(area_find(space, each->start));
	case FROM:
		return start_of(area_from(space, each->start));
	default:
		return area_gap(space, each->start, each->end, each->index);
	}
}

/* Answers for each of the operations what it returned, and two words of answer_look. */
void perform_all(struct space *space, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		fails_in = operations[i].fails;
		answer(perform(space, &operations[i]));
		fails_in = 0;
		answer_look(space);
	}
}
