/*
 * /proc/snapshots, which Linux does not have (there it is dmsetup):
 *
 *	name origin store kind chunk used room state
 *	dm-0 hdb    hdc   P    16    12   510  valid
 *
 * A line that is written to it makes or ends one (fs/disk/snapshots.h).
 */
#include "drivers/disk/snapshot.h"
#include "fs/disk/snapshots.h"
#include "fs/proc/procfs.h"

static void show_snapshots(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "name origin store kind chunk       used       room state\n");
	for (unsigned place = 0; place < SNAPSHOTS; place++) {
		const struct snapshot *each = snapshot_at(place);

		if (each)
			procfs_print(text, "%-4s %-6s %-5s %-4s %5u %10u %10u %s%s\n", each->name,
				     each->origin->name, each->store->name,
				     each->is_persistent ? "P" : "N", each->chunk, each->count,
				     each->room, each->failure ? "invalid: " : "valid",
				     each->failure ? each->failure : "");
	}
}

static int store_snapshot(const void *unused, const char *line)
{
	return snapshots_do(line);
}

PROCFS_ENTRY(&procfs_root, snapshots, "snapshots", .show = show_snapshots, .store = store_snapshot)
