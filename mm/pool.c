/*
 * Objects of one size, cut from pages.
 *
 * A free object's first word points to the next free one, so the list costs no memory:
 *
 *	pool->free --> page + 192 --> page + 128 --> page + 64 --> page --> NULL	(size 64)
 *
 * Allocation takes the first, freeing puts it back in front: both are a few instructions, with
 * interrupts disabled, and the object freed last is the next one used, while it is still in the
 * processor's cache. Pages are never given back.
 *
 * Freed objects are filled with junk: a use after free reads 0xcccccccc, which is easy to recognize
 * in a report. Any context.
 */
#include "mm/pool.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define JUNK 0xcc

/* Cuts one more page into objects. Interrupts are disabled. Without memory the list stays empty,
 * and the caller returns NULL. */
static void grow_pool(struct pool *pool)
{
	uint8_t *page = page_alloc(0);

	if (!page)
		return;
	for (uint32_t at = 0; at + pool->size <= PAGE_SIZE; at += pool->size) {
		*(void **)(page + at) = pool->free;
		pool->free = page + at;
	}
}

/* Zeroed with interrupts enabled again: the object belongs to the caller by then. */
void *pool_alloc(struct pool *pool)
{
	bool enabled = interrupts_disable();

	ASSERT(pool->size >= sizeof(void *) && pool->size <= PAGE_SIZE);
	if (!pool->free)
		grow_pool(pool);
	void *object = pool->free;

	if (object) {
		pool->free = *(void **)object;
		pool->used++;
	}
	interrupts_restore(enabled);
	return object ? memset(object, 0, pool->size) : NULL;
}

/* The junk comes first: the link of the list overwrites its first word. */
void pool_free(struct pool *pool, void *object)
{
	bool enabled = interrupts_disable();

	memset(object, JUNK, pool->size);
	*(void **)object = pool->free;
	pool->free = object;
	pool->used--;
	interrupts_restore(enabled);
}
