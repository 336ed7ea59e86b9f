/*
 * /proc/sys/vm/drop_caches: 1 forgets clean pages of files, 2 unused inodes and cached
 * blocks of disks, 3 both. What is dirty stays: sync first (Linux: Documentation/admin-guide).
 */
#include "fs/cache/bcache.h"
#include "fs/disk/ext_inode.h"
#include "fs/proc/procfs.h"

static int drop_caches(const void *unused, const char *line)
{
	if (line[0] < '1' || line[0] > '3' || line[1])
		return -EINVAL;
	if (line[0] & 1)
		page_cache_reclaim(UINT32_MAX);
	if (line[0] & 2) {
		disk_inodes_shrink();
		bcache_drop();
	}
	return 0;
}

PROCFS_ENTRY(procfs_sys_vm, caches, "drop_caches", .text = "0", .store = drop_caches)
