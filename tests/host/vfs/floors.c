/* The floors of the program of faults: tests/host/vfs/floors.h. What of the kernel tests/host/ext
 * has (the drive, pages, locks) is used as it is. */
#include "tests/host/vfs/floors.h"

#include <stdlib.h>
#include <string.h>

#include "fs/cache/cached_file.h"
#include "fs/devices.h"
#include "fs/disk/block_files.h"
#include "fs/path_page.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/report/symbols.h"
#include "kernel/task/time.h"
#include "tests/host/ext/shim.h"
#include "tests/host/vfs/tasks.h"

#define DEVICE	   0x1640u /* major << 8 | minor */
#define PAGE	   4096u
#define DAMAGED	   24u /* bytes of a read */
#define MULTIPLIER 6364136223846793005ull

/* ---- a root directory with two entries ---- */

static struct inode root, drive, place;

static int root_lookup(struct inode *directory, const struct name *name, struct inode **found)
{
	struct inode *inode = name_is(name, "disk")  ? &drive
			      : name_is(name, "mnt") ? &place
			      : name_is(name, "..")  ? &root
						     : NULL;

	if (directory != &root && inode != &root)
		return -ENOENT;
	if (!inode)
		return -ENOENT;
	*found = inode_hold(inode);
	return 0;
}

static int root_iterate(struct inode *directory, uint64_t *position, directory_visitor *visit,
			void *context)
{
	const struct directory_entry entry = { name_of("mnt", 3), place.number, place.mode, 1 };

	if (directory == &root && *position == 0 && visit(context, &entry))
		*position = 1;
	return 0;
}

static void root_forget(struct inode *inode)
{
	fail("the last reference of inode %u of the root is gone", inode->number);
}

static const struct inode_ops root_ops = { .lookup = root_lookup,
					   .iterate = root_iterate,
					   .forget = root_forget };

uint32_t floors_references(void)
{
	return root.references + drive.references + place.references - 3;
}

/* ---- the drive ---- */

static uint32_t reads, writes, fails_at, write_fails_at, damage_seed;
static enum write_fault write_fault;
static uint64_t bad_first, bad_end; /* sectors */

/* A write or (no sectors) a flush, in turn. */
static bool write_fails(uint64_t lba, unsigned count)
{
	tasks_yield();
	writes++;
	if (writes == write_fails_at && write_fault == BAD_SECTORS) {
		bad_first = lba;
		bad_end = lba + count;
	}
	return writes == write_fails_at || (write_fault == ALL_LATER && writes > write_fails_at) ||
	       (lba < bad_end && lba + count > bad_first);
}

void floors_promised(void)
{
	if (write_fault == AFTER_PROMISE && writes >= write_fails_at)
		write_fault = ALL_LATER;
}

static int drive_read(uint64_t lba, unsigned count, void *buffer)
{
	uint64_t state = damage_seed;
	uint8_t *bytes = buffer;

	tasks_yield();
	reads++;
	if (reads == fails_at && damage_seed == 0)
		return -EIO;
	memcpy(buffer, disk.bytes + lba * SECTOR_SIZE, (size_t)count * SECTOR_SIZE);
	for (unsigned i = 0; reads == fails_at && i < DAMAGED; i++) {
		state = state * MULTIPLIER + 1;
		bytes[(state >> 33) % (count * SECTOR_SIZE)] = (uint8_t)(state >> 56);
	}
	return 0;
}

static int drive_write(uint64_t lba, unsigned count, const void *buffer)
{
	if (write_fails(lba, count))
		return -EIO;
	memcpy(disk.bytes + lba * SECTOR_SIZE, buffer, (size_t)count * SECTOR_SIZE);
	return 0;
}

static int drive_flush(void)
{
	return write_fails(0, 0) ? -EIO : 0;
}

void floors_fault(uint32_t read, uint32_t damage)
{
	fails_at = read;
	damage_seed = damage;
}

void floors_write_fault(uint32_t write, enum write_fault fault)
{
	write_fails_at = write;
	write_fault = fault;
}

uint32_t floors_reads(void)
{
	return reads;
}

uint32_t floors_writes(void)
{
	return writes;
}

struct block_device *block_of_number(uint32_t number)
{
	return number == DEVICE ? &disk.device : NULL;
}

int block_file_claim(struct block_device *device, bool is_claimed)
{
	return 0;
}

/* ---- files without a cache ---- */

void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops)
{
	*file = (struct cached_file){ .ops = ops };
}

int cached_file_read(struct cached_file *file, struct buffer *to, uint64_t offset)
{
	uint8_t *page = malloc(PAGE);
	int error = file->ops->read(file, offset & -(uint64_t)PAGE, page, PAGE);

	free(page);
	return error ? error : (int)to->length;
}

int cached_file_write(struct cached_file *file, struct buffer *from, uint64_t offset)
{
	uint8_t *bytes = memset(malloc(from->length), 'w', from->length);
	int error = file->ops->will_write(file, offset, from->length);
	int moved = error ? error : file->ops->write_direct(file, offset, bytes, from->length);

	free(bytes);
	if (moved > 0 && offset + moved > file->ops->size(file))
		file->ops->grow(file, offset + moved);
	return moved;
}

int cached_file_direct(struct cached_file *file, struct buffer *buffer, uint64_t offset, bool write)
{
	return write ? cached_file_write(file, buffer, offset)
		     : cached_file_read(file, buffer, offset);
}

int cached_file_open(struct file *file)
{
	return 0;
}

/* Errors are told as fs/cache/cached_file.c does it. */
int cached_file_sync_of(struct cached_file *file, struct file *open, bool data_only)
{
	uint32_t seen = (uint32_t)(uintptr_t)open->private;
	int error = file->ops->commit(file, data_only), told = errors_tell(&file->errors, &seen);

	open->private = (void *)(uintptr_t)seen;
	return told ? told : error;
}

int cached_file_sync(struct file *file, bool data_only)
{
	return cached_file_sync_of((struct cached_file *)file->ops->memory(file), file, data_only);
}

int cached_file_advise(struct file *file, uint64_t offset, uint64_t length, uint32_t advice)
{
	return 0;
}

int cached_file_write_back(struct cached_file *file, uint32_t first, uint32_t end)
{
	return 0;
}

void cached_file_cut(struct cached_file *file, uint64_t size)
{
}

void cached_file_drop(struct cached_file *file, uint32_t first, uint32_t end, bool all)
{
}

void cached_file_zero_tail(struct cached_file *file, uint64_t size)
{
}

void cached_files_write_back(bool is_due)
{
}

void cached_file_replace(struct cached_file *file, uint64_t from, uint64_t end, const void *data)
{
}

void cached_file_reserve(struct cached_file *file, uint64_t *reserved, uint32_t page_blocks)
{
}

void cached_files_start(void)
{
}

/* ---- the rest of the kernel ---- */

void locks_drop(struct inode *inode, const struct file *file)
{
}

void files_set(struct file **place, struct file *file)
{
	*place = file;
}

char *path_page(void)
{
	return malloc(PAGE);
}

void path_page_free(char *page)
{
	free(page);
}

uint64_t time_ns(void)
{
	return clock_count();
}

uint64_t time_wall_ns(void)
{
	return clock_count();
}

void msleep(uint32_t milliseconds)
{
	tasks_yield();
}

size_t page_free_count(void)
{
	return 1u << 16;
}

const struct device *device_next(const struct device *before)
{
	return NULL;
}

extern startup_function *const __start_startups[], *const __stop_startups[];

void floors_begin(void)
{
	static const struct disk_elsewhere elsewhere = { drive_read, drive_write, drive_flush };
	const struct inode common = {
		.ops = &root_ops, .filesystem = filesystem_number(), .references = 1, .links = 2
	};

	root = drive = place = common;
	root.number = 1;
	drive.number = 2;
	place.number = 3;
	root.mode = place.mode = S_IFDIR | 0755;
	drive.mode = S_IFBLK | 0600;
	drive.device = DEVICE;
	disk.device.number = DEVICE;
	disk.elsewhere = &elsewhere;
	disk.yield = tasks_yield;
	path_set_root(&root);
	for (startup_function *const *each = __start_startups; each < __stop_startups; each++)
		(*each)();
}
