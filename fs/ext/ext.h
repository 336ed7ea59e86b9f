/* The ext2, ext3 and ext4 file systems, read only: mount, look up, map, read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/disk/block.h"

#define EXT_NAME_MAX 255

struct ext_fs;

/* An inode in memory. A copy: it may be thrown away without a call. */
struct ext_inode {
	struct ext_fs *fs;
	uint32_t number;
	uint16_t mode; /* type and permissions, as in i_mode */
	uint16_t links;
	uint32_t flags;
	uint64_t size;	  /* bytes */
	uint64_t blocks;  /* sectors of 512 bytes, mapping blocks included */
	uint32_t map[15]; /* i_block: pointers, the root of an extent tree, or a short symlink */
};

/* Where a logical block is. */
struct ext_mapping {
	uint64_t physical; /* block number; 0: a hole */
	uint64_t length;   /* blocks from here on that this answer covers, at least 1 */
	bool unwritten;	   /* allocated, but reads as zeros */
	unsigned depth;	   /* mapping blocks on the way from the inode */
};

/* What a mounted file system is, for reports. Valid as long as the mount. */
struct ext_summary {
	const char *type;    /* "ext2", "ext3" or "ext4", told from the features as blkid does */
	uint32_t block_size; /* bytes */
	uint64_t blocks;
	uint32_t inodes;
	uint32_t groups;
	uint32_t descriptor_size; /* bytes: 32 or 64 */
	char label[17];
	bool read_only_features; /* has a ro_compat feature that we do not know */
};

/*
 * Mounts the file system on a device, read only. Returns 0 and the mount in *out; -EINVAL when
 * there is no ext file system; -EUCLEAN when the superblock or the descriptors contradict
 * themselves, or the journal must be replayed first; -EOPNOTSUPP for an incompatible feature that
 * we do not know; -ENOMEM; or the device's error. The console says what was refused and why, with
 * names. Several mounts may exist; ext_unmount frees one.
 */
int ext_mount(struct block_device *device, struct ext_fs **out);
void ext_unmount(struct ext_fs *fs);
const struct ext_summary *ext_summary(const struct ext_fs *fs);

/* Reads inode `number`. -EINVAL for a number that does not exist, -EUCLEAN for invalid contents,
 * such as those of an unused inode. */
int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *out);

/* Looks a path up, from the root, following symbolic links, a last one too (at most 8: -ELOOP).
 * -ENOENT, -ENOTDIR, -ENAMETOOLONG as usual. */
int ext_lookup(struct ext_fs *fs, const char *path, struct ext_inode *out);

/* Maps a logical block, through pointers or extents. A block past the end of the file is a hole.
 * -EUCLEAN for a tree that contradicts itself (said on the console); never loops. -EINVAL for what
 * has no blocks: devices, pipes, short symbolic links. */
int ext_map(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/*
 * Reads up to length bytes (below 2 GiB) from offset: of a file's contents, or a symbolic link's
 * target. Returns the bytes read (0 at or past the end), or a negative errno when any of them could
 * not be read. Data goes past the cache, in whole sectors and no more of them than needed: a
 * 512-byte read of one sector is one request of one sector. Holes and unwritten blocks read as
 * zeros without a request.
 */
int ext_read(const struct ext_inode *inode, uint64_t offset, void *buffer, uint32_t length);

/* Calls visit for every entry of a directory, "." and ".." included, until it returns non-zero,
 * which is then returned. name is NUL-terminated and valid during the call; type is the entry's
 * file_type, 0 when the file system does not have that feature. -ENOTDIR, -EUCLEAN or the device's
 * error. */
int ext_list(const struct ext_inode *directory,
	     int (*visit)(void *context, const char *name, uint32_t inode, uint8_t type),
	     void *context);

bool ext_is_directory(const struct ext_inode *inode);
bool ext_is_regular(const struct ext_inode *inode);
bool ext_is_symlink(const struct ext_inode *inode);
