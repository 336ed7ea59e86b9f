/* Objects of one size, cut from pages: for the kernel's own small structures, until lesson 5 brings
 * slabs. */
#pragma once

#include <stdint.h>

struct pool {
	uint32_t size; /* bytes of an object */
	void *free;    /* a list through the objects' first words */
	uint32_t used; /* objects that are out */
};

#define POOL_INITIALIZER(type) { .size = sizeof(type) }

/* A zeroed object, aligned to 16 bytes if its size is a multiple of 16, or NULL without memory. At
 * most a page in size. From any context. */
void *pool_alloc(struct pool *pool);

/* Gives an object back; it is filled with junk. */
void pool_free(struct pool *pool, void *object);
