/*
 * The ext2, ext3 and ext4 file systems: mount, look up, map, read, and change.
 *
 * A library: it knows devices, the cache of blocks and the journal, and neither tasks nor open
 * files. Its caller serializes all calls for one mount (the kernel by a lock of the mount,
 * fs/disk), and gives it the time. Every call that changes something is one change: after a power
 * cut all of it is there, or nothing (with a journal). Functions return 0 or a negated errno;
 * -EROFS for a change where the mount is read-only, -EUCLEAN for contents that contradict
 * themselves (said on the console; then the mount behaves as its `errors` says), -ENOSPC for a full
 * disk.
 */
#pragma once

#include "drivers/disk/block.h"

#define EXT_NAME_MAX 255

struct ext_fs;

/* A name, as the caller has it: no NUL at its end, none in it. */
struct ext_name {
	const char *text;
	uint32_t length; /* 1 to EXT_NAME_MAX */
};

/* What an inode begins with. */
struct ext_new {
	uint16_t mode; /* with the type */
	uint32_t owner, group;
	uint32_t device;    /* of a device */
	const char *target; /* of a symbolic link, with a NUL */
};

/*
 * An inode in memory. To read, it is a copy that may be thrown away without a call. What changes
 * inodes must have only one copy of each: calls that change an inode change the copy and the cached
 * block of the disk.
 */
struct ext_inode {
	struct ext_fs *fs;
	uint32_t number;
	uint16_t mode; /* type and permissions, as in i_mode */
	uint16_t links;
	uint32_t owner, group;
	uint32_t flags;
	uint32_t generation;
	uint32_t device; /* of a device: major << 8 | minor */
	uint64_t size;	 /* bytes */
	uint64_t blocks; /* sectors of 512 bytes, mapping blocks included */
	/* In ns since 1970, modulo 2^64: from 1901, a negative number, to 2446, which is one, too
	 */
	int64_t accessed, modified, changed, created;
	uint64_t attributes; /* block of the extended attributes, or 0 */
	uint32_t map[15];    /* i_block: pointers, the root of an extent tree, or a short symlink */
	bool whole_seconds;  /* it has no room for nanoseconds, nor for times after 2038 */
	bool has_reserved;   /* what it allocates now was reserved (ext_options.reserved) */
};

/* Where a logical block is. */
struct ext_mapping {
	uint64_t physical; /* block number; 0: a hole */
	uint64_t length;   /* blocks from here on that this answer covers, at least 1 */
	bool unwritten;	   /* allocated, but reads as zeros */
	unsigned depth;	   /* mapping blocks on the way from the inode */
	uint32_t most;	   /* the question: no more blocks than that are asked for; 0: all are */
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

enum ext_data {
	EXT_DATA_ORDERED,   /* a file's new blocks are written before what says that they are its */
	EXT_DATA_JOURNAL,   /* contents go through the journal, too */
	EXT_DATA_WRITEBACK, /* in no order: after a power cut new blocks may have old contents */
};

enum ext_errors {		      /* the superblock has these numbers, too */
		  EXT_ERRORS_DEFAULT, /* as that says */
		  EXT_ERRORS_CONTINUE,
		  EXT_ERRORS_READ_ONLY,
		  EXT_ERRORS_PANIC,
};

struct ext_options {
	bool read_only;
	bool no_barriers;   /* no flushes: fast, and unsafe */
	bool no_replay;	    /* read-only: do not even replay the journal */
	bool must_be_clean; /* read-only: refuse what has a journal to be replayed (-EUCLEAN) */
	enum ext_data data;
	enum ext_errors errors;
	uint64_t (*now)(void); /* ns since 1970 */
	/* Free blocks that only inodes with has_reserved may allocate: ext_room has found them.
	 * Read at each allocation; NULL: none. */
	const uint64_t *reserved;
};

/* A time as the inode keeps it: with whole_seconds rounded down, and at most 2038. */
int64_t ext_time_kept(const struct ext_inode *inode, int64_t time);

/*
 * Mounts the file system on a device. Returns 0 and the mount in *out; -EINVAL when there is no ext
 * file system; -EUCLEAN when the superblock or the descriptors contradict themselves; -EOPNOTSUPP
 * for an incompatible feature that we do not know; -ENOMEM; or the device's error. To write, it
 * replays the journal, releases orphans, and marks the file system as in use; unknown ro_compat
 * features: -EROFS. The console says what was refused and why, with names. Several mounts may
 * exist; ext_unmount frees one.
 */
int ext_mount(struct block_device *device, const struct ext_options *options, struct ext_fs **out);

/* The same for what is mounted already: inodes in memory remain valid. -ENOMEM: nothing happened.
 * After any other error it can be read as before, and not written until the next ext_remount; not
 * even after that (-EROFS) if changes were lost, or contradictions found. */
int ext_remount(struct ext_fs *fs, const struct ext_options *options);

/* What is to be done from now on when contradictions are found. */
void ext_set_errors(struct ext_fs *fs, enum ext_errors errors);

/* Whether every change is -EROFS: as it was mounted, or since contradictions were found, or since
 * the journal could not be written. */
bool ext_is_read_only(const struct ext_fs *fs);

/* Commits, writes everything to its place, and marks the file system as clean. Returns the first
 * error; the mount is gone in any case. */
int ext_unmount(struct ext_fs *fs);
const struct ext_summary *ext_summary(const struct ext_fs *fs);

/* Reads inode `number`. -EINVAL for a number that does not exist, -EUCLEAN for invalid contents,
 * such as those of an unused inode. */
int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *out);

/* Looks a path up, from the root, for somebody who looks at an image: a symbolic link is what is
 * found, and is not followed. -ENOENT, -ENOTDIR, -ENAMETOOLONG as usual. */
int ext_lookup(struct ext_fs *fs, const char *path, struct ext_inode *out);

/* Maps a logical block, through pointers or extents. A block past the end of the file is a hole.
 * -EUCLEAN for a tree that contradicts itself (said on the console); never loops. -EINVAL for what
 * has no blocks: devices, pipes, short symbolic links. */
int ext_map(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/* The same, also for blocks past the end: fallocate may have put some there. */
int ext_map_all(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/* ext_map where no more than `count` blocks matter: the answer may be shorter than it could be. */
int ext_map_some(const struct ext_inode *inode, uint64_t logical, uint32_t count,
		 struct ext_mapping *out);

/*
 * Reads up to length bytes (below 2 GiB) from offset: of a file's contents, or a symbolic link's
 * target. Returns the bytes read (0 at or past the end), or a negative errno when any of them could
 * not be read. Data goes past the cache, in whole sectors and no more of them than needed: a
 * 512-byte read of one sector is one request of one sector. Holes and unwritten blocks read as
 * zeros without a request.
 */
int ext_read(const struct ext_inode *inode, uint64_t offset, void *buffer, uint32_t length);

/* A part of that: as much of `length` bytes from `offset` on as one answer of the map, for the
 * block of that byte, or one request gives. Needs no lock. Returns the bytes read, at least 1, or
 * an error. */
int ext_read_mapped(const struct ext_fs *fs, const struct ext_mapping *mapping, uint64_t offset,
		    void *to, uint32_t length);

/* Calls visit for every entry of a directory, "." and ".." included, until it returns non-zero,
 * which is then returned. name is NUL-terminated and valid during the call; type is the entry's
 * file_type, 0 when the file system does not have that feature. -ENOTDIR, -EUCLEAN or the device's
 * error. */
int ext_list(const struct ext_inode *directory,
	     int (*visit)(void *context, const char *name, uint32_t inode, uint8_t type),
	     void *context);

/* Copies the value of the attribute `name` ("user.a"). Returns its length, also without copying
 * when size is 0; -ENODATA, -ERANGE when it is longer than size or the name is too long,
 * -EOPNOTSUPP for a prefix that is not user., trusted. or security., -EINVAL for nothing after it.
 */
int ext_attribute_get(const struct ext_inode *inode, const char *name, void *value, uint32_t size);

/* Copies the names of all attributes, each with a NUL. Returns their length; size as above. */
int ext_attribute_list(const struct ext_inode *inode, char *names, uint32_t size);

bool ext_is_directory(const struct ext_inode *inode);
bool ext_is_regular(const struct ext_inode *inode);
bool ext_is_symlink(const struct ext_inode *inode);

/* ---- changes: fs/ext/write.c and others ---- */

struct ext_usage {
	uint64_t blocks, free, available; /* as statfs says them: `blocks` without the overhead */
	uint32_t inodes, free_inodes;
};
void ext_usage(struct ext_fs *fs, struct ext_usage *out);

/* Free blocks that can be reserved now and allocated later: those of groups whose bitmaps were
 * found to be sound, which are looked for until there are `wanted`. Returns 0, also for less than
 * that, or why no more can be looked for; *room is valid then, too. */
int ext_room(struct ext_fs *fs, uint64_t wanted, uint64_t *room);

/* The first run of free blocks of a group, from block `from` of that on and before `end`, for a
 * discard: nobody has the blocks until the next call. Returns its length; 0 if there is none,
 * *first is then where the search goes on; or an error. What was freed since the last commit is not
 * free. */
int ext_free_run(struct ext_fs *fs, uint64_t from, uint64_t end, uint64_t *first);

/* Finds a name in a directory: the inode's number, or -ENOENT. It may be empty, or too long. */
int ext_find(const struct ext_inode *directory, const struct ext_name *name, uint32_t *number);

/* Says that a name leads to a directory that has another one already, which is damage: -EUCLEAN. */
int ext_two_names(const struct ext_inode *directory, uint32_t number);

/* Are positions in the directory hashes of names? May read its first block. */
bool ext_is_hashed(const struct ext_inode *directory);

/* The entries from a position on, as ext_list; *position (0: the first) is after each entry when
 * that is visited, and goes back if it was not taken. It remains valid while names are added and
 * removed. */
int ext_iterate(const struct ext_inode *directory, uint64_t *position,
		int (*visit)(void *context, const char *name, uint32_t inode, uint8_t type),
		void *context);

/* The name must not be there. out is the new inode, with one link (a directory: two). */
int ext_create(struct ext_inode *directory, const struct ext_name *name, const struct ext_new *new,
	       struct ext_inode *out);
int ext_link(struct ext_inode *directory, const struct ext_name *name,
	     struct ext_inode *inode); /* -EMLINK */

/* Removes a name. A directory must be empty (-ENOTEMPTY). An inode whose last link goes becomes an
 * orphan: it is freed by ext_release, or at the next mount. */
int ext_remove(struct ext_inode *directory, const struct ext_name *name, struct ext_inode *inode);

/* Nobody uses an inode without links any more: frees it and its blocks. In several transactions. */
int ext_release(struct ext_inode *inode);

/* Moves a name, also over one that is there (`other`, or NULL), whose link goes, as in ext_remove;
 * or (exchange) the two names change their inodes. `from` and `to` may be one structure, and must
 * be if they are one directory. The caller has checked that no directory goes into itself. */
int ext_rename(struct ext_inode *from, const struct ext_name *name, struct ext_inode *inode,
	       struct ext_inode *to, const struct ext_name *new_name, struct ext_inode *other,
	       bool exchange);

/* Which of Linux's flags an inode of its type can have. */
uint32_t ext_flags_of(const struct ext_inode *inode);

/* Writes mode, owner, times, flags of the copy to the disk. */
int ext_inode_write(struct ext_inode *inode);

/* How many blocks the map may need for one more page of the file, at most: each level of extents is
 * full, or pointers have none of their three levels. */
uint32_t ext_map_worst(const struct ext_inode *inode);

/* Whether a part of an unwritten extent can be written without a block for the map, surely. */
bool ext_map_has_room(const struct ext_inode *inode);

/* Of a file with extents: where the map has no room, and the disk none for it, all of the unwritten
 * extent with a block becomes zeros. -ENOSPC if a part is beyond the size, or with data=journal. */
int ext_fill_extent(struct ext_inode *inode, uint64_t logical);

/* The largest size that a file can have, bytes. */
uint64_t ext_size_limit(const struct ext_inode *inode);

/* Makes a file shorter or longer. The rest of the last block is zeroed when it gets shorter. In
 * several transactions if it is large; after a power cut the next mount goes on. -EFBIG. */
int ext_truncate(struct ext_inode *inode, uint64_t size);

/*
 * Writes up to 2 GiB of contents, allocates what is not there, and makes the file longer if it ends
 * after it. Whole blocks go straight to the disk; part of a block is read first unless it is new.
 * Returns the bytes written, which are fewer than length only when the disk became full or failed
 * after some of them; or a negated errno.
 */
int ext_write(struct ext_inode *inode, uint64_t offset, const void *data, uint32_t length);

/* Allocates blocks for `count` blocks from `logical` on, unwritten (pointers: zeroed), as fallocate
 * does. keep_size: the size does not grow. -EOPNOTSUPP where the format cannot. */
int ext_allocate(struct ext_inode *inode, uint64_t logical, uint64_t count, bool keep_size);

/* Frees the blocks: there is a hole afterwards. Whole blocks only. */
int ext_punch(struct ext_inode *inode, uint64_t logical, uint64_t count);

enum ext_attribute_flags {
	EXT_ATTRIBUTE_CREATE = 1,  /* -EEXIST if it is there */
	EXT_ATTRIBUTE_REPLACE = 2, /* -ENODATA if not */
};

/* Sets an attribute, or removes it (value NULL; -ENODATA). -ENOSPC when it fits neither into the
 * inode nor into one block with the others; errors of names as ext_attribute_get's. Of a value
 * beyond a page only the size is looked at. */
int ext_attribute_set(struct ext_inode *inode, const char *name, const void *value, uint32_t size,
		      enum ext_attribute_flags flags);

/* Commits what was changed until now; contents that were written before are safe with it. */
int ext_commit(struct ext_fs *fs);
