/* Pools whose objects come from kmalloc: from lesson 5 on each has an owner and red zones, and goes
 * through the quarantine when it is freed.
 */
#include "mm/pool.h"

#include "kernel/lib/string.h"
#include "mm/kmalloc.h"

void *pool_alloc(struct pool *pool)
{
	void *object = kmalloc(pool->size);

	if (!object)
		return NULL;
	__atomic_add_fetch(&pool->used, 1, __ATOMIC_RELAXED); /* interrupts allocate, too */
	return memset(object, 0, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	__atomic_sub_fetch(&pool->used, 1, __ATOMIC_RELAXED);
	kfree(object);
}
