/*
 * Memory objects, which areas map: a file, or memory that several spaces share. The object is a
 * member of the structure that has the pages.
 *
 *	object->areas --> area of space A, pages 0 - 3 --> area of space B, pages 2 - 9
 *
 * From a page of an object one finds every entry that maps it (mm/reverse_map.h).
 */
#pragma once

#include <stdint.h>

#include "kernel/lib/list.h"

struct memory_object;
struct page;

struct memory_object_ops {
	/* Gives the page number `index` in *page, with a reference for the caller; `write`: it is
	 * about to be written to. Returns 0; -EIO beyond the end, unless the page is still in
	 * memory (an end that comes nearer removes it), or if it cannot be read; or -ENOMEM. May
	 * sleep. */
	int (*page)(struct memory_object *object, uint32_t index, bool write, struct page **page);
	/* Which of page `index` and the pages after it are in memory: an array of their kernel
	 * addresses, with NULL for a page that is not. Sets *count to the array's length, which may
	 * be less or more than the caller wants. Returns NULL if none of them is in memory. Does
	 * not sleep. If the operation is NULL, none is. */
	void *const *(*peek)(struct memory_object *object, uint32_t index, uint32_t *count);
	/* Take and drop a reference to the structure that has the pages. */
	void (*hold)(struct memory_object *object);
	void (*release)(struct memory_object *object);
	/* Writes pages `first` to `end` - 1 back, if they were written to. Returns 0 or an error.
	 * May sleep. NULL: there is nothing to write them back to. */
	int (*sync)(struct memory_object *object, uint32_t first, uint32_t end);
	/* The file was cut: it no longer has page `first` and those after it. */
	void (*cut)(struct memory_object *object, uint32_t first);
	/* Writes its name for people, a path, with its NUL. NULL: it has no name. */
	void (*describe)(const struct memory_object *object, char *text, uint32_t size);
};

struct memory_object {
	const struct memory_object_ops *ops; /* of what has the pages */
	struct list areas; /* by area->in_object; empty when the structure is made */
};

static inline void object_initialize(struct memory_object *object,
				     const struct memory_object_ops *ops)
{
	*object = (struct memory_object){ ops, LIST_EMPTY(object->areas) };
}
