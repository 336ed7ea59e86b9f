/*
 * Reservation of blocks, for delayed allocation: a dirty page gets its blocks when it is written
 * back, and must find them then.
 *
 *	free blocks	[ dirty pages, their maps | the batch for the next pages | free for all ]
 *			[                    reserved                       ]
 *
 * The rule: what write() has accepted is reserved until it is written back, with the worst case of
 * its map (ext_map_worst: three blocks of pointers, or a node of each level of the extent tree, for
 * each page), and nothing but write-back may allocate it. The library keeps that for every
 * allocation (fs/ext/allocate.c): data past the cache, directories, symbolic links, attributes and
 * maps. The last 41 blocks of a disk with 4 KiB blocks and pointers (a name asks for 32):
 *
 *	write a page	4 reserved, 37 free for all
 *	mkdir		1 allocated, 36 free for all
 *	write 2 pages	12 reserved, 28 free for all
 *	mkdir		the pages go to the disk first, and need 3 blocks of the 12
 *
 * So a reservation is never the reason for ENOSPC: who finds too little that is free for all has
 * the dirty pages written back, and only then is the disk full. Half of what is free for all is
 * reserved in one batch, so that few writes have to count (as Linux's percpu_counter has batches);
 * it is released as soon as somebody else needs blocks.
 * Only blocks of groups whose bitmaps are sound can be reserved (ext_room).
 *
 * `reserved` and `batch` are of a mount, and change under its lock, or without sleeping.
 */
#include "fs/disk/ext_inode.h"

#define TRIES 3u /* other tasks write meanwhile */

static void release_batch(struct disk_mount *mount)
{
	mount->reserved -= mount->batch;
	mount->batch = 0;
}

/* How many blocks are free for all: at least `wanted`, or all of them. 0, or why no more are
 * known. Pages that become dirty while the library reads bitmaps count, too. */
static int count_unreserved(struct disk_mount *mount, uint64_t wanted, uint64_t *found)
{
	uint64_t before, sure;
	int error;

	do {
		before = mount->reserved;
		error = ext_room(mount->fs, before + wanted, &sure);
	} while (!error && before < mount->reserved);
	*found = sure > mount->reserved ? sure - mount->reserved : 0;
	return error;
}

int disk_reserve_page(struct disk_inode *inode)
{
	struct disk_mount *mount = inode->mount;
	uint64_t found;
	int error = 0;

	disk_inode_reserve(inode);
	uint32_t need = inode->pages.page_blocks;

	if (mount->batch < need) {
		mutex_lock(&mount->lock);
		release_batch(mount);
		error = count_unreserved(mount, 2 * need, &found);
		if (found >= need) {
			mount->batch = need + (found - need) / 2;
			mount->reserved += mount->batch;
		}
		mutex_unlock(&mount->lock);
	}
	if (mount->batch < need)
		return error ? error : -ENOSPC;
	mount->batch -= need;
	mount->reserved -= need;
	return 0;
}

void disk_need_blocks(struct disk_mount *mount, uint64_t blocks)
{
	uint64_t found;

	for (unsigned tries = TRIES; mount->reserved > 0 && tries > 0; tries--) {
		release_batch(mount);
		if (count_unreserved(mount, blocks, &found) == 0 && found >= blocks)
			return;
		mutex_unlock(&mount->lock);
		cached_files_write_back(false);
		mutex_lock(&mount->lock);
	}
}
