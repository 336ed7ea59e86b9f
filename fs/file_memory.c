/*
 * Files as areas map them: the file system's own pages, if it has them in memory; else a page
 * cache, which reads them by the file's own operations.
 *
 * There is one cache for each file, however often it is open: they are found by what their open
 * files have in common, `private`. A cache holds its file open as long as an area maps it. Nobody
 * may write to such a file (fs/root.c), so no page of the cache becomes dirty.
 */
#include "fs/file_memory.h"

#include "kernel/lib/string.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/page_cache.h"
#include "mm/pool.h"

struct file_pages {
	struct page_cache cache;
	struct file *file;
	struct list in_all;
};

static struct pool pool = POOL_INITIALIZER(struct file_pages);
static struct list all = LIST_EMPTY(all);

static struct file *file_of(const struct page_cache *cache)
{
	return ((const struct file_pages *)cache)->file;
}

/* The rest of the last page is zero. */
static int pages_read(struct page_cache *cache, uint32_t index, struct page **page)
{
	void *memory = page_alloc(0);
	struct buffer buffer = buffer_of_kernel(memory, PAGE_SIZE);
	uint64_t offset = (uint64_t)index << PAGE_SHIFT;
	int count = memory ? 1 : -ENOMEM;

	while (buffer.length > 0 && count > 0) {
		count = file_read_at(file_of(cache), &buffer, offset);
		offset += count > 0 ? count : 0;
	}
	if (count >= 0) {
		memset((void *)buffer.address, 0, buffer.length);
		*page = page_of(memory);
	} else if (memory) {
		page_free(memory, 0);
	}
	return count < 0 ? count : 0;
}

static uint32_t pages_count(const struct page_cache *cache)
{
	return (file_size(file_of(cache)) + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static void pages_release(struct page_cache *cache)
{
	struct file_pages *pages = (struct file_pages *)cache;

	list_remove(&pages->in_all);
	file_release(pages->file);
	pool_free(&pool, pages);
}

static struct memory_object *object_of_file(const struct file *file)
{
	for (struct list *link = all.next; link != &all; link = link->next) {
		struct file_pages *each = list_entry(link, struct file_pages, in_all);

		if (each->file->ops == file->ops && each->file->private == file->private)
			return &each->cache.object;
	}
	return NULL;
}

/* With one reference, the caller's. */
static struct memory_object *make_object(struct file *file)
{
	static const struct page_cache_ops ops = {
		.read = pages_read,
		.count = pages_count,
		.release = pages_release,
	};
	struct file_pages *pages = pool_alloc(&pool);

	if (!pages)
		return NULL;
	page_cache_initialize(&pages->cache, &ops);
	pages->file = file;
	file->references++;
	list_append(&all, &pages->in_all);
	return &pages->cache.object;
}

/* What has no size and no private data is a device. */
struct memory_object *file_memory(struct file *file)
{
	struct memory_object *object =
	    file->ops->memory ? file->ops->memory(file) : object_of_file(file);

	if (object)
		object->ops->hold(object);
	else if (!file->ops->memory && file->ops->read && file->ops->size && file->private &&
		 !file->inode && !file->ops->is_stream)
		object = make_object(file);
	return object;
}
