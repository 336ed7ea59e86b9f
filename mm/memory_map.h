/* The physical memory map: sorted, without overlaps, neighbours of the same type joined.
 */
#pragma once

#include "kernel/report/boot_info.h"

#define MEMORY_RANGES (2 * BOOT_MEMORY_RANGES)

/*
 * Puts n ranges into order: where two overlap the higher type wins (it is safer to assume that
 * something is not memory); empty ones are dropped; one that runs past the end of the 64-bit space
 * is cut there. out must have room for 2 * n ranges. Returns how many it wrote.
 */
uint32_t memory_map_normalize(const struct boot_memory_range *in, uint32_t n,
			      struct boot_memory_range *out);

/* Normalizes the ranges in boot_info; the functions below read the result. */
void memory_map_initialize(void);

/* Prints the map and the sum of the memory that can be used. */
void memory_map_print(void);

/* Range number index, or NULL after the last one. */
const struct boot_memory_range *memory_map_range(uint32_t index);

/* All usable memory, in KiB. */
uint64_t memory_map_usable(void);
