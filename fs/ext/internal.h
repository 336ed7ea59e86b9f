/* What the parts of the ext file system share. */
#pragma once

#include "fs/cache/bcache.h"
#include "fs/ext/disk.h"
#include "fs/ext/ext.h"

/* A mount. Every field was checked by ext_mount, and none changes after it. */
struct ext_fs {
	struct block_device *device;
	struct ext_summary summary;
	unsigned block_shift; /* log2 of the block size */
	uint32_t inode_size;  /* bytes */
	uint32_t first_inode; /* the first that is not reserved */
	struct ext_super_block super;
};

static inline bool ext_has_incompat(const struct ext_fs *fs, uint32_t feature)
{
	return (fs->super.s_feature_incompat & feature) != 0;
}

static inline bool ext_has_ro_compat(const struct ext_fs *fs, uint32_t feature)
{
	return (fs->super.s_feature_ro_compat & feature) != 0;
}

/* A short symbolic link is written where other inodes have their map. */
static inline bool ext_is_short_symlink(const struct ext_inode *inode)
{
	return ext_is_symlink(inode) && inode->size < sizeof(inode->map);
}

/* Says on the console what is wrong with the contents of the disk: "hdc: group 3: ...". Returns
 * -EUCLEAN. */
int ext_corrupt(const struct ext_fs *fs, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, for an inode and what belongs to it: "hdc: inode 12: ...". */
int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether count blocks from first on are inside the file system and after the superblock. */
bool ext_range_valid(const struct ext_fs *fs, uint64_t first, uint64_t count);

/* Refuses (-EOPNOTSUPP, -EUCLEAN) what this driver must not mount; fills in what the features tell
 * about the summary. */
int ext_features_check(struct ext_fs *fs);

/* Finds the first block of a group's inode table, checked. -EUCLEAN or the device's error. */
int ext_inode_table(const struct ext_fs *fs, uint32_t group, uint64_t *table);

/* Gets a pointer block or extent block of an inode, from the cache. -EUCLEAN for a block outside
 * the file system. */
int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out);

/* ext_map for the two formats, for a block of the file. When they begin, *out is a hole of depth 0
 * up to the end of the file; the caller cuts a length that goes further. */
int ext_map_pointers(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);
int ext_map_extents(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/* Continues a CRC-32C (Castagnoli), bits not inverted. */
uint32_t ext_crc32c(uint32_t crc, const void *data, size_t length);

/* ---- to change (fs/ext/change.c) ---- */

/* A change of at most `blocks` blocks begins, and ends: journal_begin and journal_end, or nothing
 * where there is no journal. -EROFS on a mount that is read-only. */
int ext_begin(struct ext_fs *fs, uint32_t blocks);
void ext_end(struct ext_fs *fs);

/* Before a cached block is changed: it becomes part of the transaction, or, without a journal,
 * dirty. */
int ext_change(struct ext_fs *fs, struct cached_block *buffer);

/* The seed of all checksums of the file system, and of those of an inode's blocks (crc32c of its
 * number and generation). Valid with metadata_csum only. */
uint32_t ext_checksum_seed(const struct ext_fs *fs);
uint32_t ext_inode_seed(const struct ext_inode *inode);
bool ext_has_checksums(const struct ext_fs *fs);

/* ---- blocks and inodes (fs/ext/allocate.c, inode_write.c) ---- */

/* Allocates the block `logical` of a directory or a symbolic link, which has none, and gives it as
 * zeros, already part of the transaction. The caller has begun, sets the size, and calls
 * ext_inode_write. */
int ext_block_add(struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* The block `logical` of a directory or symbolic link, read. -EUCLEAN for a hole. */
int ext_block_get(const struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* Allocates an inode near its directory, with no links and no blocks; times are now. The caller has
 * begun, sets links, and calls ext_inode_write. -ENOSPC. */
int ext_inode_new(const struct ext_inode *directory, uint16_t mode, const struct ext_inode *like,
		  struct ext_inode *out);

/* An inode without links is used until ext_release: it is in the list of orphans meanwhile. */
int ext_orphan_add(struct ext_inode *inode);
int ext_orphan_remove(struct ext_inode *inode);
