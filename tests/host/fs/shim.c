/* The kernel's lower floors for the file layer on the host, and the command line. */
#include "tests/host/fs/shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/devices.h"
#include "fs/files.h"
#include "fs/path.h"
#include "fs/pipe.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "fs/linux/names.h"
#include "kernel/lib/startup.h"
#include "kernel/report/panic.h"
#include "mm/pool.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"
#include "kernel/task/time.h"
#include "mm/page_alloc.h"

static const struct unit_test *const suites[] = {
	names_tests, data_tests, pipe_tests, archive_tests, line_tests,
};

#define PLENTY 100000u

uint32_t unit_round;
uint32_t shim_pages_left = PLENTY, shim_pages_out, shim_bytes_until_fault = UINT32_MAX;

static struct files *files;

static uint64_t seed;
static uint32_t roots;

/* ---- the tests' own ---- */

void unit_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	printf("%s:%d: seed %" PRIu64 ", round %u: ", file, line, seed, unit_round);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(EXIT_FAILURE);
}

void panic(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	abort();
}

/* Formats ask for names of addresses; nobody here prints one. */
int symbol_describe(uintptr_t address, char *buffer, size_t size)
{
	return snprintf(buffer, size, "0x%" PRIxPTR, address);
}

/* ---- memory ---- */

void *page_alloc(unsigned order)
{
	void *pages = NULL;

	if (shim_pages_left < 1u << order || posix_memalign(&pages, PAGE_SIZE, PAGE_SIZE << order))
		return NULL;
	memset(pages, 0xcc, PAGE_SIZE << order);
	shim_pages_left -= 1u << order;
	shim_pages_out += 1u << order;
	return pages;
}

void page_free(void *pages, unsigned order)
{
	free(pages);
	shim_pages_left += 1u << order;
	shim_pages_out -= 1u << order;
}

size_t page_free_count(void)
{
	return shim_pages_left;
}

/* Each object has memory of its own, for the sanitizer to watch. */
void *pool_alloc(struct pool *pool)
{
	pool->used++;
	return calloc(1, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	pool->used--;
	free(object);
}

/* ---- ring 3's memory ---- */

static uint32_t before_fault(const struct buffer *buffer, uint32_t length)
{
	if (length > buffer->length)
		length = buffer->length;
	if (buffer->is_user && length > shim_bytes_until_fault)
		length = shim_bytes_until_fault;
	return length;
}

static int advance(struct buffer *buffer, uint32_t wanted, uint32_t length)
{
	if (length == 0 && wanted > 0 && buffer->length > 0)
		return -EFAULT;
	buffer->address += length;
	buffer->length -= length;
	if (buffer->is_user)
		shim_bytes_until_fault -= length;
	return length;
}

int buffer_put(struct buffer *to, const void *from, uint32_t length)
{
	uint32_t moved = before_fault(to, length);

	memcpy((void *)to->address, from, moved);
	return advance(to, length, moved);
}

int buffer_take(struct buffer *from, void *to, uint32_t length)
{
	uint32_t moved = before_fault(from, length);

	memcpy(to, (const void *)from->address, moved);
	return advance(from, length, moved);
}

int buffer_put_zeros(struct buffer *to, uint32_t length)
{
	uint32_t moved = before_fault(to, length);

	memset((void *)to->address, 0, moved);
	return advance(to, length, moved);
}

uint32_t copy_to_user(uint32_t to, const void *from, uint32_t length)
{
	(void)to, (void)from;
	return length; /* an address of 32 bits is nowhere here */
}

/* ---- tasks and time ---- */

int wait_sleep_until(struct wait_queue *queue, uint64_t deadline_ns)
{
	(void)queue, (void)deadline_ns;
	return -ERESTART;
}

void wait_wake(struct wait_queue *queue)
{
	(void)queue;
}

void wait_join(struct wait_queue *queue, struct waiter *waiter)
{
	(void)queue, (void)waiter;
}

uint64_t time_wall_ns(void)
{
	return 1000;
}

/* ---- roots and leaks ---- */

void shim_new_root(void)
{
	struct inode *root = ramfs_create_root();

	roots++;
	path_set_root(root);
	if (files)
		files_destroy(files);
	files = files_create();
}

/* Names that were found in a directory: one at a time is enough. */
struct found {
	char name[NAME_MAX + 1];
	bool is_directory;
};

static bool note(void *context, const struct directory_entry *entry)
{
	struct found *found = context;

	if (name_is(&entry->name, ".") || name_is(&entry->name, ".."))
		return true;
	memcpy(found->name, entry->name.text, entry->name.length);
	found->name[entry->name.length] = '\0';
	found->is_directory = entry->mode >> 12 == S_IFDIR >> 12;
	return false;
}

void shim_remove_all(struct inode *directory)
{
	for (;;) {
		struct found found = { "", false };
		struct inode *inner;
		uint64_t position = 0;

		directory->ops->iterate(directory, &position, note, &found);
		if (!found.name[0])
			return;
		if (found.is_directory) {
			REQUIRE(path_find(directory, found.name, PATH_NAME, &inner) == 0,
				"%s is listed, but not found", found.name);
			shim_remove_all(inner);
			inode_put(inner);
		}
		int error = vfs_remove(directory, found.name, found.is_directory);

		REQUIRE(error == 0, "%s cannot be removed: %d", found.name, error);
	}
}

uint32_t shim_ramfs_pages(void)
{
	return ramfs_statistics().pages;
}

void shim_require_no_leak(const char *after, uint32_t pages)
{
	struct ramfs_statistics counts = ramfs_statistics();

	REQUIRE(counts.inodes == roots, "after %s: %u inodes, %u roots", after, counts.inodes,
		roots);
	REQUIRE(counts.entries == 0, "after %s: %u directory entries", after, counts.entries);
	REQUIRE(counts.pages == 0, "after %s: %u pages of ramfs", after, counts.pages);
	REQUIRE(shim_pages_out <= pages + 1, "after %s: %u pages", after, shim_pages_out);
	REQUIRE(file_count() == 0, "after %s: %u open files", after, file_count());
	REQUIRE(pipe_count() == 0, "after %s: %u pipes", after, pipe_count());
}

/* ---- the command line: as tests/host/main.c ---- */

static const struct unit_test *find(const char *name)
{
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		for (const struct unit_test *test = suites[i]; test->name; test++) {
			if (!name)
				puts(test->name);
			else if (strcmp(test->name, name) == 0)
				return test;
		}
	return NULL;
}

extern startup_function *const __start_startups[], *const __stop_startups[];

static void run_startups(void)
{
	for (startup_function *const *each = __start_startups; each < __stop_startups; each++)
		(*each)();
}

int main(int count, char **arguments)
{
	const struct unit_test *test = find(count < 4 ? NULL : arguments[1]);

	if (count < 4)
		return EXIT_SUCCESS;
	struct random random = { strtoull(arguments[2], NULL, 0) };

	seed = random.state;
	REQUIRE(test, "there is no test %s", arguments[1]);
	shim_new_root();
	run_startups();
	test->run(&random, strtoull(arguments[3], NULL, 0));
	return EXIT_SUCCESS;
}
