/*
 * kmalloc that tells on those who misuse it.
 *
 *	object of kmalloc.c	| struct guard ... red | size bytes for the caller | red | ...
 *						       ^ what kmalloc returns
 *
 * A write before or beyond an object hits a red zone, which is looked at when the object is freed.
 * A write to a freed object hits poison: the KMALLOC_QUARANTINE objects that were freed last are
 * kept from being used again, and their poison is looked at when they leave. The guard names the
 * function that asked for the object, the one that freed it, and which allocation it was; all
 * objects that are handed out are in one list, for the report of leaks (labs/lesson5/reports.c).
 *
 * It is between the callers and the functions of kmalloc.c, whose pointers it replaces once, at
 * boot. Any context: interrupts are disabled while the list and the quarantine change.
 */
#include "mm/kmalloc_debug.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "kernel/report/symbols.h"
#include "mm/kmalloc.h"
#include "mm/pool.h"
#include "mm/slab.h"
#include "mm/zones.h"

#define RED	    0xbb
#define POISON	    0x6b
#define SYMBOL_TEXT 80

static void *(*plain_alloc)(uint32_t size);
static void (*plain_free)(void *object);

struct list kmalloc_live = LIST_EMPTY(kmalloc_live);
uint32_t kmalloc_allocations;

static struct guard *quarantine[KMALLOC_QUARANTINE];
static uint32_t oldest; /* the place in the quarantine to be used next */

/* The code that called kmalloc or kfree, given the frame of the function in their place: an
 * address in it. Functions that only forward a request are skipped. */
static uint32_t caller(const uint32_t *frame)
{
	static const void *const passing_on[] = { pool_alloc, pool_free, krealloc };
	uint32_t function = symbol_start(frame[1]);

	for (unsigned i = 0; i < sizeof(passing_on) / sizeof(passing_on[0]); i++)
		if (function == (uintptr_t)passing_on[i])
			return ((const uint32_t *)(uintptr_t)frame[0])[1];
	return frame[1];
}

/* Ends the run, and says what was done to byte `offset` of the object. */
static void __attribute__((noreturn)) accuse(const struct guard *guard, const char *what,
					     int32_t offset)
{
	char owner[SYMBOL_TEXT], freer[SYMBOL_TEXT] = "nobody";

	symbol_describe(guard->owner, owner, sizeof(owner));
	if (guard->freer)
		symbol_describe(guard->freer, freer, sizeof(freer));
	panic("kmalloc: %s, at byte %d of an object of %u\n\tallocated by %s\n\tfreed by %s", what,
	      offset, guard->size, owner, freer);
}

/* EXERCISE 5.5 (kmalloc that tells on you, part 2): the checks of mm/kmalloc_debug.h.

   kmalloc_checked, kfree_checked and size_checked take the place of kmalloc, kfree and
   kmalloc_size. accuse(guard, "...", offset) ends the run. allocation_fails() (mm/zones.h) is asked
   once for each kmalloc_checked; plain_alloc and plain_free are kmalloc.c's functions. The caller
   is caller(__builtin_frame_address(0)), in kmalloc_checked and kfree_checked themselves.

   Pitfalls: an overrun by one byte; a red zone need not be aligned. Sizes whose sum with the guard
   wraps. kfree_checked may get anything: NULL, an address inside an object, one that kmalloc never
   returned, one in memory that is not cut into objects; it must find that out before it trusts a
   guard. An object in quarantine is not handed out again, and its guard is still whole. An
   interrupt may call kmalloc_debug_check at any instruction: what it finds is whole by then. */
/* SOLUTION 5.5 { */
/* Looks at bytes that nobody should have written; `offset` is where they begin, in the object. */
static void check(const struct guard *guard, int32_t offset, uint32_t length, uint8_t value,
		  const char *what)
{
	const uint8_t *object = (const uint8_t *)(guard + 1);

	for (int32_t end = offset + length; offset < end; offset++)
		if (object[offset] != value)
			accuse(guard, what, offset);
}

static void check_guard(const struct guard *guard)
{
	check(guard, -GUARD_RED, GUARD_RED, RED, "written before the object");
	check(guard, guard->size, GUARD_RED, RED, "written beyond the object");
	if (guard->freer)
		check(guard, 0, guard->size, POISON, "written after it was freed");
}

static void *kmalloc_checked(uint32_t size)
{
	bool enabled = interrupts_disable(), fails = allocation_fails();

	interrupts_restore(enabled);
	struct guard *guard = NULL;

	if (!fails && size <= KMALLOC_LARGEST)
		guard = plain_alloc(sizeof(*guard) + size + GUARD_RED);
	if (!guard)
		return NULL;
	*guard = (struct guard){ .size = size, .owner = caller(__builtin_frame_address(0)) };
	memset(guard->red, RED, GUARD_RED);
	memset((char *)(guard + 1) + size, RED, GUARD_RED);
	interrupts_disable();
	guard->serial = kmalloc_allocations++;
	list_append(&kmalloc_live, &guard->link);
	interrupts_restore(enabled);
	return guard + 1;
}

/* The guard of an object that may be freed. */
static struct guard *guard_of(void *object)
{
	const struct page *page = page_at(object);
	struct slab *slab = slab_of(object);
	struct guard *guard = NULL;

	if (slab)
		guard = slab_object(slab, object);
	else if (page && page->state == PAGE_USED)
		guard = page_address(page);
	if (!guard)
		panic("kfree: the address is in no object of kmalloc's, or it was freed long ago");
	check_guard(guard);
	if (guard->freer)
		accuse(guard, "freed twice", 0);
	if (object != guard + 1)
		accuse(guard, "kfree inside the object", (char *)object - (char *)(guard + 1));
	return guard;
}

static void kfree_checked(void *object)
{
	if (!object)
		return;
	struct guard *guard = guard_of(object);

	memset(object, POISON, guard->size);
	bool enabled = interrupts_disable();
	struct guard *leaving = quarantine[oldest];

	guard->freer = caller(__builtin_frame_address(0));
	list_remove(&guard->link);
	quarantine[oldest] = guard;
	oldest = (oldest + 1) % KMALLOC_QUARANTINE;
	interrupts_restore(enabled);
	if (leaving) {
		check_guard(leaving);
		plain_free(leaving);
	}
}

static uint32_t size_checked(const void *object)
{
	return ((const struct guard *)object - 1)->size;
}

void kmalloc_debug_check(void)
{
	bool enabled = interrupts_disable();

	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		check_guard(list_entry(link, struct guard, link));
	for (unsigned i = 0; i < KMALLOC_QUARANTINE; i++)
		if (quarantine[i])
			check_guard(quarantine[i]);
	interrupts_restore(enabled);
}
/* } SOLUTION 5.5 */

void kmalloc_debug_enable(void)
{
	plain_alloc = kmalloc;
	plain_free = kfree;
	kmalloc = kmalloc_checked;
	kfree = kfree_checked;
	kmalloc_size = size_checked;
}
