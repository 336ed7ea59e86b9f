/*
 * Contents of files in memory, with holes. Pages are found through pointers in the inode for the
 * first few, and through tables of 1024 pointers for the others:
 *
 *   direct[0..7]                              a page each
 *   tables -> 1024 tables -> 1024 pages each  4 GiB
 *
 * A pointer that is NULL, at any level, is a hole: all bytes below it read as zeros.
 *
 * A copy to or from a program may sleep, in a page fault, and the file be cut meanwhile. So a page
 * is held as long as it is copied; and a write to one that has left the file is done again. Areas
 * map the same pages (fs/memory), so what a program writes into one needs no copy.
 *
 * -ENOSPC, when all files together have as many pages as they may, or there is no memory: both look
 * the same to a program, as a full disk. See tmpfs(5).
 */
#include "fs/ram/ramfs_data.h"
#include "fs/vfs/vfs.h"

#define SLOTS	      (uint32_t)(PAGE_SIZE / sizeof(void *)) /* in a table */
#define SLOT_BITS     (unsigned)__builtin_ctz(SLOTS)
#define LEVELS	      2u
#define FILE_SIZE_MAX ((uint64_t)SLOTS * SLOTS * PAGE_SIZE)

struct ramfs_counts ramfs_counts;

/* Of zeros, for contents or a table. NULL beyond the limit, or without memory. */
static void *take_page(void)
{
	void *page = ramfs_counts.pages < ramfs_counts.pages_limit ? page_alloc(0) : NULL;

	if (!page)
		return NULL;
	ramfs_counts.pages++;
	return memset(page, 0, PAGE_SIZE);
}

/* The pointer to page `index`. NULL: a table on the way is not there (and, with `make`, there is no
 * memory for it). */
static void **find_slot(struct ramfs_inode *file, uint32_t index, bool make)
{
	void **slot = &file->file.tables;

	if (index < RAMFS_DIRECT)
		return &file->file.direct[index];
	index -= RAMFS_DIRECT;
	for (unsigned level = LEVELS; level-- > 0;) {
		if (!*slot && make)
			*slot = take_page();
		if (!*slot)
			return NULL;
		slot = (void **)*slot + (index >> level * SLOT_BITS) % SLOTS;
	}
	return slot;
}

/* The contents, through the direct map; NULL for a hole. */
static void *find_page(struct ramfs_inode *file, uint32_t index)
{
	void **slot = find_slot(file, index, false);

	return slot ? *slot : NULL;
}

void *const *ramfs_find_pages(struct ramfs_inode *file, uint32_t index, uint32_t *count)
{
	*count =
	    index < RAMFS_DIRECT ? RAMFS_DIRECT - index : SLOTS - (index - RAMFS_DIRECT) % SLOTS;
	return find_slot(file, index, false);
}

/* The page, made where it is not there. NULL without memory. */
void *ramfs_make_page(struct ramfs_inode *file, uint32_t index)
{
	void **slot = find_slot(file, index, true);

	if (!slot)
		return NULL;
	if (!*slot && (*slot = take_page()))
		file->inode.blocks += PAGE_SIZE / 512;
	return *slot;
}

/* Frees the pages from number `first` on in the subtree at *slot, `levels` tables deep, and the
 * tables that are empty then. */
static void free_pages(struct ramfs_inode *file, void **slot, unsigned levels, uint32_t first)
{
	uint32_t span = levels ? 1u << (levels - 1) * SLOT_BITS : 0; /* pages below one slot */

	if (!*slot)
		return;
	for (uint32_t i = levels ? first / span : SLOTS; i < SLOTS; i++)
		free_pages(file, (void **)*slot + i, levels - 1,
			   i == first / span ? first % span : 0);
	if (first > 0)
		return;
	if (ramfs_page_release)
		ramfs_page_release(*slot);
	else
		page_free(*slot, 0);
	*slot = NULL;
	ramfs_counts.pages--;
	file->inode.blocks -= levels ? 0 : PAGE_SIZE / 512;
}

/* Frees the pages from number `first` on. */
static void free_from(struct ramfs_inode *file, uint32_t first)
{
	for (uint32_t i = first; i < RAMFS_DIRECT; i++)
		free_pages(file, &file->file.direct[i], 0, 0);
	free_pages(file, &file->file.tables, LEVELS,
		   first > RAMFS_DIRECT ? first - RAMFS_DIRECT : 0);
}

/* What a page has after the new end becomes zeros, so that a file that grows again shows them, not
 * what was there. Areas lose pages before those are freed. */
int ramfs_truncate(struct inode *inode, uint64_t size)
{
	struct ramfs_inode *file = ramfs_inode(inode);
	struct memory_object *memory = &file->file.memory;
	uint32_t in_page = size % PAGE_SIZE, pages = (size + PAGE_SIZE - 1) / PAGE_SIZE;

	if (size > FILE_SIZE_MAX)
		return -EFBIG;
	if (size <= inode->size) { /* equal: a write that failed may have left a page */
		uint8_t *page = in_page ? find_page(file, size / PAGE_SIZE) : NULL;

		if (page)
			memset(page + in_page, 0, PAGE_SIZE - in_page);
		if (memory->ops)
			memory->ops->cut(memory, pages);
		free_from(file, pages);
	}
	inode->size = size;
	inode_touch(inode, true);
	return 0;
}

/* Begins and ends the use of a page, or of none: while it is used, cutting the file takes it out of
 * the file and does not free it. */
static uint8_t *page_use(void *page)
{
	if (page && ramfs_page_hold)
		ramfs_page_hold(page);
	return page;
}

static void page_unuse(void *page)
{
	if (page && ramfs_page_release)
		ramfs_page_release(page);
}

/* Moves a piece of one page. Returns how many bytes, or a negated errno. */
typedef int page_mover(struct ramfs_inode *file, struct buffer *buffer, uint64_t offset,
		       uint32_t length);

/* A page_mover that reads. A hole needs no page for that. */
static int ramfs_read_page(struct ramfs_inode *file, struct buffer *to, uint64_t offset,
			   uint32_t length)
{
	uint8_t *page = page_use(find_page(file, offset / PAGE_SIZE));
	int moved =
	    page ? buffer_put(to, page + offset % PAGE_SIZE, length) : buffer_put_zeros(to, length);

	page_unuse(page);
	return moved;
}

/* A page_mover that writes, again if the page has left the file while the copy slept. */
static int ramfs_write_page(struct ramfs_inode *file, struct buffer *from, uint64_t offset,
			    uint32_t length)
{
	const struct buffer again = *from;
	uint8_t *page;
	int moved;

	do {
		*from = again;
		page = page_use(ramfs_make_page(file, offset / PAGE_SIZE));
		moved = page ? buffer_take(from, page + offset % PAGE_SIZE, length) : -ENOSPC;
		page_unuse(page);
	} while (page && find_page(file, offset / PAGE_SIZE) != page);
	return moved;
}

/* Moves up to length bytes, page by page. Returns how many, or the error when not even the first
 * could be moved. */
static int move_by_pages(struct ramfs_inode *file, struct buffer *buffer, uint64_t offset,
			 uint32_t length, page_mover *move_page)
{
	uint32_t done = 0;

	while (done < length) {
		uint32_t chunk = PAGE_SIZE - (uint32_t)(offset + done) % PAGE_SIZE;

		if (chunk > length - done)
			chunk = length - done;
		int moved = move_page(file, buffer, offset + done, chunk);

		if (moved < 0)
			return done ? (int32_t)done : moved;
		done += moved;
		if ((uint32_t)moved < chunk)
			break;
	}
	return done;
}

/* A hole is copied as zeros and stays one. */
static int ramfs_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct ramfs_inode *inode = ramfs_inode(file->inode);
	uint32_t length = to->length;

	if (offset >= inode->inode.size)
		return 0;
	if (length > inode->inode.size - offset)
		length = inode->inode.size - offset;
	return move_by_pages(inode, to, offset, length, ramfs_read_page);
}

/* -EFBIG where the process's limit, or the largest offset, leaves no byte; a short count where it
 * leaves some. The size grows after the copy: a reader never sees bytes that were not written. */
static int ramfs_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct ramfs_inode *inode = ramfs_inode(file->inode);
	uint32_t length = from->length;
	uint64_t room = length > 0 ? vfs_room_of(file, offset) : UINT64_MAX;

	if (offset >= FILE_SIZE_MAX || room == 0)
		return -EFBIG;
	if (length > room)
		length = room;
	if (length > FILE_SIZE_MAX - offset)
		length = FILE_SIZE_MAX - offset;
	int moved = move_by_pages(inode, from, offset, length, ramfs_write_page);

	if (moved <= 0)
		return moved;
	if (offset + moved > inode->inode.size)
		inode->inode.size = offset + moved;
	inode_touch(&inode->inode, true);
	return moved;
}

const struct file_ops ramfs_file_ops = {
	.read = ramfs_read,
	.write = ramfs_write,
	.size = vfs_file_size,
	.memory = ramfs_memory,
};
