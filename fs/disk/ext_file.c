/*
 * Open files of ext2, ext3 and ext4: struct file_ops, of regular files and of directories. What is
 * below the page cache is in ext_data.c.
 *
 * Writes of one file, and reads past the cache, have its lock; reads through the cache need none.
 */
#include "fs/disk/ext_inode.h"
#include "fs/ext/disk.h"
#include "fs/vfs/vfs.h"
#include "kernel/task/time.h"

/* How old a time of access may become that no change has made stale: Linux's fs/inode.c,
 * relatime_need_update. */
#define DAY_NS 86400000000000ll

/* Somebody has read it since it was last changed: then the time of access says nothing new. */
static bool is_newer_than_changes(const struct inode *inode)
{
	return inode->accessed > inode->modified && inode->accessed > inode->changed;
}

/* "relatime": at the first read after a write, and once a day: mount(8). Options of the mount and
 * the file's own flag (chattr +A) may forbid it. */
static __attribute__((noinline)) void note_access(struct disk_inode *inode, uint32_t period)
{
	struct inode *vfs = &inode->inode;
	int64_t now = time_wall_ns();

	if (inode->mount->read_only || inode->mount->no_access_time ||
	    inode->ext.flags & EXT_FLAG_NOATIME)
		return;
	if (!is_newer_than_changes(vfs) || now - vfs->accessed >= DAY_NS) {
		vfs->accessed = ext_time_kept(&inode->ext, now);
		inode->is_changed = true;
	}
	if (is_newer_than_changes(vfs))
		inode->asked = period;
}

/* Reads ask for the time only when the upper half of the time-stamp counter has changed, once in
 * some seconds, or the file's times have. */
static inline void file_was_read(struct disk_inode *inode)
{
	uint32_t period = 1 + (uint32_t)(time_stamp() >> 32);

	if (inode->asked != period)
		note_access(inode, period);
}

/* O_DIRECT: a read past the cache excludes writers, whose pages it would miss. Not inline, so that
 * cached reads save no registers for it. */
static __attribute__((noinline)) int read_direct(struct disk_inode *inode, struct buffer *to,
						 uint64_t offset)
{
	mutex_lock(&inode->lock);
	int moved = cached_file_direct(&inode->pages, to, offset, false);

	mutex_unlock(&inode->lock);
	return moved;
}

/* The time first: also a read at the end, and one that fails, counts as an access. */
static int disk_file_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct disk_inode *inode = disk_inode(file->inode);

	if (!(file->flags & O_NOATIME))
		file_was_read(inode);
	if (file->flags & O_DIRECT)
		return read_direct(inode, to, offset);
	return cached_file_read(&inode->pages, to, offset);
}

/* Pointers cannot say that a block has no contents yet, so as on Linux a hole within the file is
 * filled through the cache, by O_DIRECT, too, and then needs no alignment. */
static bool must_be_cached(struct disk_inode *inode, uint64_t offset)
{
	uint32_t shift = inode->mount->block_shift;

	return !(inode->ext.flags & EXT_FLAG_EXTENTS) &&
	       offset >> shift << shift < inode->inode.size && disk_is_hole(inode, offset);
}

/* With the file's lock, so that the end is the end: O_APPEND takes it as the offset. What an area
 * has stored after the end, in the last page, is zeros once the file is longer. */
static int write_locked(struct file *file, struct buffer *from, uint64_t offset)
{
	struct disk_inode *inode = disk_inode(file->inode);

	if (file->flags & O_APPEND)
		offset = file->inode->size;
	if (offset > file->inode->size)
		cached_file_zero_tail(&inode->pages, file->inode->size);
	if (!(file->flags & O_DIRECT) || must_be_cached(inode, offset))
		return cached_file_write(&inode->pages, from, offset);
	int error = disk_begin_write(inode);

	return error ? error : cached_file_direct(&inode->pages, from, offset, true);
}

/* Cut at the limits of the process (RLIMIT_FSIZE), of the open file and of the inode; then, with
 * O_DSYNC or a synchronous mount, safe when it returns. */
static int disk_file_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct disk_inode *inode = disk_inode(file->inode);
	uint64_t most = from->length > 0 ? vfs_room_of(file, offset) : UINT64_MAX;
	uint64_t limit = ext_size_limit(&inode->ext), left = offset < limit ? limit - offset : 0;

	if (from->length > 0 && most > left)
		most = left;
	if (most == 0 || offset > (uint64_t)INT64_MAX - from->length)
		return -EFBIG;
	if (from->length > most)
		from->length = most;
	mutex_lock(&inode->lock);
	int moved = write_locked(file, from, offset), error = 0;

	mutex_unlock(&inode->lock);
	if (moved > 0 && (file->flags & O_DSYNC || disk_is_synchronous(inode)))
		error = cached_file_sync(file, (file->flags & O_SYNC) != O_SYNC);
	return error ? error : moved;
}

static struct memory_object *disk_memory(struct file *file)
{
	return &disk_inode(file->inode)->pages.cache.object;
}

const struct file_ops disk_file_ops = {
	.open = disk_open,
	.read = disk_file_read,
	.write = disk_file_write,
	.size = vfs_file_size,
	.memory = disk_memory,
	.control = disk_control,
	.sync = cached_file_sync,
	.advise = cached_file_advise,
};

static int disk_directory_sync(struct file *file, bool data_only)
{
	return cached_file_sync_of(&disk_inode(file->inode)->pages, file, false);
}

/* Where positions are hashes, the end of those, as on Linux. */
static uint64_t directory_size(const struct file *file)
{
	struct disk_inode *directory = disk_inode(file->inode);

	mutex_lock(&directory->mount->lock);
	return disk_unlock(directory->mount, ext_is_hashed(&directory->ext)) ? INT32_MAX
									     : file->inode->size;
}

const struct file_ops disk_directory_ops = {
	.open = disk_open,
	.read = vfs_read_directory,
	.size = directory_size,
	.control = disk_control,
	.sync = disk_directory_sync,
};
