/*
 * Contents of files in memory: a page with a table of up to 1024 pages, so a file has up to 4 MiB.
 *
 *	tables --> [0] [1] [2] ... [1023]
 *		    |   |   '-> NULL: a hole, which reads as zeros
 *		    |   '-> bytes 4096 to 8191
 *		    '-> bytes 0 to 4095
 *
 * The table and the pages are made when something is written there. What is in the last page
 * beyond the file's size is always zero, so making a file longer shows nothing old.
 *
 * All ramfs together use at most half of the memory that was free at the start. Nothing here
 * sleeps.
 */
#include "fs/ram/ramfs_data.h"

#include <stddef.h>

#include "fs/ram/ramfs_internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define SLOTS	      (uint32_t)(PAGE_SIZE / sizeof(void *))
#define FILE_SIZE_MAX (SLOTS * PAGE_SIZE)

struct ramfs_statistics ramfs_counts;

/* Zeroed, and counted: the limit keeps a large file from starving the programs. */
static void *take_page(void)
{
	void *page = ramfs_counts.pages < ramfs_counts.pages_limit ? page_alloc(0) : NULL;

	if (!page)
		return NULL;
	ramfs_counts.pages++;
	return memset(page, 0, PAGE_SIZE);
}

static void give_page(void **slot)
{
	if (!*slot)
		return;
	page_free(*slot, 0);
	*slot = NULL;
	ramfs_counts.pages--;
}

/* The page that a byte of the file is in, made where it is not there if `make`. NULL for a hole, or
 * without memory. */
static uint8_t *page_at(struct ramfs_inode *file, uint32_t offset, bool make)
{
	if (!file->file.tables && make)
		file->file.tables = take_page();
	if (!file->file.tables)
		return NULL;
	void **slot = (void **)file->file.tables + offset / PAGE_SIZE;

	if (!*slot && make && (*slot = take_page()))
		file->inode.blocks += PAGE_SIZE / 512;
	return *slot;
}

/* What is cut off is zeroed in the last page that stays, and freed in the others. Growing only
 * changes the size: a hole. */
int ramfs_truncate(struct inode *inode, uint64_t size)
{
	struct ramfs_inode *file = ramfs_inode(inode);

	if (size > FILE_SIZE_MAX)
		return -EFBIG;
	uint32_t in_page = size % PAGE_SIZE;
	uint8_t *last = in_page ? page_at(file, size, false) : NULL;

	if (last)
		memset(last + in_page, 0, PAGE_SIZE - in_page);
	for (uint32_t at = size + (PAGE_SIZE - 1); file->file.tables && at / PAGE_SIZE < SLOTS;
	     at += PAGE_SIZE) {
		inode->blocks -= page_at(file, at, false) ? PAGE_SIZE / 512 : 0;
		give_page((void **)file->file.tables + at / PAGE_SIZE);
	}
	if (size == 0)
		give_page(&file->file.tables);
	inode->size = size;
	inode_touch(inode, true);
	return 0;
}

/* How much of a page a transfer of `length` bytes at `offset` can move. */
static uint32_t chunk_at(uint32_t offset, uint32_t length)
{
	uint32_t in_page = PAGE_SIZE - offset % PAGE_SIZE;

	return length < in_page ? length : in_page;
}

/* A bad address after some bytes ends the read with what was moved. */
static int ramfs_read(struct file *file, struct buffer *to, uint64_t offset)
{
	const struct inode *inode = file->inode;
	int done = 0;

	while (to->length > 0 && offset < inode->size) {
		uint32_t left = inode->size - offset;
		uint32_t chunk = chunk_at(offset, to->length < left ? to->length : left);
		uint8_t *page = page_at(ramfs_inode(file->inode), offset, false);
		int moved = page ? buffer_put(to, page + offset % PAGE_SIZE, chunk)
				 : buffer_put_zeros(to, chunk);

		if (moved < 0)
			return done ? done : moved;
		done += moved;
		offset += moved;
		if ((uint32_t)moved < chunk)
			break;
	}
	return done;
}

/* The size grows page by page, with what was moved: after an error the file has exactly the bytes
 * that the caller is told. */
static int ramfs_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct inode *inode = file->inode;
	int done = 0, moved = 0;

	if (offset >= FILE_SIZE_MAX)
		return -EFBIG;
	while (from->length > 0 && offset < FILE_SIZE_MAX) {
		uint32_t chunk = chunk_at(offset, from->length);
		uint8_t *page = page_at(ramfs_inode(inode), offset, true);

		moved = page ? buffer_take(from, page + offset % PAGE_SIZE, chunk) : -ENOSPC;
		if (moved < 0)
			break;
		done += moved;
		offset += moved;
		if (offset > inode->size)
			inode->size = offset;
		if ((uint32_t)moved < chunk)
			break;
	}
	if (done > 0)
		inode_touch(inode, true);
	return done ? done : moved;
}

const struct file_ops ramfs_file_ops = { .read = ramfs_read, .write = ramfs_write };
