/* Which blocks are free, and who gets them. */
#pragma once

#include "fs/ext/groups.h"

/* Free blocks of groups that ext_room has looked at. */
uint64_t ext_sure_blocks(const struct ext_fs *fs);

/* Allocates 1 to `count` neighbouring blocks for an inode, at `goal` or as near as there is a free
 * run. Returns how many, or -ENOSPC or another error. Counts them in the inode's copy. */
int ext_blocks_allocate(struct ext_inode *inode, uint64_t goal, uint32_t count, uint64_t *first);

/* One block of metadata, in the inode's group if there is room: zeros, in the transaction, and
 * referenced. */
int ext_metadata_allocate(struct ext_inode *inode, uint64_t goal, struct cached_block **out);

/* Frees blocks of an inode, all in one group. metadata: they were changed through the cache, where
 * nobody may hold them. When it fails, nothing has changed. Where the bitmap is damaged they only
 * stop being the inode's: e2fsck finds them. */
int ext_blocks_free(struct ext_inode *inode, uint64_t first, uint32_t count, bool metadata);

/* An inode has `count` blocks less. One that is damaged may have counted fewer: then none is left,
 * as 2^48 blocks would make a short symbolic link a long one. */
void ext_count_freed(struct ext_inode *inode, uint32_t count);

/* How many blocks there are from here to the end of the group. */
uint32_t ext_blocks_to_group_end(const struct ext_fs *fs, uint64_t block);

/* After a commit: what it has freed can be allocated. */
void ext_pending_clear(struct ext_fs *fs);

/* How many blocks are reserved for root. Sets how many are free. */
uint64_t ext_reserved_blocks(const struct ext_fs *fs);
void ext_count_free(struct ext_fs *fs, uint64_t blocks);
