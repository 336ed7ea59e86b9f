/* More operations of an address space: for mmap, munmap and mprotect, and for what /proc shows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mm/space.h"

/* Maps memory, all zero, where there is room. Returns the address, or -ENOMEM. */
int space_map_anywhere(struct space *space, uint32_t length, unsigned protection);

/* Unmaps whole pages; pages that are not mapped are skipped. Returns 0, or -EINVAL for an address
 * inside a page and for no length. */
int space_unmap(struct space *space, uint32_t address, uint32_t length);

/* Changes the protection of mapped pages. Returns 0, -EINVAL, -ENOMEM if part of it is not mapped,
 * or -EACCES if that part maps a file that may not be written. What is before that part is done.
 */
int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection);

/* Copies from any space what is mapped there, up to the first page that is not. Returns how many
 * bytes. */
uint32_t space_read(const struct space *space, uint32_t address, void *to, uint32_t length);

/* A mapped range of one kind. */
struct memory_object;

struct space_range {
	uint32_t start, end;
	unsigned protection;		    /* bits of SPACE_* */
	bool is_shared;			    /* what is written there others see */
	uint32_t index;			    /* of the file's page at the start; 0 without a file */
	const struct memory_object *object; /* whose pages it maps, or NULL */
	bool is_heap, is_pinned, grows; /* pinned: by mlock. grows: downwards, as a stack does */
};

/* Finds the first range that ends after range->start, without what is below that address. Returns
 * false if there is none. */
bool space_next_range(const struct space *space, struct space_range *range);

/* What a range has in memory, in bytes. What only this space maps is private. */
struct space_use {
	uint32_t resident, share; /* share: of each page the part of one of those that map it */
	uint32_t shared[2], private[2]; /* clean, dirty */
	uint32_t referenced, anonymous; /* anonymous: not its object's */
	uint32_t large, large_pool[2];	/* by large pages: promoted; of MAP_HUGETLB, private or
					   shared, which are in no other sum */
};

struct space_use space_use_of(const struct space *space, const struct space_range *range);

/* How many bytes of memory its program uses at the moment; and how many were the most. */
uint32_t space_resident_size(const struct space *space);
uint32_t space_most_size(const struct space *space);

/* Bytes that are mapped. */
uint32_t space_size(const struct space *space);

/* How many areas a space may have, as far as mmap, munmap, mprotect, mremap and brk make them:
 * /proc/sys/vm/max_map_count. */
extern uint32_t space_areas_most;
