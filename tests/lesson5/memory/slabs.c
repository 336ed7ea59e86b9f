/* Caches of slabs, for the visible tests. */
#include "tests/lesson5/memory/slabs.h"

/* Takes two slabs full of objects, gives all back, and takes them again. Answers how many objects
 * are in a slab, and how often the constructor was called after each of the three. */
void construct_twice(void)
{
	uint32_t count = make_cache(0, 100, 4, true);

	answer(count);
	for (unsigned i = 0; i < 2; i++) {
		for (object_count = 0; object_count < 2 * count; object_count++)
			objects[object_count] = slab_alloc(caches[0]);
		answer(constructed_count);
		empty_objects(0);
	}
	answer(constructed_count);
}
