/* A space of areas and page tables, for mm's own files. */
#pragma once

#include "mm/space.h"
#include "kernel/lib/optional.h"

struct area;
struct tree_node;

#define SPACE_LOWEST 0x00010000u /* a null pointer with an offset must fault */
#define STACK_END    (SPACE_SHARED - 0x1000u)
#define STACK_USUAL  (8u << 20) /* how far a stack may grow, unless the program has set a limit */
#define STACK_LIMIT  (stack_limit ? stack_limit() : STACK_USUAL)
#define STACK_GAP    (1u << 20)				   /* what no area may touch below it */
#define MAP_HIGHEST  (STACK_END - STACK_LIMIT - STACK_GAP) /* where mappings end */

/* A space with nothing but the page that all have; NULL without memory. */
struct space *space_allocate(void);

/* How far the stack of the current task's program may grow, in whole pages. */
uint32_t stack_limit(void) OPTIONAL;

struct space {
	uint32_t *directory;
	struct tree_node *areas;
	struct area *recent;	       /* the one that was found last, or NULL */
	uint32_t heap_start, heap_end; /* to the byte */
	uint32_t size;		       /* bytes in areas */
	uint32_t pages;		       /* that are mapped */
	uint32_t most;		       /* the most that were mapped before some were unmapped */
	uint32_t count;		       /* of areas */
	bool large;		       /* it has, or had, large pages (mm/large_page.c) */
	uint32_t pinning; /* PINS_*: what becomes of new areas (kernel/linux/memory/pinned.c) */
};

/* Before pages of a space are unmapped. */
static inline void space_note_most(struct space *space)
{
	if (space->most < space->pages)
		space->most = space->pages;
}
