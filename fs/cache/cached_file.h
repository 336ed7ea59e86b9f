/*
 * Cached files: what read, write and mmap do with a file whose contents are on a disk. All three
 * use the same pages, those of a page cache (mm/page_cache.h).
 *
 *	read, write	copy from and to pages		cached_file_read, cached_file_write
 *	mmap		shows pages			cache.object, for struct file_ops's memory
 *	O_DIRECT	goes past them			cached_file_direct
 *	write-back	dirty pages, in runs		by fsync; by a thread, after some seconds;
 *							and by writers, when too many are dirty
 *
 * Whose file it is (an inode of fs/disk, a block device) says how bytes get to the disk, and keeps
 * writers and truncation of one file apart (its own mutex: "turn"). Reads, faults and write-back
 * need no turn. Order of locks: turn, write_back, and then whatever the owner takes in read and
 * write. Copies from and to programs may sleep, and only the turn is held then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/task/lock.h"
#include "mm/page_cache.h"
#include "mm/user_copy.h"

struct cached_file;

struct cached_file_ops {
	/* Read from the disk: holes and what is after the end are zeros. Multiples of 512 bytes, up
	 * to CACHED_RUN. Return 0 or a negated errno. May sleep. */
	int (*read)(struct cached_file *file, uint64_t offset, void *to, uint32_t length);
	/* Write to the disk, and allocate what is not there. Any offset and length, up to
	 * CACHED_RUN. */
	int (*write)(struct cached_file *file, uint64_t offset, const void *from, uint32_t length);
	/* How many bytes the file has now. Does not sleep. */
	uint64_t (*size)(const struct cached_file *file);
	/* A write has made it longer. NULL: that cannot be. Does not sleep. */
	void (*grow)(struct cached_file *file, uint64_t size);
	/* Page `index` is about to be written to, by a program or by an area: is there room on the
	 * disk? 0, -ENOSPC or another error. NULL: there is. May sleep. */
	int (*will_write)(struct cached_file *file, uint32_t index);
	/* Makes everything that was written before safe: fsync's second half. May sleep. */
	int (*commit)(struct cached_file *file, bool data_only);
	/* References to what has the file. */
	void (*hold)(struct cached_file *file);
	void (*release)(struct cached_file *file);
};

#define CACHED_RUN 65536u /* bytes that are read or written at a time, at most */

/* A file with dirty pages must not go: its owner writes them back (cached_file_write_back) or cuts
 * them (cached_file_cut) first. */
struct cached_file {
	struct page_cache cache; /* first: the two have one address */
	const struct cached_file_ops *ops;
	struct mutex write_back; /* held while pages are written: whoever gets it finds none on
				    its way to the disk */
	struct list in_dirty; /* of all files with dirty pages, the one first that was so first */
	uint64_t dirty_since; /* of time_ns() */
	uint32_t dirty;	      /* pages; all of them are in [dirty_first, dirty_end) */
	uint32_t dirty_first, dirty_end;
	uint32_t growing;      /* pages that it has at least, because a write is adding them */
	uint32_t changes;      /* of what is on the disk: a read that began before is out of date */
	uint32_t errors;       /* of write-back, counted; the last of them: */
	int error;	       /* a negated errno */
	uint32_t next, window; /* read-ahead: where a sequential reader misses next; pages */
	bool is_random;	       /* it was advised: no read-ahead */
	const uint8_t *staged; /* what has just been read, for pages from `staged_first` on */
	uint32_t staged_first, staged_count;
};

/* An empty cache. */
void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops);

/* As struct file_ops's read and write. The caller of write has the turn, and has checked flags and
 * limits. */
int cached_file_read(struct cached_file *file, struct buffer *to, uint64_t offset);
int cached_file_write(struct cached_file *file, struct buffer *from, uint64_t offset);

/* The same past the cache (O_DIRECT), in the caller's turn. -EINVAL unless offset, length and
 * address are multiples of 512. */
int cached_file_direct(struct cached_file *file, struct buffer *buffer, uint64_t offset,
		       bool write);

/* Writes the dirty ones of pages `first` to `end` - 1 to the disk, and waits for those that were on
 * their way. Returns 0 or an error; then those pages are clean all the same, as in Linux, and the
 * error is counted. */
int cached_file_write_back(struct cached_file *file, uint32_t first, uint32_t end);

/* fsync, fdatasync: write-back and commit. *seen is what an open file keeps of `errors`: each error
 * is told to each of them once. */
int cached_file_sync(struct cached_file *file, bool data_only, uint32_t *seen);

/* The file ends at `size` now (its ops say so already), and its blocks after that are still
 * allocated: its pages after that go, also from every space, and the rest of its last page is
 * zeroed. In the caller's turn. */
void cached_file_cut(struct cached_file *file, uint64_t size);

/* Takes pages out of the cache: clean ones, or (`all`: what is on the disk has changed) whatever
 * they are. */
void cached_file_drop(struct cached_file *file, uint32_t first, uint32_t end, bool all);

/* posix_fadvise, with Linux's numbers. */
int cached_file_advise(struct cached_file *file, uint64_t offset, uint64_t length, uint32_t advice);

/* Writes back all files (`is_due`: or only those that have been dirty for long). */
void cached_files_write_back(bool is_due);

/* Dirty pages of all files. */
uint32_t cached_files_dirty(void);

/* Called by the thread after each turn, every second. NULL: nobody. */
extern void (*cached_files_after)(void);

/* ---- for fs/cache's own files ---- */

/* The cached page of this number, or NULL. */
struct cached_page *cached_file_find(const struct cached_file *file, uint32_t index);

/* The page was written to. */
void cached_file_mark_dirty(struct cached_file *file, uint32_t index);

/* Before a page is made dirty: while too many are, its writer writes some back. May sleep. */
void cached_files_balance(void);

/* Writes page `index`, and the dirty ones after it: struct page_cache_ops. */
int cached_pages_write(struct page_cache *cache, uint32_t index, const void *page);

/* Memory for a run of up to *length bytes, whole pages; *length becomes what there is. NULL without
 * memory. */
void *run_alloc(uint32_t *length);
void run_free(void *run, uint32_t length);
