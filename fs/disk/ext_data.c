/*
 * Contents of files of ext2, ext3 and ext4: between the page cache and the disk.
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

#include "fs/ext/disk.h"

#define MEMORY_TRIES 100u /* to write when there is no memory */
#define MEMORY_MS    20

static struct disk_inode *inode_of(const struct cached_file *pages)
{
	return list_entry(pages, struct disk_inode, pages);
}

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
	return disk_unlock(inode->mount, error);
}

/* A piece for each answer of the map: a run on the disk, or zeros for a hole. It is read without
 * the lock, so others may use the mount meanwhile. */
static int disk_pages_read(struct cached_file *pages, uint64_t offset, void *to, uint32_t length)
{
	struct disk_inode *inode = inode_of(pages);
	uint32_t shift = inode->mount->block_shift, done = 0;
	uint64_t end = ((offset + length - 1) >> shift) + 1;
	struct ext_mapping mapping;

	while (done < length) {
		uint64_t block = (offset + done) >> shift;
		int part = map_part(inode, block, (uint32_t)(end - block), &mapping);

		if (!part)
			part = ext_read_mapped(inode->mount->fs, &mapping, offset + done,
					       (uint8_t *)to + done, length - done);
		if (part < 0)
			return part;
		done += part;
	}
	return 0;
}

/* Returns how many bytes were written, or an error for the first. */
static int write_now(struct disk_inode *inode, uint64_t offset, const void *from, uint32_t length,
		     bool has_reserved)
{
	mutex_lock(&inode->mount->lock);
	if (!has_reserved)
		disk_need_blocks(inode->mount,
				 (length >> inode->mount->block_shift) + DISK_NAME_BLOCKS);
	inode->ext.has_reserved = has_reserved;
	int written = ext_write(&inode->ext, offset, from, length);

	inode->ext.has_reserved = false;
	inode->is_changed = true; /* the library's times are those of the write-back */
	inode->ext.changed = inode->inode.changed;
	disk_inode_update(inode);
	int error = disk_unlock(inode->mount, disk_inode_store(inode));

	return error ? error : written;
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
		moved = write_now(inode, offset + done, (const uint8_t *)from + done, length - done,
				  true);
		done += moved > 0 ? moved : 0;
		if (moved == -ENOMEM)
			msleep(MEMORY_MS);
	} while (done < length && (moved > 0 || (moved == -ENOMEM && --tries > 0)));
	if (done == length)
		return 0;
	return disk_inode_lost(inode, offset + done, length - done, moved < 0 ? moved : -ENOSPC);
}

/* O_DIRECT: with no page and nothing reserved. On a full disk as much as fits. */
static int disk_write_direct(struct cached_file *pages, uint64_t offset, const void *from,
			     uint32_t length)
{
	return write_now(inode_of(pages), offset, from, length, false);
}

/* The size that programs see; the library's follows with the write-back. */
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

/* Do these blocks need no other: are they there, with contents? Or (can_fill) those that fallocate
 * gave, without: if the map might need a block for their contents, they all become zeros now. */
static bool is_allocated(struct disk_inode *inode, uint64_t block, uint64_t end, bool can_fill)
{
	mutex_lock(&inode->mount->lock);
	bool is_so = disk_missing(inode, block, end, !can_fill) == 0;

	if (is_so && can_fill && (inode->pages.unwritten > 0 || !ext_map_has_room(&inode->ext))) {
		for (; is_so && block < end; block++)
			is_so = disk_missing(inode, block, block + 1, true) == 0 ||
				ext_fill_extent(&inode->ext, block) == 0;
		disk_inode_update(inode);
	}
	return disk_unlock(inode->mount, is_so);
}

int disk_begin_write(struct disk_inode *inode)
{
	if (inode->mount->read_only || ext_is_read_only(inode->mount->fs))
		return -EROFS;
	if (inode->inode.is_immutable)
		return -EPERM;
	inode->inode.modified = inode->inode.changed = ext_time_kept(&inode->ext, time_wall_ns());
	inode->is_changed = true;
	inode->asked = 0;
	return 0;
}

/* Nothing can be reserved: the blocks that are written must be there. If others of the page are
 * not, it becomes clean before more of it is written. */
static int write_unreserved(struct disk_inode *inode, uint64_t offset, uint32_t length)
{
	uint32_t shift = inode->mount->block_shift;
	uint64_t page = offset >> PAGE_SHIFT << (PAGE_SHIFT - shift), block = offset >> shift;
	uint64_t end = ((offset + length - 1) >> shift) + 1;

	if (is_allocated(inode, page, page + (1u << (PAGE_SHIFT - shift)), false))
		return 0;
	if (!is_allocated(inode, block, end, false)) {
		cached_files_write_back(false);
		int error = disk_reserve_page(inode);

		if (error != -ENOSPC || !is_allocated(inode, block, end, true))
			return error;
	}
	inode->is_full = true;
	return 0;
}

/* Before bytes come into a page: whether the file may be written, and whether there is room for it,
 * is known now, and not when it is written back. -EROFS, -EPERM, -ENOSPC. */
static int disk_will_write(struct cached_file *pages, uint64_t offset, uint32_t length)
{
	struct disk_inode *inode = inode_of(pages);
	uint32_t index = offset >> PAGE_SHIFT;
	int error = disk_begin_write(inode);

	if (error)
		return error;
	if (inode->is_full) {
		cached_file_write_back(pages, index, index + 1);
		inode->is_full = pages->unwritten > 0;
	}
	const struct cached_page *cached = page_cache_find(&pages->cache, index);

	disk_inode_count(inode, 1);
	if (!(cached && cached->is_dirty))
		error = disk_reserve_page(inode);
	return error == -ENOSPC ? write_unreserved(inode, offset, length) : error;
}

/* A page that is mapped or written back needs its inode: the last of these references may be what
 * keeps it. */
static void disk_hold(struct cached_file *pages)
{
	inode_hold(&inode_of(pages)->inode);
}

static void disk_release(struct cached_file *pages)
{
	inode_put(&inode_of(pages)->inode);
}

/* For fs/cache, which knows neither inodes nor disks. */
const struct cached_file_ops disk_pages_ops = { .read = disk_pages_read,
						.write = disk_pages_write,
						.write_direct = disk_write_direct,
						.size = disk_size,
						.grow = disk_grow,
						.will_write = disk_will_write,
						.commit = disk_commit_inode,
						.hold = disk_hold,
						.release = disk_release };
