/* A mount of an ext file system, and what all files of this folder use: its features, the times,
 * and what is said about a damaged disk. */
#pragma once

#include "fs/cache/bcache.h"
#include "fs/ext/disk.h"
#include "fs/ext/ext.h"

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

/* Where the inode table of a group is, as ext_inode_table found it. */
struct ext_table {
	uint32_t group; /* plus 1; 0: none */
	uint64_t block;
};

#define EXT_TABLES  16
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
	struct ext_table tables[EXT_TABLES]; /* those used lately: that of group n is in n mod 16 */

	struct ext_options options;
	bool writable;	     /* was mounted to be written */
	bool was_valid;	     /* the last session ended, or e2fsck did */
	bool failed;	     /* contradictions were found: read-only now */
	bool super_changed;  /* newer than super_buffer */
	bool cut_left;	     /* a truncate failed: a file with names may be among the orphans */
	bool pending_lost;   /* more was freed than pending has: commit before anything else */
	uint32_t seed;	     /* of checksums */
	uint32_t generation; /* of the inode that was made last */
	uint32_t next_group; /* for the next directory in the root */
	unsigned nesting;    /* of ext_begin */
	struct cached_block *pin; /* the block of the inode that ext_inode_begin has pinned */
	struct journal *journal;  /* NULL: none */
	struct cached_block *super_buffer;
	struct ext_pending pending[EXT_PENDING];
	unsigned pending_count;
	uint64_t pending_blocks; /* in all of them */
	struct ext_window windows[EXT_WINDOWS];
	unsigned next_window;
	/* Bitmaps that contradict themselves (ext_bitmap_is_bad): group * 2 + its kind. The
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

static inline uint64_t ext_shorter(uint64_t length, uint64_t other)
{
	return length < other ? length : other;
}

/* What a descriptor on the disk and its copy in memory both have, bytes. */
static inline uint32_t ext_descriptor_known(const struct ext_fs *fs)
{
	uint32_t size = fs->summary.descriptor_size;

	return size < sizeof(struct ext_group_desc) ? size : sizeof(struct ext_group_desc);
}

/* Whether metadata has checksums (metadata_csum). */
static inline bool ext_has_checksums(const struct ext_fs *fs)
{
	return ext_has_ro_compat(fs, EXT_RO_COMPAT_METADATA_CSUM);
}

/* Whether descriptors have checksums, and tell what was never written. */
static inline bool ext_has_group_checksums(const struct ext_fs *fs)
{
	return ext_has_checksums(fs) || ext_has_ro_compat(fs, EXT_RO_COMPAT_GDT_CSUM);
}

/* A number whose upper half belongs to another field without 64bit, and can have any value. */
static inline uint64_t ext_halves(const struct ext_fs *fs, uint32_t low, uint32_t high)
{
	return ext_has_incompat(fs, EXT_INCOMPAT_64BIT) ? low | (uint64_t)high << 32 : low;
}

/* Free blocks, but where the bitmap is damaged: those that the open transaction has freed, too. */
static inline uint64_t ext_free_blocks(const struct ext_fs *fs)
{
	uint64_t blocks =
	    ext_halves(fs, fs->super.s_free_blocks_count_lo, fs->super.s_free_blocks_count_hi);

	return blocks > fs->unusable ? blocks - fs->unusable : 0;
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

/* ---- to mount (fs/ext/features.c, mount_write.c) ---- */

/* Refuses (-EOPNOTSUPP, -EUCLEAN) what this driver must not mount; fills in what the features tell
 * about the summary. */
int ext_features_check(struct ext_fs *fs);

/* Opens the journal, if there is one, and replays it. *replayed: the superblock must be read again.
 * A mount that only reads has no journal afterwards. */
int ext_journal_begin(struct ext_fs *fs, bool *replayed);
int ext_journal_leave(struct ext_fs *fs);
int ext_write_begin(struct ext_fs *fs);
int ext_write_end(struct ext_fs *fs);

/* ---- times (fs/ext/time.c) ---- */

/* The time, in ns since 1970, and as an inode keeps it. */
static inline int64_t ext_now(const struct ext_fs *fs)
{
	return fs->options.now ? (int64_t)fs->options.now() : 0;
}
static inline int64_t ext_inode_now(const struct ext_inode *inode)
{
	return ext_time_kept(inode, ext_now(inode->fs));
}

/* Now, in seconds since 1970, as most fields have it. */
uint32_t ext_now_seconds(const struct ext_fs *fs);

/* Seconds of a time, rounded down; *nanoseconds is the rest. */
int64_t ext_seconds(int64_t time, uint32_t *nanoseconds);

/* Contents changed, now. */
static inline void ext_touch(struct ext_inode *inode)
{
	inode->modified = inode->changed = ext_inode_now(inode);
}
