/*
 * ioctls of files and directories of ext2, ext3 and ext4: their flags (chattr, lsattr), and where
 * their blocks are (filefrag); and SEEK_DATA and SEEK_HOLE.
 *
 * What is dirty gets its blocks first, so these tell of the disk alone. Between two answers of the
 * map the lock of the mount is free, so a file that is being written may be told piece by piece as
 * it was at different moments, as on Linux.
 *
 * ioctl_iflags(2), lseek(2), docs.kernel.org "Fiemap Ioctl". All may sleep.
 */
#include "fs/disk/ext_inode.h"
#include "fs/ext/disk.h"
#include "fs/vfs/mounts.h"
#include "kernel/abi/block.h"
#include "kernel/abi/file_flags.h"

/* ---- flags ---- */

/* The same flags in the two calls' order. */
static const struct {
	uint32_t ext, common;
} flags_both[] = { { EXT_FLAG_SYNC, 0x20 },    { EXT_FLAG_IMMUTABLE, 0x8 },
		   { EXT_FLAG_APPEND, 0x10 },  { EXT_FLAG_NODUMP, 0x80 },
		   { EXT_FLAG_NOATIME, 0x40 }, { EXT_FLAG_PROJECT, 0x200 } };

/* An immutable file can lose that flag, but until then no other changes. What the flags cannot do
 * here is refused: another kind of map, another way to write data. */
/* -EOPNOTSUPP, -EPERM. Flags outside EXT_FLAGS_SETTABLE are told by FS_IOC_GETFLAGS, and ignored
 * here, because chattr gives all back that it got. */
static int check_flags(const struct disk_inode *inode, uint32_t flags)
{
	uint32_t changed = (flags ^ inode->ext.flags) & EXT_FLAGS_SETTABLE;

	if (flags & ~ext_flags_of(&inode->ext) & EXT_FLAGS_SETTABLE ||
	    changed & ~EXT_FLAGS_CHANGEABLE)
		return -EOPNOTSUPP;
	return inode->ext.flags & flags & EXT_FLAG_IMMUTABLE && changed ? -EPERM : 0;
}

/* FS_IOC_SETFLAGS, chattr. They are metadata: what must be safe at once is committed at the end.
 * The lock of the mount is held from the check to the store, so two calls do not mix their flags.
 */
static int set_ext_flags(struct disk_inode *inode, uint32_t flags)
{
	if (inode->mount->read_only || ext_is_read_only(inode->mount->fs))
		return -EROFS;
	if (flags & ~EXT_FLAGS_VISIBLE)
		return -EOPNOTSUPP;
	mutex_lock(&inode->mount->lock);
	int error = check_flags(inode, flags);

	if (!error) {
		inode->ext.flags &= ~EXT_FLAGS_CHANGEABLE;
		inode->ext.flags |= flags & EXT_FLAGS_CHANGEABLE;
		inode->inode.changed = time_wall_ns();
		error = disk_inode_store(inode);
		disk_inode_update(inode);
	}
	return disk_finish(inode, disk_unlock(inode->mount, error));
}

/* FS_IOC_FSGETXATTR: xfs_io and tar read flags in the order that all of Linux's file systems share.
 */
static int give_common_flags(const struct disk_inode *inode, uint32_t argument)
{
	struct linux_fsxattr all = { .flags = 0 };

	for (unsigned i = 0; i < sizeof(flags_both) / sizeof(flags_both[0]); i++)
		if (inode->ext.flags & flags_both[i].ext)
			all.flags |= flags_both[i].common;
	return give(argument, &all, sizeof(all));
}

/* FS_IOC_FSSETXATTR. There are no projects but number 0. */
static int set_common_flags(struct disk_inode *inode, uint32_t argument)
{
	uint32_t flags = inode->ext.flags & EXT_FLAGS_VISIBLE;
	struct linux_fsxattr all;

	if (copy_from_user(&all, argument, sizeof(all)))
		return -EFAULT;
	for (unsigned i = 0; i < sizeof(flags_both) / sizeof(flags_both[0]); i++) {
		flags &= ~flags_both[i].ext;
		flags |= all.flags & flags_both[i].common ? flags_both[i].ext : 0;
	}
	return all.project ? -EOPNOTSUPP : set_ext_flags(inode, flags);
}

/* ---- blocks ---- */

/* One answer of the map, with the lock of the mount: as long as the run goes, holes included. */
int disk_map(struct disk_inode *inode, uint64_t block, struct ext_mapping *mapping)
{
	mutex_lock(&inode->mount->lock);
	return disk_unlock(inode->mount, ext_map_all(&inode->ext, block, mapping));
}

/* lseek's SEEK_HOLE and SEEK_DATA. An unwritten extent reads as zeros: it counts as a hole. The end
 * of the file is one, too. */
int disk_seek(struct inode *vfs, bool hole, uint64_t *offset)
{
	struct disk_inode *inode = disk_inode(vfs);
	uint32_t shift = inode->mount->block_shift;
	uint64_t block = *offset >> shift, end = ((vfs->size - 1) >> shift) + 1;
	struct ext_mapping mapping;
	int error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);

	for (; !error && block < end; block += mapping.length) {
		error = disk_map(inode, block, &mapping);
		if (!error && (mapping.physical == 0 || mapping.unwritten) == hole)
			break;
	}
	if (error)
		return error;
	if (block >= end && !hole)
		return -ENXIO;
	if (*offset < block << shift)
		*offset = block << shift;
	if (*offset > vfs->size)
		*offset = vfs->size;
	return 0;
}

/* The next extent, after a request's first bytes; 1: it does not fit, and the program asks again
 * from there. -EFAULT. With room for none (count 0) extents are only counted: filefrag asks that
 * first. */
static int give_extent(uint32_t address, struct linux_fiemap *map,
		       const struct linux_extent *extent)
{
	uint32_t to = address + sizeof(*map) + map->mapped * sizeof(*extent);

	if (extent->length == 0)
		return 0;
	if (map->count > 0 && map->mapped == map->count)
		return 1;
	if (map->count > 0 && give(to, extent, sizeof(*extent)))
		return -EFAULT;
	map->mapped++;
	return 0;
}

/* Gives the extents in a range of blocks. Each when the next one is known: the last one says so. */
static int give_extents(struct disk_inode *inode, uint32_t address, struct linux_fiemap *map,
			uint64_t block, uint64_t end)
{
	uint32_t shift = inode->mount->block_shift;
	struct linux_extent extent = { .length = 0 };
	struct ext_mapping mapping;
	int error = 0;

	for (; !error && block < end; block += mapping.length) {
		error = disk_map(inode, block, &mapping);
		if (error || mapping.physical == 0)
			continue;
		error = give_extent(address, map, &extent);
		if (mapping.length > end - block)
			mapping.length = end - block;
		extent = (struct linux_extent){ .logical = block << shift,
						.physical = mapping.physical << shift,
						.length = mapping.length << shift };
		extent.flags = (mapping.unwritten ? FIEMAP_EXTENT_UNWRITTEN : 0) |
			       (inode->ext.flags & EXT_FLAG_EXTENTS ? 0 : FIEMAP_EXTENT_MERGED);
	}
	extent.flags |= FIEMAP_EXTENT_LAST;
	return error ? error : give_extent(address, map, &extent);
}

/* FIEMAP, filefrag: the request has a range of bytes, and room for `count` extents after it; with
 * room for none the extents are only counted (docs.kernel.org, "Fiemap Ioctl"). */
static int give_map(struct disk_inode *inode, uint32_t argument)
{
	uint32_t shift = inode->mount->block_shift;
	uint64_t limit = ext_size_limit(&inode->ext);
	struct linux_fiemap map;

	if (copy_from_user(&map, argument, sizeof(map)))
		return -EFAULT;
	if (map.count > FIEMAP_EXTENTS || map.length == 0)
		return -EINVAL;
	if (map.start > limit)
		return -EFBIG;
	uint64_t end = map.length < limit - map.start ? map.start + map.length : limit;
	int error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);

	map.flags &= ~(FIEMAP_FLAG_SYNC | FIEMAP_FLAG_CACHE);
	map.mapped = 0;
	if (map.flags)
		error = -EBADR;
	if (!error)
		error = give_extents(inode, argument, &map, map.start >> shift,
				     ((end - 1) >> shift) + 1);
	if (give(argument, &map, sizeof(map)))
		return -EFAULT;
	return error < 0 ? error : 0;
}

/* FIBMAP: a block of a regular file becomes one of the disk; a hole becomes 0. */
/* A block number of 32 bits: -ERANGE for one beyond, as on Linux. An unwritten block is told as a
 * hole, since what is on the disk there is not the file's. */
static int give_block(struct disk_inode *inode, uint32_t argument)
{
	struct ext_mapping mapping;
	int32_t block;

	if (!inode_is(&inode->inode, S_IFREG))
		return -ENOTTY;
	if (copy_from_user(&block, argument, sizeof(block)))
		return -EFAULT;
	if (block < 0)
		return -EINVAL;
	int error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);

	if (!error)
		error = disk_map(inode, block, &mapping);
	if (error)
		return error;
	block = mapping.unwritten ? 0 : mapping.physical;
	return mapping.physical > INT32_MAX ? -ERANGE : give(argument, &block, sizeof(block));
}

/* -ENOTTY for a command of other devices: so isatty(3) knows a terminal. Of files and of
 * directories alike. FITRIM is of the whole file system, whichever file it comes by.
 */
int disk_control(struct file *file, uint32_t command, uint32_t argument)
{
	struct disk_inode *inode = disk_inode(file->inode);
	uint32_t flags = inode->ext.flags & EXT_FLAGS_VISIBLE & ext_flags_of(&inode->ext);

	switch (command) {
	case FITRIM:
		return disk_trim(inode->mount, argument);
	case FIBMAP:
		return give_block(inode, argument);
	case FIGETBSZ:
		return give(argument, &inode->inode.block_size, sizeof(uint32_t));
	case FS_IOC_GETFLAGS:
		return give(argument, &flags, sizeof(flags));
	case FS_IOC_SETFLAGS:
		return copy_from_user(&flags, argument, sizeof(flags))
			   ? -EFAULT
			   : set_ext_flags(inode, flags);
	case FS_IOC_GETVERSION:
		return give(argument, &inode->ext.generation, sizeof(uint32_t));
	case FS_IOC_FSGETXATTR:
		return give_common_flags(inode, argument);
	case FS_IOC_FSSETXATTR:
		return set_common_flags(inode, argument);
	case FS_IOC_FIEMAP:
		return give_map(inode, argument);
	}
	return -ENOTTY;
}
