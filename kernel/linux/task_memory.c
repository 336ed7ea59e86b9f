/* /proc/PID/smaps, and whose memory the lines of /proc/PID/maps are: proc(5) has the formats. */
#include <stddef.h>

#include "fs/path_page.h"
#include "fs/proc/procfs.h"
#include "kernel/abi/limits.h"
#include "kernel/lib/startup.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/task/task.h"
#include "mm/memory_object.h"
#include "mm/space_map.h"

#define SMAPS_ORDER 5 /* pages: some 200 ranges */

static void show_name(struct procfs_text *text, const struct space *space,
		      const struct space_range *range)
{
	const struct memory_object *object = range->object;
	char *path = object && object->ops->describe ? path_page() : NULL;

	if (path)
		object->ops->describe(object, path, PATH_MAX);
	if (path || range->is_heap)
		procfs_print(text, "%25s%s", "", path ? path : "[heap]");
	procfs_print(text, "\n");
	if (path)
		path_page_free(path);
}

static uint32_t shared_of(const struct space *space)
{
	struct space_range range = { .end = 0 };
	uint32_t shared = 0;

	for (; space_next_range(space, &range); range.start = range.end) {
		const struct space_use use = space_use_of(space, &range);

		shared += use.resident - use.anonymous;
	}
	return shared;
}

static void show_use(struct procfs_text *text, const struct space *space,
		     const struct space_range *range)
{
	const struct space_use use = space_use_of(space, range);
	const struct {
		const char *name;
		uint32_t bytes;
	} lines[] = {
		{ "Size:", range->end - range->start },
		{ "KernelPageSize:", PAGE_SIZE },
		{ "MMUPageSize:", PAGE_SIZE },
		{ "Rss:", use.resident },
		{ "Pss:", use.share },
		{ "Shared_Clean:", use.shared[0] },
		{ "Shared_Dirty:", use.shared[1] },
		{ "Private_Clean:", use.private[0] },
		{ "Private_Dirty:", use.private[1] },
		{ "Referenced:", use.referenced },
		{ "Anonymous:", use.anonymous },
		{ "Swap:", 0 },
		{ "SwapPss:", 0 },
		{ "Locked:", 0 },
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		procfs_print(text, "%-15s %8u kB\n", lines[i].name, lines[i].bytes / 1024);
	procfs_print(text, "VmFlags:%s%s%s%s\n", range->protection & SPACE_READ ? " rd" : "",
		     range->protection & SPACE_WRITE ? " wr" : "",
		     range->protection & SPACE_EXECUTE ? " ex" : "", range->is_shared ? " sh" : "");
}

static void show_smaps(struct procfs_text *text, const struct task *task)
{
	procfs_show_ranges(text, task, show_use);
}

static void task_memory_register(void)
{
	static const struct procfs_memory memory = { show_name, shared_of };
	static struct procfs_entry smaps = { .name = "smaps",
					     .show = show_smaps,
					     .order = SMAPS_ORDER };

	procfs_memory = &memory;
	procfs_register_task(&smaps);
}
STARTUP(task_memory_register)
