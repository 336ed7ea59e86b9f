/*
 * How memory is used: /proc/meminfo, /proc/buddyinfo and /proc/slabinfo, in Linux's formats
 * (proc(5), slabinfo(5)). Linux's free, vmstat -m and slabtop read them.
 */
#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/startup.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

#define KIB_SHIFT (PAGE_SHIFT - 10)
#define SLABINFO_HEADING                                                                           \
	"slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> "           \
	"<objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> "              \
	": slabdata <active_slabs> <num_slabs> <sharedavail>\n"

static uint32_t length_of(const struct list *list)
{
	bool enabled = interrupts_disable();
	uint32_t length = 0;

	for (const struct list *link = list->next; link != list; link = link->next)
		length++;
	interrupts_restore(enabled);
	return length;
}

static void print_kib(struct procfs_text *text, const char *name, uint32_t kib)
{
	procfs_print(text, "%-15s %8u kB\n", name, kib);
}

static uint32_t cached_pages(void)
{
	return procfs_memory ? procfs_memory->cached() : 0;
}

/* Pages of empty slabs could be given back, and those of files on disks: they are reclaimable. */
static void show_memory(struct procfs_text *text, const struct task *task)
{
	static const char *const none[] = { "Buffers:",	 "SwapCached:", "SwapTotal:",
					    "SwapFree:", "Dirty:",	"Writeback:" };
	uint32_t free = page_free_count() << KIB_SHIFT, cached = cached_pages() << KIB_SHIFT;
	uint32_t shared = ramfs_statistics().pages << KIB_SHIFT, slabs = 0, empty = 0;

	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next) {
		const struct slab_cache *cache = list_entry(link, struct slab_cache, link);

		slabs += cache->slabs << KIB_SHIFT;
		empty += length_of(&cache->empty) << KIB_SHIFT;
	}
	print_kib(text, "MemTotal:", memory_map_usable());
	print_kib(text, "MemFree:", free);
	print_kib(text, "MemAvailable:", free + empty + cached);
	print_kib(text, "Cached:", shared + cached);
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		print_kib(text, none[i], 0);
	print_kib(text, "Shmem:", shared);
	print_kib(text, "Slab:", slabs);
	print_kib(text, "SReclaimable:", empty);
	if (procfs_memory)
		procfs_memory->large(text);
}

/* Free blocks, by order. */
static void show_zones(struct procfs_text *text, const struct task *task)
{
	for (const struct zone *zone = zones; zone < zones + ZONES; zone++) {
		procfs_print(text, "Node 0, zone %8s ", zone->name);
		for (unsigned order = 0; order < ORDERS; order++)
			procfs_print(text, "%6u ", length_of(&zone->lists[order]));
		procfs_print(text, "\n");
	}
}

static void show_slabs(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%s", SLABINFO_HEADING);
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next) {
		const struct slab_cache *cache = list_entry(link, struct slab_cache, link);

		procfs_print(text, "%-17s %6u %6u %6u %4u %4u : tunables %4u %4u %4u", cache->name,
			     cache->used, cache->slabs * cache->count, cache->size, cache->count, 1,
			     0, 0, 0);
		procfs_print(text, " : slabdata %6u %6u %6u\n",
			     cache->slabs - length_of(&cache->empty), cache->slabs, 0);
	}
}

/* Linux counts more than a hundred things there; what is missing is 0 for vmstat(8). */
static void show_vmstat(struct procfs_text *text, const struct task *task)
{
	uint64_t read = 0, written = 0;

	if (procfs_traffic)
		procfs_traffic(&read, &written);
	procfs_print(text, "nr_free_pages %u\nnr_file_pages %u\n", page_free_count(),
		     ramfs_statistics().pages + cached_pages());
	procfs_print(text, "pgpgin %llu\npgpgout %llu\n", read / 2, written / 2);
	procfs_print(text, "pswpin 0\npswpout 0\n");
	if (procfs_memory)
		procfs_memory->faults(text);
}

static void pages_register(void)
{
	static struct procfs_entry table[] = {
		{ .name = "buddyinfo", .show = show_zones },
		{ .name = "meminfo", .show = show_memory },
		{ .name = "slabinfo", .show = show_slabs },
		{ .name = "vmstat", .show = show_vmstat },
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		procfs_register(&table[i]);
}
STARTUP(pages_register)
