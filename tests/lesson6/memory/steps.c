/*
 * Spaces and page caches that do what a test says, step by step: tests/lesson6/steps.py has the
 * numbers of the steps, and judges the results.
 *
 * A step has a kind, the number of a space or a cache, and up to four more words. A result has two
 * words. Accesses are made by the processor, with copy_from_user and copy_to_user: they fault as a
 * system call's would.
 */
#include "tests/lesson4/threads/thread_test.h"

#include "kernel/lib/string.h"
#include "kernel/lib/tree.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/page_cache.h"
#include "mm/page_table.h"
#include "mm/slab.h"
#include "mm/space.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"
#include "mm/zones.h"

#define STEPS  2048
#define SPACES 12
#define CACHES 3
#define FILE   64 /* pages of a file, at most */
#define PINS   16

struct step {
	uint32_t what, which, a, b, c, d;
};

struct result {
	uint32_t first, second;
};

struct step steps[STEPS];
struct result results[STEPS];

static struct result one(uint32_t word)
{
	return (struct result){ word, 0 };
}

/* A file: a word for each page, which is at its start; the rest of a page is zero. */
struct test_cache {
	struct page_cache cache;
	uint32_t pages;
	uint32_t words[FILE];
	uint32_t reads, writes, ends, longest;
	/* What happens in the next read or write-back of this page, once (enum event). */
	uint32_t event, event_page, event_word;
};

enum event {
	NOTHING,
	FAILS,
	ASKED_AGAIN,
	WRITTEN_TO,
	IS_CUT,
	RECLAIMED,
	BOTH_FAIL,     /* this page with -EIO, and then the next one */
	CUT_AND_FAILS, /* and a page of the file event_word is read meanwhile */
	CUT_AND_GROWN  /* with event_word on this page; what is read is of before */
};

static struct test_cache caches[CACHES];
static struct space *spaces[SPACES];
static struct page *pins[PINS];

/* ---- files ---- */

static uint32_t *event_of(struct test_cache *file, uint32_t index)
{
	return file->event != NOTHING && file->event_page == index ? &file->event : NULL;
}

static bool takes(struct test_cache *file, uint32_t index, uint32_t event)
{
	uint32_t *next = event_of(file, index);

	if (!next || *next != event)
		return false;
	*next = NOTHING;
	return true;
}

static int file_read(struct page_cache *cache, uint32_t index, struct page **page)
{
	struct test_cache *file = (struct test_cache *)cache;
	uint32_t *memory = page_alloc(0);

	file->reads++;
	if (!memory)
		return -ENOMEM;
	if (takes(file, index, FAILS)) {
		page_free(memory, 0);
		return -EIO;
	}
	if (takes(file, index, ASKED_AGAIN)) { /* another task, while this one sleeps */
		struct page *other;

		if (cache->object.ops->page(&cache->object, index, true, &other) == 0)
			page_release(other);
	}
	if (takes(file, index, IS_CUT))
		file->pages = index;
	for (uint32_t i = 0; i < PAGE_SIZE / sizeof(uint32_t); i++)
		memory[i] = i ? 0 : file->words[index % FILE];
	if (takes(file, index, CUT_AND_GROWN)) {
		page_cache_cut(cache, index);
		file->words[index % FILE] = file->event_word;
	}
	*page = page_of(memory);
	return 0;
}

/* Another task writes, while this one sleeps: through the entry, if it still may, else by a fault.
 */
static void write_meanwhile(struct page_cache *cache, uint32_t index, uint32_t word)
{
	struct list *link = cache->object.areas.next;
	struct area *area = list_entry(link, struct area, in_object);

	if (link == &cache->object.areas)
		return;
	uint32_t address = area_start(area) + ((index - area->index) << PAGE_SHIFT);
	const uint32_t *pte = pte_of(area->space, address, false);

	if (!pte || !(*pte & PTE_WRITE))
		space_fault(area->space, address, true, true);
	pte = pte_of(area->space, address, false);
	if (pte && (*pte & PTE_WRITE))
		*(uint32_t *)page_address(pte_page(*pte)) = word;
}

static int file_write(struct page_cache *cache, uint32_t index, const void *page)
{
	struct test_cache *file = (struct test_cache *)cache;
	uint32_t word = *(const uint32_t *)page;

	file->writes++;
	if (takes(file, index, FAILS))
		return -ENOSPC;
	if (takes(file, index, BOTH_FAIL)) {
		file->event = FAILS, file->event_page = index + 1;
		return -EIO;
	}
	if (takes(file, index, CUT_AND_FAILS)) { /* the other page gets what was freed */
		struct memory_object *other = &caches[file->event_word % CACHES].cache.object;
		struct page *read;

		page_cache_cut(cache, index);
		if (other->ops->page(other, 0, false, &read) == 0)
			page_release(read);
		return -ENOSPC;
	}
	if (takes(file, index, WRITTEN_TO))
		write_meanwhile(cache, index, file->event_word);
	if (takes(file, index, IS_CUT)) {
		page_cache_cut(cache, index);
		void *new = page_alloc(0); /* gets the page, if it was freed */

		if (new)
			page_free(memset(new, 0x5a, PAGE_SIZE), 0);
		word = *(const uint32_t *)page;
	}
	if (takes(file, index, RECLAIMED)) {
		page_cache_reclaim(FILE);
		void *new = page_alloc(0);

		if (new)
			page_free(memset(new, 0x5a, PAGE_SIZE), 0);
		word = *(const uint32_t *)page;
	}
	file->words[index % FILE] = word;
	return 0;
}

static uint32_t file_count(const struct page_cache *cache)
{
	return ((const struct test_cache *)cache)->pages;
}

static void file_release(struct page_cache *cache)
{
	((struct test_cache *)cache)->ends++;
}

static void make_cache(struct test_cache *file, uint32_t pages)
{
	static const struct page_cache_ops ops = { file_read, file_write, file_count,
						   file_release };

	*file = (struct test_cache){ .pages = pages };
	page_cache_initialize(&file->cache, &ops);
}

static struct cached_page *in_cache(const struct page_cache *cache, uint32_t index)
{
	struct tree_node *node = tree_at_most(cache->pages, index);

	return node && node->key == index ? (struct cached_page *)node : NULL;
}

/* ---- accesses ---- */

/* As a change of tasks does it: the TLB forgets nothing while the space stays the same. */
static void use(struct space *space)
{
	if (current->space != space)
		space_use(space);
	current->space = space;
}

/* Faults may sleep then, as they may in a program: no interrupt comes. */
static uint32_t access(uint32_t address, uint32_t *word, bool write)
{
	interrupts_enable();
	uint32_t left = write ? copy_to_user(address, word, 4) : copy_from_user(word, address, 4);

	interrupts_disable();
	return left;
}

static const uint32_t *entry(uint32_t space, uint32_t address)
{
	return spaces[space] ? pte_of(spaces[space], address, false) : NULL;
}

/* Pages that are in use, without those that are kept for the next tables; and those that are cut
 * into objects. */
static struct result used_pages(void)
{
	struct result pages = { 0, 0 };

	page_table_shrink();
	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slab_shrink(list_entry(link, struct slab_cache, link));
	for (uint32_t frame = 0; frame < page_frames; frame++) {
		pages.first += page_array[frame].state == PAGE_USED;
		pages.second += page_array[frame].state == PAGE_SLAB;
	}
	return pages;
}

static int put(const struct step *step)
{
	uint32_t file = step->d >> 16;
	const struct area form = { .flags = step->c,
				   .object = file ? &caches[file - 1].cache.object : NULL,
				   .index = step->d & 0xffff };

	return area_put(spaces[step->which], step->a, step->b, &form);
}

/* ---- the steps ---- */

static struct result of_spaces(const struct step *step)
{
	struct space **space = &spaces[step->which % SPACES];

	switch (step->what) {
	case 0: /* make */
		*space = space_create();
		return one(*space != NULL);
	case 1: /* fork */
		spaces[step->a % SPACES] = space_copy(*space);
		return one(spaces[step->a % SPACES] != NULL);
	case 2: /* end */
		if (current->space == *space)
			use(NULL);
		space_destroy(*space);
		*space = NULL;
		break;
	case 3: /* use; 255: none */
		use(step->which == 255 ? NULL : *space);
		break;
	case 4:
		return one(put(step));
	case 5:
		return one(area_cut(*space, step->a, step->b));
	case 6:
		return one(area_protect(*space, step->a, step->b, step->c));
	default:
		break;
	}
	return one(0);
}

static struct result of_memory(const struct step *step)
{
	struct space **space = &spaces[step->which % SPACES];
	uint32_t word = step->b;

	switch (step->what) {
	case 7:
		use(*space);
		return (struct result){ access(step->a, &word, false), word };
	case 8:
		use(*space);
		return one(access(step->a, &word, true));
	case 9: { /* the entry of an address, and its page's references */
		const uint32_t *pte = entry(step->which, step->a);

		if (!pte || !*pte)
			return one(0);
		return (struct result){ *pte, pte_page(*pte)->references };
	}
	case 10: /* the heap: where it begins; where it ends then */
		if (step->a)
			space_set_heap(*space, step->a);
		use(*space);
		interrupts_enable();
		word = space_set_break(*space, step->b);
		interrupts_disable();
		return one(word);
	case 11:
		return (struct result){ (*space)->pages, (*space)->size };
	case 12: /* a page for each of this many pages, by faults */
		for (uint32_t page = 0; page < step->b; page++)
			if (space_fault(*space, step->a + (page << PAGE_SHIFT), true, true) != 0)
				return one(page);
		return one(step->b);
	case 13: /* a fault, to write or to read: 0, or a negated errno */
		use(*space);
		interrupts_enable();
		word = space_fault(*space, step->a, step->b, true);
		interrupts_disable();
		return one(word);
	default:
		break;
	}
	return one(0);
}

static struct result of_caches(const struct step *step)
{
	struct test_cache *file = &caches[step->which % CACHES];
	struct memory_object *object = &file->cache.object;
	struct page *page;
	int error;

	switch (step->what) {
	case 40:
		make_cache(file, step->a);
		break;
	case 41: /* what the file has at a page, from the outside */
		file->words[step->a % FILE] = step->b;
		break;
	case 42:
		return one(file->words[step->a % FILE]);
	case 43: /* the page, which stays pinned: 0, or why there is none; its references */
		error = object->ops->page(object, step->a, step->b, &page);
		pins[step->c % PINS] = error ? NULL : page;
		return (struct result){ error, error ? 0 : page->references };
	case 44: /* which is unpinned */
		if (pins[step->a % PINS])
			page_release(pins[step->a % PINS]);
		break;
	case 45:
		return one(page_cache_sync(&file->cache, step->a, step->b));
	case 46: /* as the owner of a file that gets shorter does it */
		file->pages = step->b;
		object->ops->cut(object, step->a);
		break;
	case 47:
		file->pages = step->a;
		break;
	default:
		break;
	}
	return one(0);
}

/* The number of the first page, and how many; none for pages that are not those of the run. */
static struct result clean_run(struct page_cache *cache, const struct step *step)
{
	struct cached_page *run[FILE];
	uint32_t first = step->a, most = step->c < FILE ? step->c : FILE;
	uint32_t count = page_cache_clean(cache, &first, step->b, run, most);

	for (uint32_t i = 0; i < count; i++)
		if (run[i] != in_cache(cache, first + i))
			return (struct result){ first, 0 };
	return (struct result){ first, count };
}

static struct result of_cached_pages(const struct step *step)
{
	struct test_cache *file = &caches[step->which % CACHES];
	struct memory_object *object = &file->cache.object;
	struct cached_page *found;

	switch (step->what) {
	case 48:
		found = in_cache(&file->cache, step->a);
		return (struct result){ found != NULL, found && found->is_dirty };
	case 49:
		return (struct result){ file->reads, file->writes };
	case 50:
		file->event = step->a, file->event_page = step->b, file->event_word = step->c;
		break;
	case 51:
		object->ops->release(object);
		return one(file->ends);
	case 52:
		return one(page_cache_reclaim(step->a));
	case 53: /* what a page of the cache begins with; its references */
		found = in_cache(&file->cache, step->a);
		return (struct result){ found ? *(uint32_t *)page_address(found->page) : 0,
					found ? found->page->references : 0 };
	case 54: /* one is pinned that an entry shows */
		found = in_cache(&file->cache, step->a);
		pins[step->c % PINS] = found->page;
		page_hold(pins[step->c % PINS]);
		break;
	case 55:
		return clean_run(&file->cache, step);
	default:
		break;
	}
	return one(0);
}

static struct result play_step(const struct step *step)
{
	if (step->what == 30)
		return used_pages();
	if (step->what == 31) {
		allocation_fails_in = step->a;
		return one(0);
	}
	if (step->what < 30)
		return step->what < 7 ? of_spaces(step) : of_memory(step);
	return step->what < 48 ? of_caches(step) : of_cached_pages(step);
}

/* The first `count` of the steps. */
void play(uint32_t count)
{
	quiet();
	for (uint32_t i = 0; i < count; i++)
		results[i] = play_step(&steps[i]);
}
