/*
 * Files in memory that areas map: the pages of the file are the pages of the area, so what
 * one writes the other sees. Memory that is shared without a file is a file without a name, in no
 * file system (number 0): System V's shared memory, and anonymous areas that fork shares.
 *
 *	area --> memory_object, in the inode --> page of the file --> entries of all spaces
 *
 * From lesson 6 on a page has a count of those who use it: the file is one of them, each entry
 * another, and so is a copy that is under way (ramfs_page_hold).
 */
#include "fs/ram/ramfs_data.h"
#include "fs/memory/ramfs_memory.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/path.h"
#include "kernel/report/printk.h"
#include "mm/page_table.h"
#include "mm/reverse_map.h"

#define DEPTH 16 /* of directories, in which a name is searched */

static struct ramfs_inode *file_of_memory(struct memory_object *object)
{
	return list_entry(object, struct ramfs_inode, file.memory);
}

/* Makes a page where there is a hole, also to read: an area has no page of zeros that all holes
 * share. -EIO is SIGBUS for the program. */
static int memory_page(struct memory_object *object, uint32_t index, bool write, struct page **page)
{
	struct ramfs_inode *file = file_of_memory(object);

	if (index >= (file->inode.size + PAGE_SIZE - 1) / PAGE_SIZE)
		return -EIO;
	void *contents = ramfs_make_page(file, index);

	if (!contents) /* what is full is the file system, or the memory */
		return ramfs_counts.pages < ramfs_counts.pages_limit ? -ENOMEM : -EIO;
	*page = page_of(contents);
	page_hold(*page);
	if (write)
		inode_touch(&file->inode, true);
	return 0;
}

/* Does not make pages, and does not sleep: for fault-around, mincore and /proc. */
static void *const *memory_peek(struct memory_object *object, uint32_t index, uint32_t *count)
{
	return ramfs_find_pages(file_of_memory(object), index, count);
}

/* The pages live as long as the inode. */
static void memory_hold(struct memory_object *object)
{
	inode_hold(&file_of_memory(object)->inode);
}

static void memory_release(struct memory_object *object)
{
	inode_put(&file_of_memory(object)->inode);
}

/* There is nothing to write back, but the next write to a page changes the file's times again. */
static int memory_sync(struct memory_object *object, uint32_t first, uint32_t end)
{
	uint32_t count;

	for (; first < end; first++) {
		void *const *contents = memory_peek(object, first, &count);

		if (contents && *contents)
			object_clean(object, first, page_of(*contents));
	}
	return 0;
}

/* Before the file frees them: no entry may show a page that is gone. */
static void memory_cut(struct memory_object *object, uint32_t first)
{
	object_unmap(object, first, UINT32_MAX);
}

/* The name of a file below a directory, before *end. */
static bool find_path(const struct ramfs_inode *directory, const struct ramfs_inode *file,
		      const char *start, char **end, unsigned depth)
{
	const struct ramfs_entry *entry = directory->directory.first;

	for (; entry; entry = entry->next) {
		bool is_below = inode_is(&entry->inode->inode, S_IFDIR) && depth > 0 &&
				find_path(entry->inode, file, start, end, depth - 1);

		if (entry->inode != file && !is_below)
			continue;
		if ((uint32_t)(*end - start) <= entry->length)
			return false;
		*end -= entry->length + 1;
		**end = '/';
		memcpy(*end + 1, entry->text, entry->length);
		return true;
	}
	return false;
}

/* An inode does not know its names: its mount's tree is searched. */
static void memory_describe(const struct memory_object *object, char *text, uint32_t size)
{
	const struct ramfs_inode *file = file_of_memory((struct memory_object *)object);
	const struct mount *mount = file->inode.links > 0 ? mount_of(&file->inode) : NULL;
	uint32_t above = mount && mount->root != path_root() ? strlen(mount->path) : 0;
	char *end = text + size - 1;

	*end = '\0';
	if (mount && find_path(ramfs_inode(mount->root), file, text + above, &end, DEPTH))
		memmove(memcpy(text, mount->path, above) + above, end, text + size - end);
	else if (file->inode.filesystem)
		snprintk(text, size, "/#%u (deleted)", file->inode.number);
	else
		snprintk(text, size, "/dev/zero (deleted)");
}

/* Of all files in memory, with and without a name. */
static const struct memory_object_ops ops = { .page = memory_page,
					      .peek = memory_peek,
					      .hold = memory_hold,
					      .release = memory_release,
					      .sync = memory_sync,
					      .cut = memory_cut,
					      .describe = memory_describe };

/* The object begins when the file is mapped for the first time. */
struct memory_object *ramfs_memory(struct file *file)
{
	struct memory_object *object = &ramfs_inode(file->inode)->file.memory;

	if (!object->ops)
		object_initialize(object, &ops);
	return object;
}

/* The object's reference is the inode's. The pages come when they are touched, and count as those
 * of files. */
struct memory_object *ramfs_shared_memory(uint32_t length)
{
	struct ramfs_inode *file = ramfs_make_inode(S_IFREG | 0600, 0);

	if (!file)
		return NULL;
	file->inode.links = 0; /* it has no name */
	file->inode.size = length;
	object_initialize(&file->file.memory, &ops);
	return &file->file.memory;
}

/* A table of pages is a page, too. */
/* For a copy that is under way; the file's own reference may go meanwhile. */
void ramfs_page_hold(void *page)
{
	page_hold(page_of(page));
}

void ramfs_page_release(void *page)
{
	page_release(page_of(page));
}
