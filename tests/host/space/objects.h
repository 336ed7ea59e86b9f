/* The objects of test_space.c, which includes this once: two of memory, and a page cache over a
 * disk in memory. */
#pragma once

static int object_page(struct memory_object *memory, uint32_t index, bool write, struct page **page)
{
	struct object *object = (struct object *)memory;

	if (index >= OBJECT_PAGES)
		return -EIO;
	*page = page_of(object->pages[index]);
	page_hold(*page);
	return 0;
}

static void *const *object_peek(struct memory_object *memory, uint32_t index, uint32_t *count)
{
	if (index >= OBJECT_PAGES)
		return NULL;
	*count = OBJECT_PAGES - index;
	return &((struct object *)memory)->pages[index];
}

static void object_hold(struct memory_object *memory)
{
	((struct object *)memory)->references++;
}

static void object_release(struct memory_object *memory)
{
	((struct object *)memory)->references--;
}

static const struct memory_object_ops object_ops = {
	.page = object_page, .peek = object_peek, .hold = object_hold, .release = object_release
};

/* Another task may read the same page, or it may take another one meanwhile. */
static int cache_read(struct page_cache *same, uint32_t index, struct page **read)
{
	static bool is_reading;
	struct page *page;

	if (!is_reading && random_below(&accident, 4) == 0) {
		is_reading = true;
		if (cache.object.ops->page(&cache.object, index, false, &page) == 0)
			page_release(page);
		is_reading = false;
	}
	void *memory = page_alloc(0);

	if (!memory)
		return -ENOMEM;
	memset(memory, 0, PAGE_SIZE);
	*(uint32_t *)memory = disk[index];
	*read = page_of(memory);
	return 0;
}

static void access(struct random *random, unsigned number);

/* While a page is written back the program may write to it again. */
static int cache_write(struct page_cache *same, uint32_t index, const void *memory)
{
	disk[index] = *(const uint32_t *)memory;
	for (unsigned i = 0; i < 8; i++)
		access(&accident, in_use);
	return 0;
}

static uint32_t cache_count(const struct page_cache *same)
{
	return OBJECT_PAGES;
}

static void cache_released(struct page_cache *same)
{
	REQUIRE(false, "the cache is released, and we have a reference");
}

static const struct page_cache_ops cache_ops = { cache_read, cache_write, cache_count,
						 cache_released };

static void give_back(void)
{
	if (random_below(&accident, 2) == 0)
		page_cache_reclaim(random_below(&accident, 4));
}

static struct memory_object *memory_of(unsigned object)
{
	if (object == NOBODY)
		return NULL;
	return object == CACHED ? &cache.object : &objects[object].memory;
}

static unsigned number_of(const struct memory_object *memory)
{
	unsigned object = 0;

	while (memory_of(object) != memory)
		object++;
	return object;
}
