/* /proc/meminfo until there are slabs: from lesson 5 on it is in fs/proc/procfs_pages.c. */
#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "kernel/lib/startup.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

static void show_memory(struct procfs_text *text, const struct task *task)
{
	uint32_t free = page_free_count() * (PAGE_SIZE / 1024);
	uint32_t cached = ramfs_statistics().pages * (PAGE_SIZE / 1024);

	procfs_print(text, "MemTotal:       %8u kB\nMemFree:        %8u kB\n",
		     (uint32_t)memory_map_usable(), free);
	procfs_print(text, "MemAvailable:   %8u kB\nBuffers:        %8u kB\n", free, 0);
	procfs_print(text, "Cached:         %8u kB\nSwapCached:     %8u kB\n", cached, 0);
	procfs_print(text, "Shmem:          %8u kB\nSlab:           %8u kB\n", cached, 0);
	procfs_print(text, "SReclaimable:   %8u kB\n", 0);
	procfs_print(text, "SwapTotal:      %8u kB\nSwapFree:       %8u kB\n", 0, 0);
	procfs_print(text, "Dirty:          %8u kB\nWriteback:      %8u kB\n", 0, 0);
}

static void memory_register(void)
{
	static struct procfs_entry memory = { .name = "meminfo", .show = show_memory };

	procfs_register(&memory);
}
STARTUP(memory_register)
