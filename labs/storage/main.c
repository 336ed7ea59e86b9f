/*
 * The storage lab's kernel: lesson 6's (labs/lesson6/main.c) with its breadth, and drives.
 *
 *	kmain of lesson 6	everything that a program needs
 *	STARTUP, here		the drives, and the cache of their metadata
 *	first task		the host's script (labs/storage/inspect.c), or programs
 *
 * The drives are looked for when the clock runs, because every wait has a limit in nanoseconds, and
 * before the root directory gets its devices. kmain must not sleep, so they are polled here.
 *
 * The cache gets a share of the memory that is free: the setting "cache", in percent. The lab's
 * measurement (random_reads.py) gives it nearly half: which blocks are found in it is measured.
 */
#include "drivers/disk/ata.h"
#include "drivers/disk/trace.h"
#include "drivers/qemu/settings.h"
#include "fs/cache/bcache.h"
#include "fs/disk/block_files.h"
#include "fs/disk/ext_inode.h"
#include "fs/disk/trace_file.h"
#include "kernel/lib/startup.h"
#include "kernel/report/panic.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"

#define SHARE	    12 /* percent */
#define SHARE_LIMIT 90
#define GIVEN_BACK  32 /* blocks of the cache, and inodes, when no page is free */

static bool (*reclaim_others)(void);

/* An interrupt handler may have come in the middle of the cache's lists. */
static bool reclaim_storage(void)
{
	bool enabled = interrupts_disable();
	uint32_t pages = 0;

	interrupts_restore(enabled);
	if (enabled) {
		pages = bcache_shrink(GIVEN_BACK);
		disk_inodes_give_back(GIVEN_BACK); /* then slabs are empty, for others to free */
	}
	return reclaim_others() || pages > 0;
}

static void storage_start(void)
{
	uint64_t share = setting_number("cache", SHARE);

	if (share < 1 || share > SHARE_LIMIT)
		panic("cache must be 1 to %u percent of the memory, not %llu", SHARE_LIMIT, share);
	ata_initialize();
	trace_pause_port = setting_number("trace_pause", 0);
	bcache_init(page_free_count() / 100 * share);
	reclaim_others = page_reclaim;
	page_reclaim = reclaim_storage;
	block_files_initialize();
	trace_file_initialize();
}
STARTUP(storage_start)
