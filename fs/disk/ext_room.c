/*
 * Room on a disk that is promised to writers: a dirty page gets its blocks when it is written back,
 * and must find them then.
 *
 *	free blocks	[ dirty pages | their maps | promised, not yet dirty | anybody's ]
 *
 * Only what is surely free counts (ext_room). A write past the cache and fallocate take blocks at
 * once: if they want more than is anybody's, dirty pages get theirs first. They count and allocate
 * without giving the mount's lock back in between, and promises are made with it: so no block is
 * promised twice. What names and directories take is small, and comes out of what the maps keep.
 */
#include "drivers/disk/block.h"
#include "fs/disk/ext_inode.h"
#include "kernel/lib/errno.h"
#include "mm/page_table.h"

#define MARGIN	    4u /* blocks that are kept for the map of what is written */
#define MARGIN_PART 64u

/* How many blocks are anybody's: at least `wanted`, or all of them. 0, or why no more are known.
 * Pages that become dirty while the library reads bitmaps count, too. */
static int find_spare(struct disk_mount *mount, uint64_t wanted, uint64_t *spare)
{
	uint32_t dirty;
	uint64_t taken, sure;
	int error;

	do {
		dirty = cached_files_dirty();
		taken = (uint64_t)dirty << (PAGE_SHIFT - mount->block_shift);
		taken += taken / MARGIN_PART + MARGIN;
		error = ext_room(mount->fs, taken + wanted, &sure);
	} while (!error && dirty != cached_files_dirty());
	*spare = sure > taken ? sure - taken : 0;
	return error;
}

/* Half of what is anybody's is promised at a time, so that few writes have to count. */
int disk_promise_page(struct disk_mount *mount)
{
	uint32_t shift = PAGE_SHIFT - mount->block_shift;
	uint64_t spare;

	if (mount->room > 0) {
		mount->room--;
		return 0;
	}
	mutex_lock(&mount->lock);
	int error = find_spare(mount, (1u << shift) + 1, &spare);

	mount->room = spare > 1u << shift ? (uint32_t)((spare >> shift) - 1) / 2 : 0;
	mutex_unlock(&mount->lock);
	return spare > 1u << shift ? 0 : error ? error : -ENOSPC;
}

uint64_t disk_take_room(struct disk_mount *mount, uint64_t blocks)
{
	uint64_t spare;

	mount->room = 0;
	if (find_spare(mount, blocks, &spare) || spare < blocks) {
		mutex_unlock(&mount->lock);
		cached_files_write_back(false);
		mutex_lock(&mount->lock);
		mount->room = 0;
		find_spare(mount, blocks, &spare);
	}
	return spare < blocks && cached_files_dirty() ? spare : blocks;
}
