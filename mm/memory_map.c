/*
 * The physical memory map: sorted, and without overlaps.
 *
 * A BIOS lists ranges in any order, and they may overlap. Every base and every end is an edge;
 * between two neighbouring edges the type is the same everywhere, so the map is rebuilt piece by
 * piece:
 *
 *	told		usable 0-100		reserved 40-60		usable 90-120
 *	edges		0	40	60	90	100	120
 *	pieces		usable	reserved	usable	usable	usable
 *	result		usable 0-40, reserved 40-60, usable 60-120
 *
 * Where ranges overlap the higher type wins: "usable" is 1, everything else is greater, and it is
 * safer to assume that memory is taken. n ranges have at most 2n edges and 2n - 1 pieces.
 * Looking for each edge takes n steps, n^2 in all. There are about ten ranges: no sort is needed.
 *
 * 64-bit addresses: a PC has memory above 4 GiB that this kernel does not use. Called once, at
 * boot; read-only after that.
 */
#include "mm/memory_map.h"

#include "kernel/lib/multiboot.h"
#include "kernel/report/printk.h"

static struct boot_memory_range ranges[MEMORY_RANGES];
static uint32_t range_count;

/* A range that would wrap is cut at the end of the address space. */
static uint64_t end_of(const struct boot_memory_range *range)
{
	uint64_t end = range->base + range->length;

	return end < range->base ? UINT64_MAX : end;
}

/* The lowest edge (a base or an end) that is greater than `above`; without one the end of the
 * address space. */
static uint64_t next_border(const struct boot_memory_range *in, uint32_t n, uint64_t above)
{
	uint64_t border = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++) {
		if (in[i].base > above && in[i].base < border)
			border = in[i].base;
		if (end_of(&in[i]) > above && end_of(&in[i]) < border)
			border = end_of(&in[i]);
	}
	return border;
}

/* The type of a piece, in which no range begins or ends: the highest type of the ranges that cover
 * it; 0: none does. */
static uint32_t type_of(const struct boot_memory_range *in, uint32_t n, uint64_t start,
			uint64_t end)
{
	uint32_t type = 0;

	for (uint32_t i = 0; i < n; i++)
		if (in[i].base <= start && end <= end_of(&in[i]) && in[i].type > type)
			type = in[i].type;
	return type;
}

/* Adds a piece, or lets the piece before it grow. Returns the new number of pieces. */
static uint32_t append(struct boot_memory_range *out, uint32_t count, uint64_t start, uint64_t end,
		       uint32_t type)
{
	struct boot_memory_range *last = count > 0 ? &out[count - 1] : NULL;

	if (type == 0)
		return count;
	if (last && last->type == type && end_of(last) == start) {
		last->length += end - start;
		return count;
	}
	out[count] = (struct boot_memory_range){ start, end - start, type };
	return count + 1;
}

/* Pure: the host's tests compare it with a slow and obvious one. The first piece begins at 0, where
 * a range may. */
uint32_t memory_map_normalize(const struct boot_memory_range *in, uint32_t n,
			      struct boot_memory_range *out)
{
	uint32_t count = 0;

	for (uint64_t start = 0, end; start < UINT64_MAX; start = end) {
		end = next_border(in, n, start);
		count = append(out, count, start, end, type_of(in, n, start, end));
	}
	return count;
}

void memory_map_initialize(void)
{
	range_count = memory_map_normalize(boot_info.ranges, boot_info.range_count, ranges);
}

const struct boot_memory_range *memory_map_range(uint32_t index)
{
	return index < range_count ? &ranges[index] : NULL;
}

/* EXERCISE 1.5 (the memory map, part 2): how many KiB are usable: those of the type
   MULTIBOOT_MEMORY_AVAILABLE. (ACPI tables may be freed later, but not by us.)
   Pitfalls: a range need not have a whole number of KiB, and all together may have more bytes
   than 32 bits can count. */
/* SOLUTION 1.5 { */
uint64_t memory_map_usable(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < range_count; i++)
		if (ranges[i].type == MULTIBOOT_MEMORY_AVAILABLE)
			bytes += ranges[i].length;
	return bytes / 1024;
}
/* } SOLUTION 1.5 */

/* At boot, and for the command `memory`. */
void memory_map_print(void)
{
	for (uint32_t i = 0; i < range_count; i++)
		printk("memory: 0x%09llx - 0x%09llx  %s\n", ranges[i].base, end_of(&ranges[i]) - 1,
		       ranges[i].type == MULTIBOOT_MEMORY_AVAILABLE ? "usable" : "reserved");
	printk("memory: %llu KiB usable\n", memory_map_usable());
}
