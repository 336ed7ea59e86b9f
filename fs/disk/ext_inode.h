/*
 * Files of ext2, ext3 and ext4 as inodes: shared by the files of fs/disk.
 *
 *	struct disk_inode
 *	    inode	what the VFS sees; of a regular file its size, and the times, are the truth
 *	    ext		what the library sees; the size is what was written back so far
 *	    pages	of a regular file: its contents (fs/cache/cached_file.h)
 *
 * One structure for each inode of a mount that is in use, and for some that were lately, so that
 * their pages are still there. Locks, in this order: that of a file (writes, truncation), the
 * write-back of its pages, and the mount's, around every call of the library.
 */
#pragma once

#include "fs/cache/cached_file.h"
#include "fs/disk/dentry.h"
#include "fs/ext/ext.h"
#include "fs/vfs/filesystem.h"

/* What its inodes can do. A mount has it, so that ext_inode.c knows none of the files that use it.
 */
struct disk_operations {
	const struct inode_ops *inode;
	const struct file_ops *file, *directory;
	const struct cached_file_ops *pages;
};

#define EVICTED 64u

struct disk_mount {
	struct mutex lock;
	const struct disk_operations *operations;
	struct ext_fs *fs;
	struct block_device *device;
	struct disk_inode *root;
	struct tree_node *inodes; /* that are in memory, by their numbers */
	uint32_t filesystem;	  /* the inodes' number of it */
	struct ext_options options;
	bool read_only, no_access_time, synchronous, synchronous_directories;
	uint32_t block_shift;
	uint64_t reserved;	    /* blocks, for pages that are dirty: ext_reserve.c */
	uint64_t batch;		    /* of these: for pages that will be */
	uint32_t workers;	    /* tasks that sync it now */
	uint32_t number, committed; /* of transactions (ext_sync.c); equal: nothing has changed */
	uint32_t failures;	    /* of commits; the error of the last one: */
	int commit_error;
	int lost_error; /* of contents that could not be written back */
	/* When inodes were last evicted with changes, by their numbers modulo EVICTED: */
	uint32_t evicted_in[EVICTED];
	struct write_errors errors;
	struct dentry absent; /* in no table: a name that was not there */
	struct disk_mount *next;
};

struct disk_inode {
	struct inode inode; /* first: the two have one address */
	struct ext_inode ext;
	struct disk_mount *mount;
	struct mutex lock;
	struct cached_file pages;
	struct tree_node in_mount; /* the key is its number */
	struct list in_unused;
	struct dentry name;
	uint64_t mapped;	    /* the first block of `mapping` */
	struct ext_mapping mapping; /* the last answer of the map; length 0: none */
	uint32_t changed_in;	    /* transactions, by number (ext_sync.c): the last change, */
	uint32_t data_in;	    /* and the last one that fdatasync makes safe */
	uint32_t asked;		    /* when a read last looked at the times; 0: they have changed */
	bool is_unused;		    /* it is in the list of those that nobody uses */
	bool is_changed;	    /* times in `inode` are newer than in `ext` */
	bool is_full;		    /* a dirty page has blocks for what was written only */
};

/* Numbers wrap: one that is too old counts as not committed, which costs a commit. */
static inline bool disk_is_committed(const struct disk_mount *mount, uint32_t number)
{
	return (int32_t)(number - mount->committed) <= 0;
}

static inline struct disk_inode *disk_inode(struct inode *inode)
{
	return (struct disk_inode *)inode;
}

/* Gives the mount's lock back, after a call of the library: returns what that has returned. */
static inline int disk_unlock(struct disk_mount *mount, int result)
{
	mutex_unlock(&mount->lock);
	return result;
}

extern struct disk_mount *disk_mounts;

/* ---- ext_inode.c: the mount's lock is held ---- */

/* The inode of this number, with a reference. */
int disk_inode_get(struct disk_mount *mount, uint32_t number, struct inode **found);

/* An empty structure, that becomes a new inode; NULL without memory. Then it is put
 * into the cache with what is in its `ext`, or freed. */
struct disk_inode *disk_inode_allocate(struct disk_mount *mount);
void disk_inode_insert(struct disk_inode *made);
void disk_inode_free(struct disk_inode *made);

/* One that was found, with a reference. Without the lock, too. */
struct inode *disk_inode_use(struct disk_inode *inode);

/* The inode has changed, and (is_data) in a way that fdatasync makes safe: ext_sync.c says why. */
void disk_inode_changed(struct disk_inode *inode, bool is_data);

/* The library has changed `ext`: the VFS is to see it. The second one gives the lock back, too. */
void disk_inode_update(struct disk_inode *inode);
int disk_inode_unlock(struct disk_inode *inode, int result);

/* Counts dirty pages, and `more` pages, as blocks that stat shows. Needs no lock. */
void disk_inode_count(struct disk_inode *inode, uint32_t more);

/* How many blocks a dirty page of the file reserves, by its map as it is now. Needs no lock. */
void disk_inode_reserve(struct disk_inode *inode);

/* Writes mode, owner and times to the (cached) disk. */
int disk_inode_store(struct disk_inode *inode);

/* ---- ext_inode.c: without the lock ---- */

/* Stores all inodes of a mount whose times changed. Returns the first error. */
int disk_store_all(struct disk_mount *mount);

/* Forgets the inodes that nobody uses, with their pages, if nothing of them must be written. */
void disk_inodes_shrink(void);

/* Forgets up to `count` of those that have no page in memory. For mm, when no page is free; does
 * not sleep. Returns how many. */
uint32_t disk_inodes_give_back(uint32_t count);

/* inode_ops's forget. */
void disk_inode_forget(struct inode *inode);

/* Calls visit for all inodes of a mount, until it returns true; so does this then. visit must not
 * sleep. */
bool disk_inode_any(const struct disk_mount *mount, bool (*visit)(struct disk_inode *inode));

/* Forgets all inodes of a mount, which nobody uses. */
void disk_inode_forget_all(struct disk_mount *mount);

/* ---- ext_sync.c: the mount's lock is held ---- */

/* Changes could not be committed: who made them is told. Returns the error. */
int disk_commit_failed(struct disk_mount *mount, int error);

/* ---- ext_sync.c: without the lock; these sleep ---- */

/* All that was changed until now becomes safe: returns 0, or the commit's error. */
int disk_commit(struct disk_mount *mount);

/* struct cached_file_ops's commit; of a directory, too. */
int disk_commit_inode(struct cached_file *pages, bool data_only);

/* Is a change of the inode safe when its call returns (mount -o sync, chattr +S)? */
bool disk_is_synchronous(const struct disk_inode *inode);

/* What changes an inode ends with it: returns `error`. Where changes are synchronous they are safe
 * now, or it is an error; then memory has the change all the same. */
int disk_finish(struct disk_inode *inode, int error);

/* struct file_ops's open: notes which errors of write-back the file need not be told. */
int disk_open(struct file *file);

/* Reports that contents could not be written back. Returns `error`; the unmount returns it, too. */
int disk_inode_lost(struct disk_inode *inode, uint64_t offset, uint32_t length, int error);

/* Writes everything that is only in memory to the disk, or at least passes it to the library. */
int disk_write_all(struct disk_mount *mount);

/* struct filesystem's sync. */
int disk_sync(struct inode *root, uint32_t *seen);

/* ---- ext_reserve.c ---- */

#define DISK_NAME_BLOCKS 32u /* that a change of names needs, at most, with their maps */

/* Reserves blocks for one more dirty page of a file, which the cache counts from now on
 * (cached_file_count): 0, -ENOSPC or another error. Without the lock; may sleep before it does so,
 * and not after. */
int disk_reserve_page(struct disk_inode *inode);

/* With the lock, before the caller looks at anything: if fewer blocks than that are free for all,
 * dirty pages are written back, and need less then; the lock is given back for that. */
void disk_need_blocks(struct disk_mount *mount, uint64_t blocks);

/* ---- ext_size.c ---- */

/* How many blocks of a range the file does not have, or (is_written) not with contents. With the
 * lock. */
uint64_t disk_missing(struct disk_inode *inode, uint64_t block, uint64_t end, bool is_written);

/* Has a block no contents, neither on the disk nor in the cache? */
bool disk_is_hole(struct disk_inode *inode, uint64_t offset);

/* ---- ext_data.c ---- */

/* May the file be written to? Then its times change. */
int disk_begin_write(struct disk_inode *inode);

/* ---- ext_names.c, ext_file.c, ext_data.c, ext_size.c ---- */

extern const struct inode_ops disk_inode_ops;
extern const struct file_ops disk_file_ops, disk_directory_ops;
extern const struct cached_file_ops disk_pages_ops;

/* ext_control.c: struct file_ops's control, of files and directories; struct inode_ops's seek. */
int disk_control(struct file *file, uint32_t command, uint32_t argument);
int disk_seek(struct inode *inode, bool hole, uint64_t *offset);

/* ext_map_all, with the lock. */
int disk_map(struct disk_inode *inode, uint64_t block, struct ext_mapping *mapping);

/* ext_trim.c: FITRIM, with a struct fstrim_range at a user address. */
int disk_trim(struct disk_mount *mount, uint32_t argument);

int disk_truncate(struct inode *inode, uint64_t size);
int disk_allocate(struct inode *inode, uint32_t mode, uint64_t offset, uint64_t length);
