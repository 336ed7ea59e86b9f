/*
 * Large pages: 4 MiB by one entry of a directory (Intel SDM volume 3, 4.3), without a table.
 *
 * What the functions of mm/page_table.h and space_fault do to large pages is in mm/page_table.h.
 * Here is how programs get them.
 */
#pragma once

#include <stdbool.h>

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/optional.h"

struct page;
struct space;

#define AREA_LARGE 128u /* a bit of an area's flags (mm/area.h): made by MAP_HUGETLB */

/* Bits of a directory's entry that maps 4 MiB, besides those of mm/page_table.h. The last two the
 * processor ignores. */
#define PTE_LARGE    0x080u
#define PTE_GLOBAL   0x100u /* of the kernel's entries: mm/global_pages.c */
#define PTE_RESERVED 0x400u /* not touched yet: the block is there, and not cleared */
#define PTE_POOL     0x800u /* from MAP_HUGETLB, not from MADV_HUGEPAGE */

/* Maps large pages, zero when they are touched, in [start, end), whole 4 MiB of one area where
 * nothing is mapped. Returns 0; or -ENOMEM without as many
 * blocks of 4 MiB, and nothing has changed. */
int large_map(struct space *space, uint32_t start, uint32_t end);

/* Maps each 4 MiB of [start, end) by one large page, if that is possible: all of it is in one area
 * of private zeros, each page has been touched, and there is memory. Returns how many it has made.
 */
uint32_t large_promote(struct space *space, uint32_t start, uint32_t end) OPTIONAL;

/* The large entry that an address has, or 0. */
uint32_t large_entry(const struct space *space, uint32_t address);

/* Pages that are kept for the tables of demotions, one for each large entry; the first word of one
 * leads to the next. For tests. */
extern uint32_t *large_tables_aside;

/* How many blocks of 4 MiB programs have. */
struct large_counts {
	uint32_t pool;	   /* of MAP_HUGETLB, those included that are not touched */
	uint32_t reserved; /* of these: not touched */
	uint32_t promoted; /* by MADV_HUGEPAGE */
};

extern struct large_counts large_counts;
