/* Groups: descriptors, bitmaps, and the blocks that the file system has for itself. */
#pragma once

#include "fs/ext/changes.h"
#include "fs/ext/checksums.h"

/* Whether count blocks from first on are inside the file system and after the superblock. */
bool ext_range_valid(const struct ext_fs *fs, uint64_t first, uint64_t count);

/* Gets a block of metadata, from the cache or the disk. For one that cannot be read:
 * ext_unreadable. */
int ext_block_read(const struct ext_fs *fs, uint64_t block, enum block_purpose purpose,
		   struct cached_block **out);

/* How many blocks a group's inode table has. */
uint32_t ext_table_blocks(const struct ext_fs *fs);

/* Finds the first block of a group's inode table, checked. -EUCLEAN or the device's error. */
int ext_inode_table(struct ext_fs *fs, uint32_t group, uint64_t *table);

/* Copies a group's descriptor; what a small one has not is zero. ext_group_write puts it back, with
 * its checksum. */
int ext_group_read(const struct ext_fs *fs, uint32_t group, struct ext_group_desc *out);
int ext_group_write(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor);

/* The first block of a group, how many it has, and how many the copies of the superblock and of the
 * descriptors at its beginning take. */
uint64_t ext_group_first(const struct ext_fs *fs, uint32_t group);
uint32_t ext_group_blocks(const struct ext_fs *fs, uint32_t group);
uint32_t ext_group_overhead(const struct ext_fs *fs, uint32_t group);

/* The group of an inode or a block, and its index in it. */
static inline uint32_t ext_group_of_inode(const struct ext_fs *fs, uint32_t number, uint32_t *index)
{
	*index = (number - 1) % fs->super.s_inodes_per_group;
	return (number - 1) / fs->super.s_inodes_per_group;
}
uint32_t ext_group_of(const struct ext_fs *fs, uint64_t block, uint32_t *index);

/* Before the first change: no two groups have the same tables (-EUCLEAN). And what is free in all
 * of them together. */
int ext_groups_check(const struct ext_fs *fs, uint64_t *blocks, uint32_t *inodes);

/* Refuses a run that is not inside the file system, or has something in it that the file system has
 * for itself: what names it is damaged, and it must be neither written nor freed. -EUCLEAN. */
int ext_check_run(const struct ext_inode *inode, uint64_t first, uint32_t count);

/* ---- what the file system has for itself (fs/ext/own.c) ---- */

/* Finds it all. -EUCLEAN for tables outside the file system, -ENOMEM, or the device's error. Tables
 * that overlap are noted for ext_groups_check. ext_own_forget frees what was found. */
int ext_own_find(struct ext_fs *fs);
void ext_own_forget(struct ext_fs *fs);

/* The journal, which was opened after that. -EUCLEAN if it is where something else is. */
int ext_own_add_journal(struct ext_fs *fs);

/* What of it is among the blocks from `first` to `end` (exclusive), as far as it is in there: the
 * first run, which has a block at least. False: there is none, as of an empty range; so who goes on
 * at a run's end comes to an end. */
bool ext_own_run(const struct ext_fs *fs, uint64_t first, uint64_t end, struct ext_own *out);

/* ---- bitmaps (fs/ext/bitmap.c) ---- */

enum ext_bitmap_kind { EXT_BITMAP_BLOCKS, EXT_BITMAP_INODES };

/* A bitmap of a group, with a copy of the group's descriptor and what that says about it. */
struct ext_bitmap {
	struct ext_fs *fs;
	uint32_t group;
	enum ext_bitmap_kind kind;
	const char *name;
	struct ext_group_desc descriptor;
	uint64_t block;
	uint32_t bits;	  /* that the group has */
	uint32_t covered; /* bytes that the checksum covers */
	uint32_t free, checksum;
	uint16_t uninit;	     /* flag of the descriptor: it was never written */
	struct cached_block *buffer; /* NULL: it is not open */
};

/* What a descriptor says of a bitmap, and then the bitmap itself, checked and referenced; one that
 * was never written is made, and the descriptor on disk says so. -EUCLEAN or -EBADMSG for one that
 * is damaged; the console says it the first time. ext_bitmap_get does both; ext_bitmap_get_free is
 * for who looks for free blocks, and does not open a bitmap that has none. */
int ext_bitmap_find(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
		    struct ext_bitmap *out);
int ext_bitmap_open(struct ext_bitmap *bitmap);
int ext_bitmap_get(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
		   struct ext_bitmap *out);
int ext_bitmap_get_free(struct ext_fs *fs, uint32_t group, struct ext_bitmap *out);

/* Was a bitmap found to be damaged? Then the others are used, unless fs->failed. The second notes
 * one of inodes. */
bool ext_bitmap_is_bad(const struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind);
void ext_bitmap_note_bad(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
			 uint32_t free);

/* Is the group's bitmap of blocks damaged, and may the change go on (errors=continue)? */
static inline bool ext_is_left_alone(const struct ext_fs *fs, uint32_t group)
{
	return !fs->failed && ext_bitmap_is_bad(fs, group, EXT_BITMAP_BLOCKS);
}

/* After -EIO for somebody who allocates: as a damaged one, if there are other groups. For somebody
 * who frees it is an error, and nothing has changed. */
void ext_bitmap_note_unreadable(struct ext_fs *fs, uint32_t group, enum ext_bitmap_kind kind,
				int error);

/* Refuses an inode that its bitmap calls free. */
int ext_inode_check_used(struct ext_fs *fs, uint32_t number);

/* Sets or clears bits, which all have the other value, and writes the descriptor with the bitmap's
 * new checksum. The caller has changed the counts in it. When it fails, nothing has changed. */
int ext_bitmap_change(struct ext_bitmap *bitmap, uint32_t first, uint32_t count, bool value);

/* The first bit from `from` on, before `end`, that has the value in a | b; `end` if there is none.
 * b may be NULL. */
uint32_t ext_bits_find(const void *a, const void *b, uint32_t from, uint32_t end, bool value);
