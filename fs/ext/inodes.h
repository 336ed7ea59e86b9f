/* Inodes: in the table on the disk, changed, new, freed, and orphans. */
#pragma once

#include "fs/ext/groups.h"

/* A short symbolic link is written where other inodes have their map. */
static inline bool ext_is_short_symlink(const struct ext_inode *inode)
{
	return ext_is_symlink(inode) && inode->size < sizeof(inode->map);
}

/* Whether an inode on disk has the bytes up to `end`, which is beyond the first 128. */
static inline bool ext_inode_has(const struct ext_fs *fs, const struct ext_disk_inode_large *disk,
				 size_t end)
{
	return fs->inode_size > EXT_OLD_INODE_SIZE &&
	       EXT_OLD_INODE_SIZE + (size_t)disk->i_extra_isize >= end && end <= fs->inode_size;
}

/* The first block of an inode's group, where goes what has no better place. */
uint64_t ext_inode_goal(const struct ext_inode *inode);

/* The block of the inode table that has an inode. */
int ext_inode_block(struct ext_fs *fs, uint32_t number, struct cached_block **out);

/* The same to change it: the block is part of the transaction, so that ext_inode_write cannot fail
 * while the caller has it; bcache_put ends that. */
int ext_inode_pin(struct ext_fs *fs, uint32_t number, struct cached_block **out);

/* ext_inode_read without the checks of contents: for inodes without links. */
int ext_inode_load(struct ext_fs *fs, uint32_t number, struct ext_inode *out);

/* Which one of its block's an inode is. */
static inline uint32_t ext_inode_place(const struct ext_fs *fs, uint32_t number)
{
	uint32_t index;

	ext_group_of_inode(fs, number, &index);
	return index & (fs->summary.block_size / fs->inode_size - 1);
}

/* The inode in its block. */
static inline struct ext_disk_inode_large *ext_inode_in(const struct ext_fs *fs, uint32_t number,
							const struct cached_block *buffer)
{
	uint32_t offset = ext_inode_place(fs, number) * fs->inode_size;

	return (struct ext_disk_inode_large *)(buffer->data + offset);
}

/* An inode in a block of the table was changed: it gets its checksum when the block goes to the
 * disk or into the journal, once for all changes. */
void ext_inode_changed(const struct ext_fs *fs, uint32_t number, struct cached_block *buffer);

/* A change of one inode begins, with the inode pinned; and ends. Returns the first of `error`, what
 * came before, and what fails now. There is one at a time in a mount. */
int ext_inode_begin(struct ext_inode *inode);
int ext_inode_end(struct ext_inode *inode, int error);

/* Writes the inode also after an error, which is returned then: its map may be another one. */
int ext_inode_write_after(struct ext_inode *inode, int error);

/* Allocates an inode near its directory, with no links and no blocks; times are now. The caller has
 * begun, sets links, and calls ext_inode_write. -ENOSPC. Directories, files and symbolic links have
 * an empty map: a short symbolic link clears EXT_FLAG_EXTENTS before it writes there. */
int ext_inode_new(const struct ext_inode *directory, const struct ext_new *new,
		  struct ext_inode *out);

/* An inode that is freed gives its block of extended attributes back (attributes_change.c). */
int ext_attributes_release(struct ext_inode *inode);

/* Gives an inode back that has no blocks and no links any more. */
int ext_inode_free(struct ext_inode *inode);

/* An inode without links is used until ext_release: it is in the list of orphans meanwhile. */
int ext_orphan_add(struct ext_inode *inode);
int ext_orphan_remove(struct ext_inode *inode);

/* Refuses a number that no inode in the list can have: -EUCLEAN. */
int ext_orphan_check(const struct ext_fs *fs, uint32_t number);

/* When a mount begins to write: what is in the orphan file goes to the list (orphan_file.c). */
int ext_orphan_file_empty(struct ext_fs *fs);

/* Goes on with a file that was being cut when the last session ended. */
int ext_orphan_cut(struct ext_inode *inode);
