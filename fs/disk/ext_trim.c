/*
 * FITRIM, fstrim's ioctl: tells the drive which blocks of a mounted file system are not in use.
 *
 * Everything is committed first: what was freed before may still be needed after a power cut. Then
 * free runs are collected and discarded with one request for BLOCK_RANGES of them. The mount's lock
 * is held meanwhile, so that none of the blocks is allocated; it is given back after each request.
 */
#include "fs/disk/ext_inode.h"
#include "kernel/abi/block.h"

/* What is asked for, in blocks, and how much was discarded, which the program gets in bytes. Runs
 * that are shorter than `least` stay. */
struct trim {
	uint64_t next, end, least, done;
};

/* One request, with the lock. A run that has no place in it any more is gone on with next time. */
static int trim_some(struct disk_mount *mount, struct trim *trim)
{
	struct block_range ranges[BLOCK_RANGES];
	uint32_t shift = mount->block_shift - 9;
	uint64_t first, added = 0;
	unsigned count = 0;

	while (trim->next < trim->end && count < BLOCK_RANGES) {
		int length = ext_free_run(mount->fs, trim->next, trim->end, &first);

		if (length < 0)
			return length;
		trim->next = first + length;
		if (length == 0 || (uint64_t)length < trim->least)
			continue;
		uint64_t part =
		    block_ranges_add(ranges, &count, first << shift, (uint64_t)length << shift) >>
		    shift;

		added += part;
		trim->next = first + part;
	}
	int error = count > 0 ? block_discard_ranges(mount->device, ranges, count) : 0;

	trim->done += error ? 0 : added;
	return error;
}

/* What of the range is in the file system. -EINVAL for none of it, and for free runs that must be
 * longer than a group: fs/ext4/mballoc.c, ext4_trim_fs. */
static int trim_range(struct disk_mount *mount, struct fstrim_range *range)
{
	const struct ext_summary *summary = ext_summary(mount->fs);
	uint32_t shift = mount->block_shift;
	struct trim trim = { .next = range->start >> shift, .end = range->len >> shift };

	trim.least = range->minlen >> shift;
	if (trim.next >= summary->blocks || trim.end == 0 || trim.least > summary->block_size * 8)
		return -EINVAL;
	trim.end = trim.end < summary->blocks - trim.next ? trim.next + trim.end : summary->blocks;
	if (trim.next == 0)
		trim.next = summary->block_size == 1024; /* there is no block 0 then */
	int error = disk_commit(mount);

	while (trim.next < trim.end && !error) {
		mutex_lock(&mount->lock);
		error = disk_unlock(mount, trim_some(mount, &trim));
	}
	range->len = trim.done << shift;
	return error;
}

int disk_trim(struct disk_mount *mount, uint32_t argument)
{
	struct fstrim_range range;

	if (!block_can_discard(mount->device))
		return -EOPNOTSUPP;
	if (mount->read_only || ext_is_read_only(mount->fs))
		return -EROFS;
	if (copy_from_user(&range, argument, sizeof(range)) != 0)
		return -EFAULT;
	mount->workers++;
	int error = trim_range(mount, &range);

	mount->workers--;
	return error ? error : give(argument, &range, sizeof(range));
}
