/* Pools whose objects are kmalloc's: from lesson 5 on each has an owner, red zones, a quarantine.
 */
#include "mm/pool.h"

#include <stddef.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "mm/kmalloc.h"

void *pool_alloc(struct pool *pool)
{
	void *object = kmalloc(pool->size);

	if (!object)
		return NULL;
	bool enabled = interrupts_disable();

	pool->used++;
	interrupts_restore(enabled);
	return memset(object, 0, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	bool enabled = interrupts_disable();

	pool->used--;
	interrupts_restore(enabled);
	kfree(object);
}
