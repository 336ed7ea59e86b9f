/*
 * Cached files, the lower half: their structures, and how dirty pages get to the disk. Reading and
 * writing is in fs/cache/cached_file.h.
 */
#pragma once

#include "fs/cache/write_errors.h"
#include "kernel/task/lock.h"
#include "kernel/task/task.h"
#include "mm/page_cache.h"
#include "mm/page_table.h"

struct cached_file;

struct cached_file_ops {
	/* Read from the disk: holes and what is after the end are zeros. Multiples of 512 bytes, up
	 * to CACHED_RUN. Return 0 or a negated errno. May sleep. */
	int (*read)(struct cached_file *file, uint64_t offset, void *to, uint32_t length);
	/* Write to the disk, and allocate what is not there. Any offset and length, up to
	 * CACHED_RUN. */
	int (*write)(struct cached_file *file, uint64_t offset, const void *from, uint32_t length);
	/* The same for O_DIRECT: nothing was reserved for it (will_write), and no error is noted.
	 * Returns how many bytes, or an error for the first. NULL: write does it. */
	int (*write_direct)(struct cached_file *file, uint64_t offset, const void *from,
			    uint32_t length);
	/* How many bytes the file has now. Does not sleep. */
	uint64_t (*size)(const struct cached_file *file);
	/* A write has made it longer. NULL: that cannot be. Does not sleep. */
	void (*grow)(struct cached_file *file, uint64_t size);
	/* This part of a page is about to be written, by a program, or all of it by an area: can
	 * blocks be reserved? 0, -ENOSPC or another error. NULL: none are needed. May sleep. */
	int (*will_write)(struct cached_file *file, uint64_t offset, uint32_t length);
	/* Makes everything that was written before safe: fsync's second half. May sleep. */
	int (*commit)(struct cached_file *file, bool data_only);
	/* References to what has the file. */
	void (*hold)(struct cached_file *file);
	void (*release)(struct cached_file *file);
};

#define CACHED_RUN 65536u /* bytes that are read or written at a time, at most */
#define RUN_PAGES  (CACHED_RUN / PAGE_SIZE)

/* The largest size of a file, bytes: pages have numbers of 32 bits. */
#define CACHED_FILE_MOST ((uint64_t)UINT32_MAX << 12)

/* A file with dirty pages must not go: its owner writes them back (cached_file_write_back) or cuts
 * them (cached_file_cut) first. */
struct cached_file {
	struct page_cache cache; /* first: the two have one address */
	const struct cached_file_ops *ops;
	struct mutex write_back; /* held while pages are written: a task that gets it finds none on
				    its way to the disk */
	struct list in_dirty;	 /* of all files with `unwritten` pages, the longest so first */
	uint64_t dirty_since;	 /* of time_ns() */
	uint32_t dirty;		 /* pages; all of them are in [dirty_first, dirty_end) */
	uint32_t dirty_first, dirty_end;
	uint32_t unit;	      /* bytes that go to the disk together: a block, or PAGE_SIZE */
	uint32_t unwritten;   /* pages that are dirty, are becoming so, or are being written */
	uint32_t page_blocks; /* each of them has this many blocks reserved, */
	uint64_t *reserved;   /* which its owner counts here; NULL: nobody does */
	uint32_t changes;     /* of what is on the disk: a read that began before is out of date */
	uint32_t run_first, run_end; /* pages that are on their way: on the disk they are old */
	struct write_errors errors;
	bool is_failing;       /* the next write is told the last error, too */
	uint32_t next, window; /* read-ahead: where a sequential reader misses next; pages */
	uint32_t least;	       /* pages that a miss elsewhere reads; set before each miss */
	bool is_random;	       /* it was advised: no read-ahead */
};

/* Writes the dirty ones of pages `first` to `end` - 1 to the disk, and waits for those that were on
 * their way. Returns 0 or an error; then those pages are clean all the same, as in Linux, and the
 * error is counted: fsync tells it, and the next write. */
int cached_file_write_back(struct cached_file *file, uint32_t first, uint32_t end);

/* The file ends at `size` now (its ops say so already), and its blocks after that are still
 * allocated: its pages after that go, also from every space, and the rest of its last page is
 * zeroed. With the file's lock. */
void cached_file_cut(struct cached_file *file, uint64_t size);

/* Takes pages out of the cache: clean ones, or (`all`: what is on the disk has changed) whatever
 * they are. */
void cached_file_drop(struct cached_file *file, uint32_t first, uint32_t end, bool all);

/* Bytes of the disk have changed without the cache: to `data` or (NULL) to zeros, or a hole of
 * whole units. Whole pages go; of one that has more than these bytes the others stay as they are.
 * For zeros with write_back held since before the disk was changed, so that nothing older is
 * written after it; data at the edges is written once more. */
void cached_file_replace(struct cached_file *file, uint64_t from, uint64_t end, const void *data);

/* What is on the disk in these pages is not known any more: clean ones are read again. */
void cached_file_invalidate(struct cached_file *file, uint32_t first, uint32_t end);

/* Writes back all files, and waits for what other tasks are writing (`is_due`: or only those that
 * have been dirty for long, without waiting). */
void cached_files_write_back(bool is_due);

/* From now on each page of the file that is dirty, that will be so when its contents are copied
 * (after will_write), or that is being written, counts as `page_blocks` in *reserved. Does not
 * sleep. */
void cached_file_reserve(struct cached_file *file, uint64_t *reserved, uint32_t page_blocks);

/* Begins with the thread that writes back, unless it is there. The first dirty page does so, too.
 */
void cached_files_start(void);

/* Called by the thread each time, every second. */
void cached_files_after(void) OPTIONAL;

/* ---- for fs/cache's own files ---- */

static inline uint32_t pages_of(uint64_t size)
{
	return size < CACHED_FILE_MOST ? (uint32_t)((size + PAGE_SIZE - 1) >> PAGE_SHIFT)
				       : UINT32_MAX;
}

/* struct page_cache_ops's read: a page that is not there, and those after it (readahead.c). */
int cached_file_read_miss(struct page_cache *cache, uint32_t index, struct page **page);

/* Zeros from `size` to the end of its page, if that is there. */
void cached_file_zero_tail(struct cached_file *file, uint64_t size);

/* The page was written to, in `length` bytes from `skip` on. NULL: it has left the cache. */
void cached_file_mark_dirty(struct cached_file *file, struct cached_page *cached, uint32_t skip,
			    uint32_t length);

/* This many pages more are reserved but not dirty; or (change < 0) fewer. */
void cached_file_count(struct cached_file *file, int change);

/* Before a page is made dirty: while too many are, its writer writes some back. May sleep. */
void cached_files_balance(void);

/* Memory for a run of up to *length bytes, whole pages; *length becomes what there is. NULL without
 * memory. */
void *run_alloc(uint32_t *length);
void run_free(void *run, uint32_t length);
