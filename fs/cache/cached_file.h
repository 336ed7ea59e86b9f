/*
 * Cached files: read, write and mmap for a file whose contents are on a disk. All three use the
 * same pages, those of a page cache (mm/page_cache.h).
 *
 *	read, write	copy from and to pages		cached_file_read, cached_file_write
 *	mmap		shows pages			cache.object, for struct file_ops's memory
 *	O_DIRECT	goes past them			cached_file_direct
 *	write-back	dirty pages, in runs		by fsync; by a thread, after some seconds;
 *							and by writers, when too many are dirty
 *
 * Whose file it is (an inode of fs/disk, a block device) says how bytes get to the disk, and keeps
 * writers and truncation of one file apart (the file's lock). Reads, faults and write-back do
 * not need it. Order of locks: the file's, write_back, and then whatever read and write lock.
 * Copies from and to programs may sleep, with the file's lock and no other.
 */
#pragma once

#include "fs/cache/write_back.h"
#include "fs/file.h"

/* An empty cache. */
void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops);

/* As struct file_ops's read and write. The caller of write has the file's lock, and has checked
 * flags and limits. A write after one that could not be written back fails with that error, once,
 * unless cached_file_sync has told it. */
int cached_file_read(struct cached_file *file, struct buffer *to, uint64_t offset);
int cached_file_write(struct cached_file *file, struct buffer *from, uint64_t offset);

/* The same past the cache (O_DIRECT), with the file's lock. -EINVAL unless offset, length and
 * address are multiples of 512. */
int cached_file_direct(struct cached_file *file, struct buffer *buffer, uint64_t offset,
		       bool write);

/* struct file_ops's open, sync and advise, of files whose `memory` is the object of a cached file.
 * `private` is how many errors of write-back the open file has been told
 * (fs/cache/write_errors.h). cached_file_sync_of is for open files without `memory`. */
int cached_file_open(struct file *file);
int cached_file_sync(struct file *file, bool data_only);
int cached_file_sync_of(struct cached_file *file, struct file *open, bool data_only);
int cached_file_advise(struct file *file, uint64_t offset, uint64_t length, uint32_t advice);
