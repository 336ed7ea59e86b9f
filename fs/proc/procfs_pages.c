/*
 * Free blocks and slabs of the allocators: /proc/buddyinfo, /proc/slabinfo and /proc/vmstat, in
 * Linux's formats (proc(5), slabinfo(5)). Linux's vmstat -m and slabtop read them.
 */
#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

/* Word for word Linux's: slabtop(1) compares the version, and vmstat(8) skips two lines. */
#define SLABINFO_HEADING                                                                           \
	"slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> "           \
	"<objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> "              \
	": slabdata <active_slabs> <num_slabs> <sharedavail>\n"

/* With interrupts disabled, because handlers allocate, too. The lists are short. */
uint32_t procfs_length(const struct list *list)
{
	bool enabled = interrupts_disable();
	uint32_t length = 0;

	for (const struct list *link = list->next; link != list; link = link->next)
		length++;
	interrupts_restore(enabled);
	return length;
}

/* For /proc/meminfo. What is empty slab_shrink could give back. */
uint32_t procfs_slab_pages(uint32_t *empty)
{
	uint32_t pages = 0;

	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next) {
		const struct slab_cache *cache = list_entry(link, struct slab_cache, link);

		pages += cache->slabs;
		*empty += procfs_length(&cache->empty);
	}
	return pages;
}

/* buddyinfo: a line for each zone, with how many free blocks of 2^0, 2^1, ... pages it has. There
 * is one node. */
static void show_zones(struct procfs_text *text, const struct task *task)
{
	for (const struct zone *zone = zones; zone < zones + ZONES; zone++) {
		procfs_print(text, "Node 0, zone %8s ", zone->name);
		for (unsigned order = 0; order < ORDERS; order++)
			procfs_print(text, "%6u ", procfs_length(&zone->lists[order]));
		procfs_print(text, "\n");
	}
}

/* Objects, and slabs: in use, and all. The tunables are of Linux's own slab allocator; SLUB, which
 * has none, prints zeros there, too. A cache's slabs have one page each, so pages are slabs. */
static void show_slabs(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%s", SLABINFO_HEADING);
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next) {
		const struct slab_cache *cache = list_entry(link, struct slab_cache, link);

		procfs_print(text, "%-17s %6u %6u %6u %4u %4u : tunables %4u %4u %4u", cache->name,
			     cache->used, cache->slabs * cache->count, cache->size, cache->count, 1,
			     0, 0, 0);
		procfs_print(text, " : slabdata %6u %6u %6u\n",
			     cache->slabs - procfs_length(&cache->empty), cache->slabs, 0);
	}
}

/* Linux counts more than a hundred things there; what is missing is 0 for vmstat(8). pgpgin and
 * pgpgout are in KiB, though their names say pages. */
static void show_vmstat(struct procfs_text *text, const struct task *task)
{
	uint64_t read = 0, written = 0;
	uint32_t cached = procfs_cached_pages ? procfs_cached_pages() : 0;

	if (procfs_traffic)
		procfs_traffic(&read, &written);
	procfs_print(text, "nr_free_pages %u\nnr_file_pages %u\n", page_free_count(),
		     ramfs_counts.pages + cached);
	procfs_print(text, "pgpgin %llu\npgpgout %llu\n", read / 2, written / 2);
	procfs_print(text, "pswpin 0\npswpout 0\n");
	if (procfs_show_faults)
		procfs_show_faults(text);
}

/* All can be read by everybody; slabinfo is root's on Linux, and so is everybody here. */
static struct procfs_entry allocators[] = {
	{ "buddyinfo", .show = show_zones },
	{ "slabinfo", .show = show_slabs },
	{ "vmstat", .show = show_vmstat },
};
PROCFS(&procfs_root, allocators)
