/* Objects of one size, cut from pages. */
#include "mm/pool.h"

#include <stddef.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define JUNK 0xcc

/* Cuts one more page into objects. */
static void grow(struct pool *pool)
{
	uint8_t *page = page_alloc(0);

	if (!page)
		return;
	for (uint32_t at = 0; at + pool->size <= PAGE_SIZE; at += pool->size) {
		*(void **)(page + at) = pool->free;
		pool->free = page + at;
	}
}

void *pool_alloc(struct pool *pool)
{
	bool enabled = interrupts_disable();

	ASSERT(pool->size >= sizeof(void *) && pool->size <= PAGE_SIZE);
	if (!pool->free)
		grow(pool);
	void *object = pool->free;

	if (object) {
		pool->free = *(void **)object;
		pool->used++;
	}
	interrupts_restore(enabled);
	return object ? memset(object, 0, pool->size) : NULL;
}

void pool_free(struct pool *pool, void *object)
{
	bool enabled = interrupts_disable();

	memset(object, JUNK, pool->size);
	*(void **)object = pool->free;
	pool->free = object;
	pool->used--;
	interrupts_restore(enabled);
}
