/*
 * Snapshots of drives, made by command: the device of each is a file in /dev like any other, and
 * its store is claimed, so that nobody mounts it meanwhile.
 *
 *	hdb hdc P 16	a snapshot of hdb; what changes goes to hdc, in chunks of 16 sectors
 *	hdb hdc N	the same, which does not survive a restart (P does)
 *	remove dm-0	the end of one; its store is free again
 *
 * A line comes from /proc/snapshots or from a setting of the run. As dmsetup(8) does, but in one
 * step. All may sleep; an error is named on the console, and returned.
 */
#include "fs/disk/snapshots.h"

#include "drivers/disk/block.h"
#include "drivers/disk/snapshot.h"
#include "fs/disk/block_files.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"

/* As long as a line of /proc may be. */
#define LINE 64u

/* -EINVAL, whatever is wrong with the line. */
static int bad_line(void)
{
	printk("snapshot: expected \"ORIGIN STORE [P|N [CHUNK]]\" or \"remove dm-0\"\n");
	return -EINVAL;
}

/* NULL, after a message: -ENODEV for the caller. */
static struct block_device *named_drive(const char *name)
{
	struct block_device *found = block_find(name);

	if (!found)
		printk("snapshot: there is no drive %s\n", name);
	return found;
}

/* What is dirty is written first, so the snapshot has the files as they are. -ENODEV, -EBUSY, or
 * what snapshot_create refuses. */
static int make_snapshot(const char *origin_name, const char *store_name, unsigned chunk,
			 bool is_persistent)
{
	struct block_device *origin = named_drive(origin_name), *store = named_drive(store_name);
	struct snapshot *made;

	if (!origin || !store)
		return -ENODEV;
	int error = block_file_claim(store, true);

	if (error) {
		printk("snapshot: %s is in use\n", store_name);
		return error;
	}
	error = vfs_sync();
	if (!error)
		error = snapshot_create(origin, store, chunk, is_persistent, &made);
	if (error) {
		block_file_claim(store, false);
		return error;
	}
	block_file_show(&made->device);
	printk("%s: a snapshot of %s on %s, chunks of %u sectors, %u of %u used\n", made->name,
	       origin_name, store_name, made->chunk, made->count, made->room);
	return 0;
}

/* Claimed first: nobody may have it mounted, or opened with O_EXCL. -ENODEV, -EBUSY. */
static int end_snapshot(const char *name)
{
	struct snapshot *snapshot;
	unsigned slot = 0;

	while (slot < SNAPSHOTS &&
	       (!(snapshot = snapshot_at(slot)) || strcmp(snapshot->name, name) != 0))
		slot++;
	if (slot == SNAPSHOTS) {
		printk("snapshot: there is no %s\n", name);
		return -ENODEV;
	}
	int error = block_file_claim(&snapshot->device, true);

	if (error) {
		printk("snapshot: %s is in use\n", name);
		return error;
	}
	struct block_device *store = snapshot->store;

	snapshot_remove(snapshot);
	block_file_claim(&snapshot->device, false);
	return block_file_claim(store, false);
}

int snapshots_do(const char *line)
{
	char copy[LINE], *words[MONITOR_ARGUMENTS];
	uint64_t chunk = 0;

	if (strlen(line) >= LINE)
		return bad_line();
	memcpy(copy, line, strlen(line) + 1);
	int count = monitor_split(copy, words);

	if (count == 2 && strcmp(words[0], "remove") == 0)
		return end_snapshot(words[1]);
	if (count < 2 || count > 4 || (count == 4 && !number_parse(words[3], &chunk)))
		return bad_line();
	if (chunk > SNAPSHOT_CHUNK_MOST || (count == 4 && chunk == 0))
		chunk = 1; /* which is refused, with the sizes that may be */
	bool is_persistent = count == 2 || strcmp(words[2], "P") == 0;

	if (!is_persistent && strcmp(words[2], "N") != 0)
		return bad_line();
	return make_snapshot(words[0], words[1], chunk, is_persistent);
}
