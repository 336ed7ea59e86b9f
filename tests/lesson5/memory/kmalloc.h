/* What tests of kmalloc share: objects that are asked for, and freed, by functions of known names.
 */
#pragma once

#include "tests/lesson4/threads/thread_test.h"

#include "kernel/lib/string.h"
#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"
#include "mm/slab.h"

void *first_owner(uint32_t size)
{
	return kmalloc(size);
}

void *second_owner(uint32_t size)
{
	return kmalloc(size);
}

void first_freer(void *object)
{
	kfree(object);
}

void second_freer(void *object)
{
	kfree(object);
}

/* Frees this many other objects. */
void free_others(uint32_t count)
{
	while (count-- > 0)
		second_freer(second_owner(16));
}

uint32_t size_of(const void *object)
{
	return kmalloc_size(object);
}

void *resize(void *object, uint32_t size)
{
	return krealloc(object, size);
}

void check_all(void)
{
	kmalloc_debug_check();
}

/* Fills the object with bytes that count on from `first`. */
void fill(uint8_t *object, uint32_t size, uint32_t first)
{
	for (uint32_t i = 0; i < size; i++)
		object[i] = first + i;
}

/* How many bytes from its beginning are as filled. */
uint32_t filled(const uint8_t *object, uint32_t size, uint32_t first)
{
	uint32_t i = 0;

	while (i < size && object[i] == (uint8_t)(first + i))
		i++;
	return i;
}
