/*
 * /proc/PID/smaps, and whose memory the lines of /proc/PID/maps are: proc(5) has the formats.
 *
 * A space is another task's, and nothing locks it: the next range is found by its address.
 *
 *	Rss	pages of memory that the range maps: its object's, and copies
 *	Pss	of each page the part of one of those that map it
 *	Private	what only this space maps; Shared is the rest
 *	Dirty	written to, or no object's
 */

#include "fs/path_page.h"
#include "fs/proc/procfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/process/page_fault.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/page_cache.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"
#include "mm/zones.h"

#define SMAPS_ORDER 5 /* pages: some 200 ranges */
#define LARGE_KIB   (LARGE_PAGE / 1024)

/* Does the range have a part of what brk has set? */
static bool is_heap(const struct space *space, const struct space_range *range)
{
	return space->heap_start < space->heap_end && !range->object &&
	       range->start <= space->heap_end && range->end > space->heap_start;
}

/* [heap] is the program's heap, as on Linux; memory of no object has no name, nor has an object
 * without one. */
void procfs_name_range(struct procfs_text *text, const struct space *space,
		       const struct space_range *range)
{
	struct memory_object *object = range->object;
	char *path = object && object->ops->describe ? path_page() : NULL;

	if (path)
		object->ops->describe(object, path, PATH_MAX);
	if (path || is_heap(space, range))
		procfs_print(text, "%25s%s", "", path ? path : "[heap]");
	procfs_print(text, "\n");
	if (path)
		path_page_free(path);
}

/* Bytes of pages that are objects': of files, and of shared memory. */
uint32_t procfs_shared(const struct space *space)
{
	uint32_t shared = 0;

	FOR_EACH_PART(part, space, 0, UINT32_MAX) {
		const struct space_use use = space_use_of(space, &part);

		shared += use.resident - use.anonymous;
	}
	return shared;
}

/* The lines that follow a range's line of maps. Sizes are in KiB; there is no swap space. */
static void show_use(struct procfs_text *text, const struct space *space,
		     const struct space_range *range)
{
	const struct space_use use = space_use_of(space, range);
	uint32_t page = use.large_pool[0] + use.large_pool[1] > 0 ? LARGE_PAGE : PAGE_SIZE;
	const struct {
		const char *name;
		uint32_t bytes;
	} lines[] = {
		{ "Size:", range->end - range->start },
		{ "KernelPageSize:", page },
		{ "MMUPageSize:", page },
		{ "Rss:", use.resident },
		{ "Pss:", use.share },
		{ "Shared_Clean:", use.shared[0] },
		{ "Shared_Dirty:", use.shared[1] },
		{ "Private_Clean:", use.private[0] },
		{ "Private_Dirty:", use.private[1] },
		{ "Referenced:", use.referenced },
		{ "Anonymous:", use.anonymous },
		{ "AnonHugePages:", use.large },
		{ "Shared_Hugetlb:", use.large_pool[1] },
		{ "Private_Hugetlb:", use.large_pool[0] },
		{ "Swap:", 0 },
		{ "SwapPss:", 0 },
		{ "Locked:", range->flags & AREA_PINNED ? use.share : 0 },
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		procfs_print(text, "%-15s %8u kB\n", lines[i].name, lines[i].bytes / 1024);
	procfs_print(
	    text, "VmFlags:%s%s%s%s%s%s\n", range->flags & SPACE_READ ? " rd" : "",
	    range->flags & SPACE_WRITE ? " wr" : "", range->flags & SPACE_EXECUTE ? " ex" : "",
	    range->flags & AREA_SHARED ? " sh" : "", range->flags & AREA_STACK ? " gd" : "",
	    range->flags & AREA_PINNED ? " lo" : "");
}

/* Each range as maps shows it, and its sums: so a range that has changed in between is not shown
 * with another one's. */
static void show_smaps(struct procfs_text *text, const struct task *task)
{
	procfs_show_ranges(text, task, show_use);
}

/* A free block of the largest order is one of 4 MiB. There is no pool of large pages: what
 * MAP_HUGETLB could have is free for others, too. Reserved ones count as free, as in Linux. */
void procfs_show_large(struct procfs_text *text)
{
	uint32_t free = 0;

	for (const struct zone *zone = zones; zone < zones + ZONES; zone++)
		free += procfs_length(&zone->lists[ORDERS - 1]);
	uint32_t total = large_counts.pool + free;

	procfs_print(text, "AnonHugePages:  %8u kB\n", large_counts.promoted * LARGE_KIB);
	procfs_print(text, "HugePages_Total: %7u\n", total);
	procfs_print(text, "HugePages_Free:  %7u\n", free + large_counts.reserved);
	procfs_print(text, "HugePages_Rsvd:  %7u\nHugePages_Surp:  %7u\n", large_counts.reserved,
		     0);
	procfs_print(text, "Hugepagesize:   %8u kB\n", LARGE_KIB);
	procfs_print(text, "Hugetlb:        %8u kB\n", total * LARGE_KIB);
}

/* Linux's names: a major fault had to wait for a disk, and is one of all faults. */
void procfs_show_faults(struct procfs_text *text)
{
	procfs_print(text, "pgfault %u\npgmajfault %u\n", page_faults, page_cache_major_faults);
}

uint32_t procfs_cached_pages(void)
{
	return page_cache_pages();
}

PROCFS_SHOW(show_areas_most, "%u\n", space_areas_most)

/* A space that has more areas already keeps them. */
static int store_areas_most(const void *unused, const char *line)
{
	uint64_t number;

	if (!number_parse(line, &number) || number > INT32_MAX)
		return -EINVAL;
	space_areas_most = (uint32_t)number;
	return 0;
}

/* Documentation/admin-guide/sysctl/vm.rst has the number; smaps is of a task, and each program may
 * read every other's, since all are root's. */
PROCFS_ENTRY(&procfs_task, smaps, "smaps", .show = show_smaps, .order = SMAPS_ORDER)
PROCFS_ENTRY(procfs_sys_vm, areas_most, "max_map_count", .show = show_areas_most,
	     .store = store_areas_most)
