/* The kernel's lower floors for the file layer on the host, and the command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/qemu/fw_cfg.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"
#include "kernel/task/time.h"
#include "kernel/task/wait.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"
#include "mm/user_copy.h"
#include "tests/host/fs/floors.h"

#define PLENTY 100000u

uint32_t unit_round;
uint32_t shim_pages_left = PLENTY, shim_pages_out, shim_bytes_until_fault = UINT32_MAX;

char shim_said[SHIM_SAID];
const uint8_t *shim_archive;
uint32_t shim_archive_length;

static uint64_t seed;

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

void printk(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(shim_said, sizeof(shim_said), format, arguments);
	va_end(arguments);
}

int fw_cfg_open(const char *name)
{
	(void)name;
	return shim_archive_length;
}

void fw_cfg_next(void *buffer, uint32_t length)
{
	REQUIRE(length <= shim_archive_length, "%u bytes behind the end", length);
	memcpy(buffer, shim_archive, length);
	shim_archive += length;
	shim_archive_length -= length;
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

uint64_t memory_map_usable(void)
{
	return ((uint64_t)shim_pages_left + shim_pages_out) * (PAGE_SIZE / 1024);
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

void wait_sleep_blocked(struct wait_queue *queue)
{
	(void)queue;
	abort(); /* there is one task, which would sleep for ever */
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

/* ---- the command line: as tests/host/main.c ---- */

static const struct unit_test *find(const char *name)
{
	for (size_t i = 0; shim_suites[i]; i++)
		for (const struct unit_test *test = shim_suites[i]; test->name; test++) {
			if (!name)
				puts(test->name);
			else if (strcmp(test->name, name) == 0)
				return test;
		}
	return NULL;
}

int main(int count, char **arguments)
{
	const struct unit_test *test = find(count < 4 ? NULL : arguments[1]);

	if (count < 4)
		return EXIT_SUCCESS;
	struct random random = { strtoull(arguments[2], NULL, 0) };

	seed = random.state;
	REQUIRE(test, "there is no test %s", arguments[1]);
	shim_begin();
	test->run(&random, strtoull(arguments[3], NULL, 0));
	return EXIT_SUCCESS;
}
