/* The kernel below fs/, for the host. */
#include "tests/host/ext/shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

struct disk disk;
bool console_on = true;
size_t pages_in_use;

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "FAILED: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	abort();
}

void disk_open(const char *path, const char *name)
{
	int file = open(path, O_RDONLY);
	struct stat status;

	if (file < 0 || fstat(file, &status) != 0)
		fail("cannot open %s", path);
	disk.bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_NORESERVE, file, 0);
	if (disk.bytes == MAP_FAILED)
		fail("cannot map %s", path);
	disk.device.name = name;
	disk.device.sectors = (uint64_t)status.st_size / SECTOR_SIZE;
	disk.bad_sector = NO_SECTOR;
	disk.limit = disk.device.sectors;
	disk.budget = UINT64_MAX;
}

int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	static const char *const names[BLOCK_PURPOSES] = { "data", "mapping", "other" };

	if (disk.trace)
		printf("request %s %ju %u\n", names[purpose], lba, count);
	if (count == 0 || lba >= disk.limit || count > disk.limit - lba)
		fail("read of %u sectors at %ju, outside the file system", count, lba);
	if (disk.budget-- == 0)
		fail("too many requests");
	if (disk.touched != NULL && purpose != BLOCK_DATA)
		memset(disk.touched + lba, 1, count);
	device->stats.requests[purpose]++;
	device->stats.sectors[purpose] += count;
	if (disk.bad_sector >= lba && disk.bad_sector - lba < count)
		return -EIO;
	memcpy(buffer, disk.bytes + lba * SECTOR_SIZE, (size_t)count * SECTOR_SIZE);
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

const char *errno_name(int error)
{
	switch (error) {
#define NAME(number)                                                                               \
	case number:                                                                               \
		return #number
		NAME(ENOENT);
		NAME(EIO);
		NAME(ENOMEM);
		NAME(EBUSY);
		NAME(ENOTDIR);
		NAME(EINVAL);
		NAME(ENAMETOOLONG);
		NAME(ELOOP);
		NAME(EOPNOTSUPP);
		NAME(EUCLEAN);
#undef NAME
	default:
		return "unexpected";
	}
}
