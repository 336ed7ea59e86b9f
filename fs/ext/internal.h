/* Shared by the files of the ext file system. */
#pragma once

#include "fs/cache/bcache.h"
#include "fs/ext/disk.h"
#include "fs/ext/ext.h"
#include "fs/jbd2/checksum.h"

/* Blocks of a group that the open transaction has freed: until its commit, nobody may have them. */
struct ext_pending {
	uint32_t group;
	uint8_t *bits; /* a page, as a block bitmap: 1 is freed */
};

/* Free blocks right after a growing file's last one, that others leave alone. */
struct ext_window {
	uint32_t inode; /* 0: none */
	uint64_t first, end;
};

/* Blocks that no file may have, `end` excluded. */
struct ext_own {
	uint64_t first, end;
};

#define EXT_PENDING 64
#define EXT_WINDOWS 16
#define EXT_BAD	    128

/*
 * A mount. Every field of the first part was checked by ext_mount, and only counts and times of the
 * superblock change after it. The second part is for mounts that write.
 */
struct ext_fs {
	struct block_device *device;
	struct ext_summary summary;
	unsigned block_shift; /* log2 of the block size */
	uint32_t inode_size;  /* bytes */
	uint32_t first_inode; /* the first that is not reserved */
	struct ext_super_block super;
	struct ext_own *own; /* 2^own_order pages of runs: what the file system has for itself */
	uint32_t own_count;
	unsigned own_order;
	uint32_t wrong_group; /* the first whose tables are something else's, plus 1; 0: none */

	struct ext_options options;
	bool must_be_clean;	 /* refuse what has a journal to be replayed */
	bool writable;		 /* was mounted to be written */
	bool was_valid;		 /* the last session ended, or e2fsck did */
	bool failed;		 /* contradictions were found: read-only now */
	bool super_changed;	 /* newer than super_buffer */
	bool cut_left;		 /* a truncate failed: a file with names may be among the orphans */
	bool pending_lost;	 /* more was freed than pending has: commit before anything else */
	uint32_t seed;		 /* of checksums */
	uint32_t generation;	 /* of the inode that was made last */
	uint32_t next_group;	 /* for the next directory in the root */
	unsigned nesting;	 /* of ext_begin */
	struct journal *journal; /* NULL: none */
	struct cached_block *super_buffer;
	struct ext_pending pending[EXT_PENDING];
	unsigned pending_count;
	struct ext_window windows[EXT_WINDOWS];
	unsigned next_window;
	/* Bitmaps that contradict themselves (ext_bitmap_is_bad): group * 2 + enum ext_bitmap. The
	 * blocks and inodes that their descriptors call free are not used. */
	uint32_t bad[EXT_BAD];
	unsigned bad_count;
	uint64_t unusable; /* blocks */
	/* Free blocks of the first `looked_at` groups, whose bitmaps are sound (ext_room). */
	uint64_t sure;
	uint32_t looked_at;
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

/* The same for a block of metadata that cannot be read. Returns -EIO. */
int ext_unreadable(const struct ext_fs *fs, uint64_t block);

/* The superblock asks for e2fsck from now on: something is in use that nothing names, for instance.
 * In a mount that writes. */
void ext_ask_for_check(struct ext_fs *fs);

/* Whether count blocks from first on are inside the file system and after the superblock. */
bool ext_range_valid(const struct ext_fs *fs, uint64_t first, uint64_t count);

/* Refuses (-EOPNOTSUPP, -EUCLEAN) what this driver must not mount; fills in what the features tell
 * about the summary. */
int ext_features_check(struct ext_fs *fs);

/* How many blocks a group's inode table has. */
uint32_t ext_table_blocks(const struct ext_fs *fs);

/* Finds the first block of a group's inode table, checked. -EUCLEAN or the device's error. */
int ext_inode_table(const struct ext_fs *fs, uint32_t group, uint64_t *table);

/* Copies a group's descriptor; what a small one has not is zero. ext_group_write puts it back, with
 * its checksum. */
int ext_group_read(const struct ext_fs *fs, uint32_t group, struct ext_group_desc *out);
int ext_group_write(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor);

/* Whether an inode on disk has the bytes up to `end`, which is beyond the first 128. */
static inline bool ext_inode_has(const struct ext_fs *fs, const struct ext_disk_inode_large *disk,
				 size_t end)
{
	return fs->inode_size > EXT_OLD_INODE_SIZE &&
	       EXT_OLD_INODE_SIZE + (size_t)disk->i_extra_isize >= end && end <= fs->inode_size;
}

/* The first block of a group, how many it has, and how many the copies of the superblock and of the
 * descriptors at its beginning take. */
uint64_t ext_group_first(const struct ext_fs *fs, uint32_t group);
uint32_t ext_group_blocks(const struct ext_fs *fs, uint32_t group);
uint32_t ext_group_overhead(const struct ext_fs *fs, uint32_t group);
/* The first block of an inode's group, where goes what has no better place. */
uint64_t ext_inode_goal(const struct ext_inode *inode);
/* The group of a block, and the block's index in it. */
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

/* How many blocks of a file the map has numbers for, holes included. */
uint64_t ext_blocks_in_reach(const struct ext_inode *inode);

/* The block of the inode table that has an inode, and the inode in it. */
int ext_inode_block(struct ext_fs *fs, uint32_t number, struct cached_block **buffer,
		    struct ext_disk_inode_large **disk);

/* The same to change it: the block is part of the transaction. */
int ext_inode_block_change(struct ext_fs *fs, uint32_t number, struct cached_block **buffer,
			   struct ext_disk_inode_large **disk);

/* ext_inode_read without the checks of contents: for inodes without links. */
int ext_inode_load(struct ext_fs *fs, uint32_t number, struct ext_inode *out);

/* Whether an inode has blocks at all: devices, pipes and short symbolic links have none. */
bool ext_has_map(const struct ext_inode *inode);

/* Gets a block of metadata, from the cache or the disk. For one that cannot be read:
 * ext_unreadable. */
int ext_block_read(const struct ext_fs *fs, uint64_t block, enum block_purpose purpose,
		   struct cached_block **out);

/* Gets a pointer block or extent block of an inode, from the cache. -EUCLEAN for a block outside
 * the file system. */
int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out);

/* ext_map for the two formats. When they begin, *out is a hole of depth 0 and one block; the length
 * may go beyond the end of the file. */
int ext_map_pointers(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);
int ext_map_extents(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/* ---- to change (fs/ext/change.c) ---- */

/* A change of at most `blocks` blocks begins, and ends: journal_begin and journal_end, or nothing
 * where there is no journal. -EROFS on a mount that is read-only. */
int ext_begin(struct ext_fs *fs, uint32_t blocks);
void ext_end(struct ext_fs *fs);

/* Before a cached block is changed: it becomes part of the transaction, or, without a journal,
 * dirty. */
int ext_change(struct ext_fs *fs, struct cached_block *buffer);

/* In the middle of a change, at a place where the disk is valid: room for `blocks` more. */
int ext_extend(struct ext_fs *fs, uint32_t blocks);

/* The room that a change of one run asks for: bitmap and descriptor for each of seven new blocks of
 * the map and for the data, these blocks, those that split, the inode, and the list of orphans. */
#define EXT_CREDITS 40u

/* Copies the superblock, with its checksum, to its block in the cache. */
void ext_super_copy(struct ext_fs *fs);

/* Blocks of metadata were freed: neither the cache nor the journal may write them any more. */
int ext_forget(struct ext_fs *fs, uint64_t first, uint32_t count);

/* After -ENOSPC, between changes: whether it is worth to try again, because a commit has made
 * blocks free. */
bool ext_commit_for_space(struct ext_fs *fs);

/* The time, in ns since 1970, and as an inode keeps it. */
static inline int64_t ext_now(const struct ext_fs *fs)
{
	return fs->options.now ? (int64_t)fs->options.now() : 0;
}
static inline int64_t ext_inode_now(const struct ext_inode *inode)
{
	return ext_time_kept(inode, ext_now(inode->fs));
}

/* Seconds of a time, rounded down; *nanoseconds is the rest. */
int64_t ext_seconds(int64_t time, uint32_t *nanoseconds);

/* ---- checksums (fs/ext/checksum.c) ---- */

/* How ext_corrupt says that a checksum is not that of the contents. The result is -EBADMSG then. */
#define EXT_CHECKSUM_WRONG "checksum 0x%08x, but the contents give 0x%08x"

/* Whether metadata has checksums (metadata_csum). */
static inline bool ext_has_checksums(const struct ext_fs *fs)
{
	return ext_has_ro_compat(fs, EXT_RO_COMPAT_METADATA_CSUM);
}

/* The seed of all checksums of the file system, and of those of an inode's blocks. */
uint32_t ext_checksum_seed(const struct ext_fs *fs);
uint32_t ext_inode_seed(const struct ext_inode *inode);

uint32_t ext_super_checksum(const struct ext_super_block *super);
uint16_t ext_group_checksum(const struct ext_fs *fs, uint32_t group,
			    const struct ext_group_desc *descriptor);
uint32_t ext_inode_checksum(const struct ext_fs *fs, uint32_t number,
			    const struct ext_disk_inode_large *disk);

/* The checksum that an inode on the disk has, and that of its contents. Whether they are the same.
 */
bool ext_inode_sums(const struct ext_fs *fs, uint32_t number,
		    const struct ext_disk_inode_large *disk, uint32_t *found, uint32_t *checksum);

/* Which one of its block's an inode is. */
static inline uint32_t ext_inode_place(const struct ext_fs *fs, uint32_t number)
{
	uint32_t index = (number - 1) % fs->super.s_inodes_per_group;

	return index & (fs->summary.block_size / fs->inode_size - 1);
}

/* An inode in a block of the table was changed: it gets its checksum when the block goes to the
 * disk or into the journal, once for all changes. */
void ext_inode_changed(const struct ext_fs *fs, uint32_t number, struct cached_block *buffer);

/* Compares the checksum of what was read from the disk: of an inode, an extent block (whose header
 * was checked), all descriptors in a block of which `group` is the first. -EBADMSG, with a message.
 */
int ext_inode_verify(const struct ext_inode *inode, struct cached_block *buffer,
		     const struct ext_disk_inode_large *disk);
int ext_extent_verify(const struct ext_inode *inode, const struct cached_block *buffer);
int ext_groups_verify(const struct ext_fs *fs, uint32_t group, const uint8_t *descriptors);

/* Of a block of extended attributes; and the same, written into it. */
uint32_t ext_attributes_checksum(const struct ext_fs *fs, uint64_t block, const uint8_t *data);
void ext_attributes_seal(const struct ext_fs *fs, uint64_t block, uint8_t *data);

/* ---- bitmaps (fs/ext/bitmap.c) ---- */

enum ext_bitmap { EXT_BITMAP_BLOCKS, EXT_BITMAP_INODES };

/* Gets a bitmap of a group, checked, and a copy of its descriptor; one that was never written is
 * made, and the descriptor on disk and *descriptor then say so. -EUCLEAN or -EBADMSG for one that
 * is damaged; the console says it the first time. An error leaves *out as it was. */
int ext_bitmap_get(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor,
		   enum ext_bitmap kind, struct cached_block **out);

/* Was a bitmap found to be damaged? Then the others are used, unless fs->failed. The second notes
 * one of inodes. */
bool ext_bitmap_is_bad(const struct ext_fs *fs, uint32_t group, enum ext_bitmap kind);
void ext_bitmap_note_bad(struct ext_fs *fs, uint32_t group, enum ext_bitmap kind, uint32_t free);

/* Is the group's bitmap of blocks damaged, and may the change go on (errors=continue)? */
static inline bool ext_is_left_alone(const struct ext_fs *fs, uint32_t group)
{
	return !fs->failed && ext_bitmap_is_bad(fs, group, EXT_BITMAP_BLOCKS);
}

/* After -EIO for somebody who allocates: as a damaged one, if there are other groups. For somebody
 * who frees it is an error, and nothing has changed. */
void ext_bitmap_note_unreadable(struct ext_fs *fs, uint32_t group, enum ext_bitmap kind, int error);

/* Refuses an inode that its bitmap calls free. */
int ext_inode_check_used(struct ext_fs *fs, uint32_t number);

/* Sets or clears bits, which all have the other value, and writes the descriptor with the bitmap's
 * new checksum. The caller has changed the counts in it. When it fails, nothing has changed. */
int ext_bitmap_change(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor,
		      enum ext_bitmap kind, struct cached_block *bitmap, uint32_t first,
		      uint32_t count, bool value);

/* The first bit from `from` on, before `end`, that has the value in a | b; `end` if there is none.
 * b may be NULL. */
uint32_t ext_bits_find(const void *a, const void *b, uint32_t from, uint32_t end, bool value);

/* ---- allocation (fs/ext/allocate.c, reserve.c) ---- */

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

/* Free blocks that can be allocated (not where the bitmap is damaged), and how many of all are
 * reserved for root. */
uint64_t ext_free_blocks(const struct ext_fs *fs);
uint64_t ext_reserved_blocks(const struct ext_fs *fs);
void ext_count_free(struct ext_fs *fs, uint64_t blocks);

/* ---- maps (fs/ext/map_change.c and others) ---- */

/* Neighbouring blocks of a file that are neighbours on the disk. */
struct ext_run {
	uint64_t logical;
	uint64_t physical; /* 0: a hole */
	uint32_t length;
	bool unwritten;
};

/*
 * Maps a run to where its physical says; 0 makes a hole. Until then it is wholly a hole, or wholly
 * inside one extent. The run's blocks are neither allocated nor freed, those of the map itself are.
 * When it fails, the map says what it said; its blocks may be other ones, so the caller writes the
 * inode in any case.
 */
int ext_map_set(struct ext_inode *inode, const struct ext_run *run);
int ext_set_extent(struct ext_inode *inode, const struct ext_run *run);
int ext_set_pointers(struct ext_inode *inode, const struct ext_run *run);

/* How many blocks from `logical` on one ext_map_set can set. */
uint32_t ext_map_reach(const struct ext_inode *inode, uint64_t logical);
uint32_t ext_pointers_reach(const struct ext_inode *inode, uint64_t logical);

/* Where the block would best be: after the one before it. */
int ext_map_goal(const struct ext_inode *inode, uint64_t logical, uint64_t *goal);

/* Frees some of the blocks from *first to *end (exclusive), at most what one change can do, and
 * takes them off the range. When it is empty, all is done. */
int ext_map_free(struct ext_inode *inode, uint64_t *first, uint64_t *end);

/* The last extent that begins at `logical` or before it; length 0: there is none. *end, which the
 * caller sets, becomes where the next one begins; *depth grows by the blocks read. */
int ext_extent_before(const struct ext_inode *inode, uint64_t logical, struct ext_run *out,
		      uint64_t *end, unsigned *depth);

/* Decodes an extent, checked: it ends before `end`, where the next one begins. */
int ext_extent_decode(const struct ext_inode *inode, const struct ext_extent *extent, uint64_t end,
		      struct ext_run *out);

/* The last entry of a node that begins at `logical` or before it; NULL when all begin after it.
 * *end becomes the beginning of the next entry, if there is one. */
const union ext_extent_entry *ext_extent_find(const struct ext_extent_node *node, uint64_t logical,
					      uint64_t *end);

/* The root, checked; and the child of an entry, checked, in *buffer. */
int ext_extent_root(const struct ext_inode *inode);
int ext_extent_child(const struct ext_inode *inode, struct ext_extent_idx entry, unsigned depth,
		     uint64_t end, struct cached_block **buffer);

/* How many levels of pointer blocks lead to a block (4: none can), and its place in their tree. */
unsigned ext_pointer_tree(unsigned bits, uint64_t *position);

/* ---- blocks and inodes (fs/ext/map_change.c, inode_change.c, inode_new.c) ---- */

/* Allocates the block `logical` of a directory or a symbolic link, which has none, and gives it as
 * zeros, already part of the transaction. The caller has begun, sets the size, and calls
 * ext_inode_write, also after an error. */
int ext_block_add(struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* The block `logical` of a directory or symbolic link, read. -EUCLEAN for a hole. */
int ext_block_get(const struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* Makes the inode's block of the disk part of the transaction, so that ext_inode_write cannot fail
 * while the caller has it; bcache_put ends that. */
int ext_inode_pin(struct ext_inode *inode, struct cached_block **out);

/* Allocates an inode near its directory, with no links and no blocks; times are now. The caller has
 * begun, sets links, and calls ext_inode_write. -ENOSPC. Directories, files and symbolic links have
 * an empty map: a short symbolic link clears EXT_FLAG_EXTENTS before it writes there. */
int ext_inode_new(const struct ext_inode *directory, uint16_t mode, const struct ext_inode *like,
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

/* ---- contents (fs/ext/write.c) ---- */

/* Blocks for a run that begins at run->logical and is a hole, or unwritten already, as `mapping`
 * says: at most `count`. */
int ext_run_allocate(struct ext_inode *inode, const struct ext_mapping *mapping, uint64_t count,
		     struct ext_run *run);

/* Writes zeros from a size to the end of its block, if the block has contents. */
int ext_zero_tail(struct ext_inode *inode, uint64_t size);

/* The file is about to grow beyond its last block: zeros after its end, as a change of its own. */
int ext_zero_gap(struct ext_inode *inode);

/* With data=journal: what was written is committed, and goes to its place. */
int ext_settle(struct ext_fs *fs);

/* Writes zeros to whole blocks. */
int ext_zero_blocks(struct ext_fs *fs, uint64_t physical, uint32_t count);

/* ---- to mount (fs/ext/mount_write.c) ---- */

/* Opens the journal, if there is one, and replays it. *replayed: the superblock must be read again.
 * A mount that only reads has no journal afterwards. */
int ext_journal_begin(struct ext_fs *fs, bool *replayed);
int ext_journal_leave(struct ext_fs *fs);
int ext_write_begin(struct ext_fs *fs);
int ext_write_end(struct ext_fs *fs);
