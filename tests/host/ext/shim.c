/* The kernel below fs/, for the host. */
#include "tests/host/ext/shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/task/lock.h"
#include "mm/kmalloc.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

struct disk disk;
bool console_on = true;
char *fail_text;
size_t pages_in_use, objects_in_use;

void fail(const char *format, ...)
{
	va_list arguments;
	char text[1024];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (fail_text != NULL)
		strcpy(fail_text, text);
	else
		fprintf(stderr, "FAILED: %s\n", text);
	abort();
}

uint64_t clock_count(void)
{
	static uint64_t now = 1262304000u * 1000000000ull;

	return now += 1000000;
}

void disk_open(const char *path, const char *name, enum disk_mode mode)
{
	int file = open(path, mode == DISK_SHARED ? O_RDWR : O_RDONLY);
	int sharing = mode == DISK_SHARED ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
	struct stat status;

	if (file < 0 || fstat(file, &status) != 0)
		fail("cannot open %s", path);
	disk.bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, sharing, file, 0);
	if (disk.bytes == MAP_FAILED)
		fail("cannot map %s", path);
	close(file);
	disk.mode = mode;
	disk.device.name = name;
	disk.device.sectors = (uint64_t)status.st_size / SECTOR_SIZE;
	disk.bad_sector = NO_SECTOR;
	disk.limit = disk.device.sectors;
	disk.budget = UINT64_MAX;
}

/* What every request has in common. Returns true for one that is to fail. */
static bool request_fails(const char *what, uint64_t lba, unsigned count)
{
	if (disk.trace)
		printf("request %s %ju %u\n", what, lba, count);
	if (disk.budget-- == 0)
		fail("too many requests");
	return disk.requests++ - disk.fail_from < disk.fail_count;
}

static bool touches_bad_sector(uint64_t lba, unsigned count)
{
	return disk.bad_sector >= lba && disk.bad_sector - lba < count;
}

static void check_range(const char *what, uint64_t lba, unsigned count)
{
	if (count == 0 || lba >= disk.limit || count > disk.limit - lba)
		fail("%s of %u sectors at %ju, outside the file system", what, count, lba);
}

static const char *const purposes[BLOCK_PURPOSES] = { "data", "mapping", "other" };

int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	bool fails = request_fails(purposes[purpose], lba, count);

	check_range("read", lba, count);
	if (disk.touched != NULL && purpose != BLOCK_DATA)
		memset(disk.touched + lba, 1, count);
	device->stats.counts[purpose].requests++;
	device->stats.counts[purpose].sectors += count;
	if (fails || touches_bad_sector(lba, count))
		return -EIO;
	if (disk.elsewhere != NULL)
		return disk.elsewhere->read(lba, count, buffer);
	memcpy(buffer, disk.bytes + lba * SECTOR_SIZE, (size_t)count * SECTOR_SIZE);
	return 0;
}

int block_write(struct block_device *device, uint64_t lba, unsigned count, const void *buffer,
		enum block_purpose purpose)
{
	static const char *const names[BLOCK_PURPOSES] = { "write-data", "write-mapping",
							   "write-other" };
	bool fails = request_fails(names[purpose], lba, count);

	check_range("write", lba, count);
	if (disk.mode == DISK_READ_ONLY)
		fail("write of %u sectors at %ju, and the disk is read only", count, lba);
	device->stats.counts[purpose].requests++;
	device->stats.counts[purpose].sectors += count;
	if (fails || touches_bad_sector(lba, count))
		return -EIO;
	if (disk.elsewhere != NULL)
		return disk.elsewhere->write(lba, count, buffer);
	memcpy(disk.bytes + lba * SECTOR_SIZE, buffer, (size_t)count * SECTOR_SIZE);
	if (disk.recording)
		record_add(&disk.record, lba, count, buffer);
	return 0;
}

int block_flush(struct block_device *device)
{
	(void)device;
	if (request_fails("flush", 0, 0))
		return -EIO;
	if (disk.elsewhere != NULL)
		return disk.elsewhere->flush();
	if (disk.recording)
		record_add(&disk.record, 0, 0, NULL);
	return 0;
}

void *page_alloc(unsigned order)
{
	size_t size = (size_t)PAGE_SIZE << order;
	void *pages = aligned_alloc(PAGE_SIZE, size);

	pages_in_use += (size_t)1 << order;
	return memset(pages, 0xCC, size);
}

void page_free(void *pages, unsigned order)
{
	pages_in_use -= (size_t)1 << order;
	free(pages);
}

void *pool_alloc(struct pool *pool)
{
	pool->used++;
	objects_in_use++;
	return calloc(1, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	pool->used--;
	objects_in_use--;
	free(object);
}

/* Without disk.yield there is one task. With it another one may run first, even if the mutex is
 * free. */
void mutex_lock(struct mutex *mutex)
{
	do {
		if (disk.yield != NULL)
			disk.yield();
	} while (mutex->owner != NULL && disk.yield != NULL);
	if (mutex->owner != NULL)
		fail("a mutex is taken twice");
	mutex->owner = (struct task *)mutex;
}

void mutex_unlock(struct mutex *mutex)
{
	if (mutex->owner == NULL)
		fail("a mutex is given back twice");
	mutex->owner = NULL;
}

void printk(const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (console_on)
		printf("console %s", text);
}

void panic(const char *format, ...)
{
	va_list arguments;

	printf("panic ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	exit(1);
}

int vsnprintk(char *buffer, size_t size, const char *format, va_list arguments)
{
	return vsnprintf(buffer, size, format, arguments);
}

int snprintk(char *buffer, size_t size, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(buffer, size, format, arguments);
	va_end(arguments);
	return length;
}

static void *allocate(uint32_t size)
{
	objects_in_use++;
	return malloc(size);
}

static void release(void *object)
{
	objects_in_use -= object != NULL;
	free(object);
}

void *(*kmalloc)(uint32_t size) = allocate;
void (*kfree)(void *object) = release;
