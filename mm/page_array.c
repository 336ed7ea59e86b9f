/*
 * Makes the page array, and hands the free frames over to the zones.
 *
 * 16 bytes a frame: 64 MiB have 16,384 frames, whose array takes 256 KiB, 0.4 % of memory. The
 * array must exist before there is an allocator, so it takes its own room: the first frames after
 * the kernel, in a usable range that is large enough.
 *
 *	0	 1 MiB	   kernel_end		array's end			page_frames
 *	| BIOS ... | kernel | page array, 256 KiB | free ...	| reserved ... |
 *
 * At first every frame is reserved. Then the frames of usable ranges that nothing else occupies are
 * handed over to the zones. The memory map also calls the kernel's image usable, with its BSS and
 * boot stack, and the memory of the BIOS and the boot loader below it.
 *
 * Called once, at boot, with interrupts disabled.
 */

#include "kernel/lib/multiboot.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "mm/memory_map.h"
#include "mm/zones.h"

#define LIMIT	     (DIRECT_MAP_SIZE >> PAGE_SHIFT)
#define DMA_END	     ((16u << 20) >> PAGE_SHIFT)
#define RESERVE_PART 64 /* one in 64 free pages of a zone is kept for interrupts */

extern const char kernel_end[];

/* The frames from `first` to the one before `end`. */
struct frames {
	uint32_t first, end;
};

/* EXERCISE 5.1 (every page has an owner): page_array_initialize (mm/page.h).

   Given are memory_map_range (mm/memory_map.h: bytes, in order), round_up (mm/page.h) and, from
   exercise 5.2, buddy_initialize and buddy_give_range. The array has an entry for each frame up to
   the highest usable one below LIMIT, and goes on to a whole number of largest blocks; its own
   frames are the first ones after the kernel that are together in a usable range. No frame below
   the kernel's end is free. The zone DMA has the frames below DMA_END, the zone Normal the others;
   either may be empty. At the end each zone's reserve is its number of free pages divided by
   RESERVE_PART, rounded down.

   Pitfalls: a range need not begin or end at a page boundary; it may reach across 16 MiB, and
   beyond 896 MiB and 4 GiB. The kernel has the frames below kernel_end, which is the end of
   a page. Memory still has its old contents. */
/* SOLUTION 5.1 { */
#define LARGEST (1u << (ORDERS - 1))

/* The whole frames of a range that are in the direct map and above the kernel. */
static struct frames usable(const struct boot_memory_range *range)
{
	uint64_t first = (range->base >> PAGE_SHIFT) + (range->base % PAGE_SIZE > 0);
	uint64_t end = (range->base + range->length) >> PAGE_SHIFT;
	uint32_t kernel = round_up(physical_address(kernel_end), PAGE_SIZE) >> PAGE_SHIFT;

	if (first < kernel)
		first = kernel;
	if (end > LIMIT)
		end = LIMIT;
	if (range->type != MULTIBOOT_MEMORY_AVAILABLE || first >= end)
		return (struct frames){ 0, 0 };
	return (struct frames){ first, end };
}

/* Makes the array, and says where it is. All frames are reserved by a state of 0. */
static struct frames place_array(void)
{
	const struct boot_memory_range *range;
	uint32_t size;

	for (uint32_t i = 0; (range = memory_map_range(i)); i++)
		if (usable(range).end > page_frames)
			page_frames = round_up(usable(range).end, LARGEST);
	size = page_frames * sizeof(struct page);
	for (uint32_t i = 0; (range = memory_map_range(i)); i++) {
		struct frames frames = usable(range);

		if (frames.end - frames.first < size >> PAGE_SHIFT)
			continue;
		page_array = memset(direct_map(frames.first << PAGE_SHIFT), 0, size);
		return (struct frames){ frames.first, frames.first + (size >> PAGE_SHIFT) };
	}
	panic("no room for the page array: it needs %u KiB together", size / 1024);
}

static void fill_zone(struct zone *zone, struct frames frames)
{
	uint32_t first = frames.first > zone->first ? frames.first : zone->first;
	uint32_t end = frames.end < zone->end ? frames.end : zone->end;

	if (first < end)
		buddy_give_range(zone, first, end - first);
	zone->reserve = zone->free / RESERVE_PART;
}

void page_array_initialize(void)
{
	struct frames array = place_array();
	uint32_t border = page_frames < DMA_END ? page_frames : DMA_END;
	const struct boot_memory_range *range;

	buddy_initialize(&zones[ZONE_DMA], "DMA", 0, border);
	buddy_initialize(&zones[ZONE_NORMAL], "Normal", border, page_frames);
	for (uint32_t i = 0; (range = memory_map_range(i)); i++) {
		struct frames frames = usable(range);

		if (frames.first == array.first)
			frames.first = array.end;
		for (unsigned zone = 0; zone < ZONES; zone++)
			fill_zone(&zones[zone], frames);
	}
}
/* } SOLUTION 5.1 */
