/* Bugs of memory: somebody writes where another one's data is. */
#include "kernel/lib/string.h"
#include "mm/kmalloc.h"
#include "mm/page_alloc.h"
#include "tests/debugger/bugs/bug.h"

/* link: an array that is filled too far reaches the links of a list. */
#define ITEMS 4

static struct item {
	char name[8];
	struct item *next;
} shelf[ITEMS];

static CALLED void name_item(struct item *item, const char *text)
{
	char *to = item->name;

	while ((*to++ = *text++))
		;
}

static void bug_link(void)
{
	for (unsigned i = 0; i < ITEMS; i++)
		shelf[i].next = i + 1 < ITEMS ? &shelf[i + 1] : NULL;
	name_item(&shelf[1], "overflowing");
	bug_work();
	for (struct item *item = shelf; item; item = item->next) {
		if (item < shelf || item >= shelf + ITEMS)
			panic("the list is damaged");
	}
}

/* freed: one who has given an object back writes to it once more. */
struct account {
	uint32_t number, balance;
};

static struct account *former_account, *present_account;

static CALLED void close_account(void)
{
	kfree(former_account);
}

static CALLED void book_late(void)
{
	former_account->balance = 7;
}

static void bug_freed(void)
{
	former_account = kmalloc(sizeof(*former_account));
	close_account();
	present_account = kmalloc(sizeof(*present_account));
	present_account->balance = 100;
	book_late();
	bug_work();
	if (present_account->balance != 100)
		panic("the balance is %u", present_account->balance);
}

/* double: an object is freed twice, and then has two owners. */
static void *volatile first_owner, *volatile second_owner;

static CALLED void tidy_up(void *object)
{
	kfree(object);
}

static CALLED void tidy_again(void *object)
{
	first_owner = NULL;
	kfree(object);
}

static void bug_double(void)
{
	void *object = kmalloc(40), *other = kmalloc(40);

	tidy_up(object);
	kfree(other);
	tidy_again(object);
	bug_work();
	first_owner = kmalloc(40);
	kmalloc(40);
	second_owner = kmalloc(40);
	if (first_owner == second_owner)
		panic("two owners of one object");
	panic("the allocator has noticed");
}

/* leak: on one of two ways out an object is not given back. */
static uint32_t alive_objects;

static CALLED void attempt(bool fails)
{
	void *object = kmalloc(24);

	alive_objects++;
	if (fails)
		return;
	kfree(object);
	alive_objects--;
}

static void bug_leak(void)
{
	for (unsigned i = 0; i < 100; i++)
		attempt(i == 42);
	bug_work();
	if (alive_objects)
		panic("%u objects are left", alive_objects);
}

/* stale: memory that was not cleared has what its former_account owner has left. */
struct request {
	uint32_t state;
	struct request *next;
};

static struct request *volatile queued_request;

static CALLED void use_it_otherwise(void)
{
	uint32_t *words = kmalloc(sizeof(struct request));

	words[1] = 0x1234;
	kfree(words);
}

static void bug_stale(void)
{
	use_it_otherwise();
	bug_work();
	queued_request = kmalloc(sizeof(*queued_request));
	queued_request->state = 1;
	if (queued_request->next)
		panic("next is %p", (void *)queued_request->next);
}

/* terminator: one byte too few was counted, and it belongs to another variable. */
static struct {
	char text[8];
	uint8_t level;
} name_setting = { .level = 3 };

static CALLED void copy_name(const char *name)
{
	memcpy(name_setting.text, name, strlen(name) + 1);
}

static void bug_terminator(void)
{
	copy_name("12345678");
	bug_work();
	if (name_setting.level != 3)
		panic("the level is %u", name_setting.level);
}

/* size: the size of a pointer's target is taken for another one's. */
static struct {
	uint8_t small[16];
	uint32_t mode;
} sound_device = { .mode = 5 };

static CALLED void clear_records(void)
{
	memset(sound_device.small, 0, sizeof(sound_device));
}

static void bug_size(void)
{
	clear_records();
	bug_work();
	if (sound_device.mode != 5)
		panic("the mode is %u", sound_device.mode);
}

/* owner: a page is freed while somebody still uses it. */
static uint32_t *notes_page;

static CALLED void write_page(uint32_t *page)
{
	page[1] = 0xdead;
}

static void bug_owner(void)
{
	notes_page = page_alloc(0);
	notes_page[1] = 1;
	page_free(notes_page, 0);
	write_page(page_alloc(0));
	bug_work();
	if (notes_page[1] != 1)
		panic("the note is %#x", notes_page[1]);
}

/* index: a counter gets too large, and then is an index. */
static int32_t ring_position;
static uint32_t ring[8];

static CALLED void advance(int32_t by)
{
	ring_position += by;
}

static void bug_index(void)
{
	for (unsigned i = 0; i < 50; i++)
		advance(i == 33 ? -40 : 1);
	bug_work();
	if (ring_position != 50)
		panic("ring_position %d", (int)ring_position);
	ring[ring_position & 7] = 1;
}

const struct bug bugs_of_memory[] = {
	{ "link", bug_link }, { "freed", bug_freed }, { "double", bug_double },
	{ "leak", bug_leak }, { "stale", bug_stale }, { "terminator", bug_terminator },
	{ "size", bug_size }, { "owner", bug_owner }, { "index", bug_index },
	{ NULL, NULL },
};
