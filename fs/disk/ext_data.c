/*
 * Contents of files of ext2, ext3 and ext4: struct file_ops, and the operations for the page cache.
 *
 * A read asks for the map with the mount's lock, and for the data without it: blocks that are freed
 * meanwhile do no harm, because the cache notes the change and reads again
 * (fs/cache/cached_file.c). A write does both with the lock, because the library allocates, writes
 * and then says so in one change.
 *
 *	write	pages become dirty: no block is allocated yet
 *	later	pages are written back in runs: blocks for a whole run are allocated at once
 *
 * So that a full disk is an error of write, and not of the write-back after it, write reserves
 * blocks (ext_reserve.c). When they become scarce, it writes back first. Past the cache an error is
 * the program's alone: only contents that a write has accepted can be lost.
 */
#include "fs/disk/ext_inode.h"

#include <stddef.h>

#include "fs/ext/disk.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/task/time.h"
#include "kernel/task/wait.h"
#include "mm/page_table.h"

#define DAY_NS	     86400000000000ll
#define MEMORY_TRIES 100u /* to write when there is no memory */
#define MEMORY_MS    20

static struct disk_inode *inode_of(const struct cached_file *pages)
{
	return list_entry(pages, struct disk_inode, pages);
}

/* ---- for the page cache ---- */

/* Where `block` is, and at most `count` after it. The last answer is true as long as nobody has
 * called the library to change it: disk_inode_update drops it then, with the lock. */
static int map_part(struct disk_inode *inode, uint64_t block, uint32_t count,
		    struct ext_mapping *out)
{
	uint64_t skip = block - inode->mapped;

	if (skip < inode->mapping.length && !inode->mount->lock.owner) {
		*out = inode->mapping;
		out->length -= skip;
		out->physical += out->physical ? skip : 0;
		return 0;
	}
	mutex_lock(&inode->mount->lock);
	int error = ext_map_some(&inode->ext, block, count, out);

	inode->mapped = block;
	inode->mapping = *out;
	if (error)
		inode->mapping.length = 0;
	mutex_unlock(&inode->mount->lock);
	return error;
}

/* Reads as much as one answer of the map gives. Returns how many bytes, or an error. */
static int read_mapped(struct disk_inode *inode, uint64_t offset, void *to, uint32_t length)
{
	struct disk_mount *mount = inode->mount;
	uint32_t skip = (uint32_t)offset & ((1u << mount->block_shift) - 1);
	struct ext_mapping mapping;
	int error = map_part(inode, offset >> mount->block_shift,
			     ((skip + length - 1) >> mount->block_shift) + 1, &mapping);

	if (error)
		return error;
	if (mapping.length <= (skip + length) >> mount->block_shift)
		length = ((uint32_t)mapping.length << mount->block_shift) - skip;
	if (mapping.physical == 0 || mapping.unwritten) {
		memset(to, 0, length);
		return length;
	}
	error = block_read(mount->device,
			   ((mapping.physical << mount->block_shift) + skip) / SECTOR_SIZE,
			   length / SECTOR_SIZE, to, BLOCK_DATA);
	return error ? error : (int32_t)length;
}

static int disk_pages_read(struct cached_file *pages, uint64_t offset, void *to, uint32_t length)
{
	uint32_t done = 0;

	while (done < length) {
		int part = read_mapped(inode_of(pages), offset + done, (uint8_t *)to + done,
				       length - done);

		if (part < 0)
			return part;
		done += part;
	}
	return 0;
}

/* With the mount's lock. Returns how many bytes were written, or an error for the first. */
static int write_now(struct disk_inode *inode, uint64_t offset, const void *from, uint32_t length,
		     bool has_reserved)
{
	uint32_t done = 0;
	int written = 1;

	inode->ext.has_reserved = has_reserved;
	while (done < length && written > 0) {
		written = ext_write(&inode->ext, offset + done, (const uint8_t *)from + done,
				    length - done);
		done += written > 0 ? written : 0;
	}
	inode->ext.has_reserved = false;
	inode->is_changed = true; /* the library's times are those of the write-back */
	inode->ext.changed = inode->inode.changed;
	disk_inode_update(inode);
	int error = disk_inode_store(inode);

	return error ? error : done ? (int32_t)done : written;
}

/* A write that was cut short is a full disk, or an error that is said for its first byte. Memory
 * comes back when a program ends, so for that it waits; but not for ever. */
static int disk_pages_write(struct cached_file *pages, uint64_t offset, const void *from,
			    uint32_t length)
{
	struct disk_inode *inode = inode_of(pages);
	unsigned tries = MEMORY_TRIES;
	uint32_t done = 0;
	int moved;

	do {
		mutex_lock(&inode->mount->lock);
		moved = write_now(inode, offset + done, (const uint8_t *)from + done, length - done,
				  true);
		mutex_unlock(&inode->mount->lock);
		done += moved > 0 ? moved : 0;
		if (moved == -ENOMEM)
			msleep(MEMORY_MS);
	} while (done < length && (moved > 0 || (moved == -ENOMEM && --tries > 0)));
	if (done == length)
		return 0;
	return disk_inode_lost(inode, offset + done, length - done, moved < 0 ? moved : -ENOSPC);
}

/* On a full disk as much as there is room for. */
static int disk_write_direct(struct cached_file *pages, uint64_t offset, const void *from,
			     uint32_t length)
{
	struct disk_inode *inode = inode_of(pages);
	struct disk_mount *mount = inode->mount;

	mutex_lock(&mount->lock);
	disk_make_room(mount, (length >> mount->block_shift) + DISK_NAME_BLOCKS);
	int moved = write_now(inode, offset, from, length, false);

	mutex_unlock(&mount->lock);
	return moved;
}

static uint64_t disk_size(const struct cached_file *pages)
{
	return inode_of(pages)->inode.size;
}

/* A page is about to become dirty, unless the write went past the cache: that has its blocks. */
static void disk_grow(struct cached_file *pages, uint64_t size)
{
	inode_of(pages)->inode.size = size;
	if (inode_of(pages)->pages.dirty > 0 || inode_of(pages)->inode.blocks == 0)
		disk_inode_count(inode_of(pages), 1);
}

/* Does the page have all its blocks, with contents (is_written), or at least without? */
static bool is_allocated(struct disk_inode *inode, uint32_t index, bool is_written)
{
	uint32_t shift = PAGE_SHIFT - inode->mount->block_shift;
	uint64_t block = (uint64_t)index << shift;

	mutex_lock(&inode->mount->lock);
	uint64_t count = disk_missing(inode, block, block + (1u << shift), is_written);

	mutex_unlock(&inode->mount->lock);
	return count == 0;
}

/* Can blocks that fallocate gave be written without others? If the map might need one, they all
 * become zeros now; what is written later needs none then. */
static bool can_convert(struct disk_inode *inode, uint32_t index)
{
	uint32_t shift = PAGE_SHIFT - inode->mount->block_shift;
	uint64_t block = (uint64_t)index << shift, end = block + (1u << shift);

	if (!is_allocated(inode, index, false))
		return false;
	mutex_lock(&inode->mount->lock);
	bool can = inode->pages.unwritten == 0 && ext_map_has_room(&inode->ext);

	for (; !can && block < end; block++)
		if (disk_missing(inode, block, block + 1, true) > 0 &&
		    ext_fill_extent(&inode->ext, block) != 0)
			break;
	can |= block == end;
	disk_inode_update(inode);
	mutex_unlock(&inode->mount->lock);
	return can;
}

/* May the file be written to? Then its times change. */
static int begin_write(struct disk_inode *inode)
{
	if (inode->mount->read_only || ext_is_read_only(inode->mount->fs))
		return -EROFS;
	if (inode->inode.is_immutable)
		return -EPERM;
	inode->inode.modified = inode->inode.changed = ext_time_kept(&inode->ext, inode_now());
	inode->is_changed = true;
	inode->asked = 0;
	return 0;
}

static int disk_will_write(struct cached_file *pages, uint32_t index)
{
	struct disk_inode *inode = inode_of(pages);
	struct cached_page *cached = page_cache_find(&pages->cache, index);
	int error = begin_write(inode);

	if (!error)
		disk_inode_count(inode, 1);
	if (!error && !(cached && cached->is_dirty))
		error = disk_reserve_page(inode);
	if (error != -ENOSPC || is_allocated(inode, index, true))
		return error == -ENOSPC ? 0 : error;
	cached_files_write_back(false);
	error = disk_reserve_page(inode);
	return error == -ENOSPC && can_convert(inode, index) ? 0 : error;
}

static void disk_hold(struct cached_file *pages)
{
	inode_hold(&inode_of(pages)->inode);
}

static void disk_release(struct cached_file *pages)
{
	inode_put(&inode_of(pages)->inode);
}

const struct cached_file_ops disk_pages_ops = { .read = disk_pages_read,
						.write = disk_pages_write,
						.write_direct = disk_write_direct,
						.size = disk_size,
						.grow = disk_grow,
						.will_write = disk_will_write,
						.commit = disk_commit_inode,
						.hold = disk_hold,
						.release = disk_release };

/* ---- open files ---- */

static bool is_newer_than_changes(const struct inode *inode)
{
	return inode->accessed > inode->modified && inode->accessed > inode->changed;
}

/* "relatime": at the first read after a write, and once a day. */
static __attribute__((noinline)) void note_access(struct disk_inode *inode, uint32_t period)
{
	struct inode *vfs = &inode->inode;
	int64_t now = inode_now();

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

static __attribute__((noinline)) int read_direct(struct disk_inode *inode, struct buffer *to,
						 uint64_t offset)
{
	mutex_lock(&inode->turn);
	int moved = cached_file_direct(&inode->pages, to, offset, false);

	mutex_unlock(&inode->turn);
	return moved;
}

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

/* What an area has stored after the end, in the last page, is zeros once the file is longer. */
static int write_in_turn(struct file *file, struct buffer *from, uint64_t offset)
{
	struct disk_inode *inode = disk_inode(file->inode);

	if (file->flags & O_APPEND)
		offset = file->inode->size;
	if (offset > file->inode->size)
		cached_file_zero_tail(&inode->pages, file->inode->size);
	if (!(file->flags & O_DIRECT) || must_be_cached(inode, offset))
		return cached_file_write(&inode->pages, from, offset);
	int error = begin_write(inode);

	return error ? error : cached_file_direct(&inode->pages, from, offset, true);
}

static int disk_file_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct disk_inode *inode = disk_inode(file->inode);
	uint64_t room = from->length > 0 ? vfs_room_of(file, offset) : UINT64_MAX;
	uint64_t limit = ext_size_limit(&inode->ext), left = offset < limit ? limit - offset : 0;

	if (from->length > 0 && room > left)
		room = left;
	if (room == 0 || offset > (uint64_t)INT64_MAX - from->length)
		return -EFBIG;
	if (from->length > room)
		from->length = room;
	mutex_lock(&inode->turn);
	int moved = write_in_turn(file, from, offset), error = 0;

	mutex_unlock(&inode->turn);
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
	bool is_hashed = ext_is_hashed(&directory->ext);

	mutex_unlock(&directory->mount->lock);
	return is_hashed ? INT32_MAX : file->inode->size;
}

const struct file_ops disk_directory_ops = {
	.open = disk_open,
	.read = vfs_read_directory,
	.size = directory_size,
	.control = disk_control,
	.sync = disk_directory_sync,
};
