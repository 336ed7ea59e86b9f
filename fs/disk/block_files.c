/*
 * Block devices as files: a drive, or a partition, is a file of fixed size.
 *
 *	read, write, mmap	pages of a cached file (fs/cache/cached_file.h), one for each device
 *	O_DIRECT		past them, in whole sectors
 *	a miss, a write-back	the drive, and the block cache (fs/cache/bcache.h)
 *
 * A file system has its metadata in the block cache, where it may be newer than on the disk. So
 * what is read from the drive gets the newer blocks on top, and what is written to the drive is
 * written to cached blocks, too. The pages here could still be older than both: as long as a file
 * system has the device, each read begins with a cache without these pages, and each write is
 * written back at once. A partition and its drive have caches of their own: use one at a time.
 *
 * Writers have the file's lock: a write past the cache drops pages, and must not drop one into
 * which another task's bytes are being copied.
 * A drive whose partition table was written gets new partitions (BLKRRPART), unless one is in use.
 * One that is gone has no sectors, and cannot be opened: ENXIO; one beyond 16 TiB, neither: EFBIG.
 */
#include "fs/disk/block_files.h"

#include "drivers/disk/partition.h"
#include "fs/cache/bcache.h"
#include "fs/cache/cached_file.h"
#include "fs/devices.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/block.h"
#include "kernel/report/printk.h"
#include "mm/kmalloc.h"

struct block_file {
	struct cached_file cached; /* first: the two have one address */
	struct mutex lock;	   /* of writers */
	struct block_device *block;
	struct device device;
	bool is_claimed;	   /* by a file system */
	const struct file *holder; /* opened with O_EXCL; NULL: none */
	uint32_t opens;		   /* files that are open */
	struct block_file *next;
};

static struct block_file *files;

static struct block_file *file_of_number(uint32_t number)
{
	struct block_file *each = files;

	while (each && each->device.number != number)
		each = each->next;
	return each;
}

/* By the inode, so a node that mknod(2) has made leads to the same device. */
static struct block_file *block_of_open(const struct file *file)
{
	return file_of_number(file->inode->device);
}

static uint64_t bytes_of(const struct cached_file *cached)
{
	return ((const struct block_file *)cached)->block->sectors * SECTOR_SIZE;
}

/* ---- the disk, for the pages ---- */

/* The last page may be more than the device has. */
static int block_pages_read(struct cached_file *cached, uint64_t offset, void *to, uint32_t length)
{
	struct block_device *block = ((struct block_file *)cached)->block;
	uint64_t left = bytes_of(cached) - offset;
	uint32_t there = length < left ? length : (uint32_t)left;
	int error = block_read(block, offset / SECTOR_SIZE, there / SECTOR_SIZE, to, BLOCK_DATA);

	if (error)
		return error;
	memset((uint8_t *)to + there, 0, length - there);
	bcache_overlay(block, offset / SECTOR_SIZE, there / SECTOR_SIZE, to, false);
	return 0;
}

static int block_pages_write(struct cached_file *cached, uint64_t offset, const void *from,
			     uint32_t length)
{
	struct block_device *block = ((struct block_file *)cached)->block;
	uint64_t lba = offset / SECTOR_SIZE;
	int error = block_write(block, lba, length / SECTOR_SIZE, from, BLOCK_DATA);

	if (!error)
		bcache_overlay(block, lba, length / SECTOR_SIZE, (void *)from, true);
	return error;
}

/* A flush that fails may have lost what others wrote: they are told, too. */
static int block_pages_commit(struct cached_file *cached, bool data_only)
{
	int error = block_flush(((struct block_file *)cached)->block);

	if (error)
		errors_note(&cached->errors, error);
	return error;
}

/* A device never goes, so its pages need no reference to it. */
static void keep(struct cached_file *cached)
{
}

/* Without `grow` and `will_write`: a device has one size, and all of its blocks. */
static const struct cached_file_ops disk_ops = { .read = block_pages_read,
						 .write = block_pages_write,
						 .size = bytes_of,
						 .commit = block_pages_commit,
						 .hold = keep,
						 .release = keep };

/* ---- what programs do with it ---- */

/* As in Linux a mounted device has one holder, and so has one that was opened with O_EXCL: then
 * nobody else may mount it or open it so. A holder of a partition holds its drive, too. */
static bool is_held(const struct block_file *wanted)
{
	for (const struct block_file *each = files; each; each = each->next)
		if ((each->is_claimed || each->holder) &&
		    (each == wanted || each->block->whole == wanted->block ||
		     wanted->block->whole == each->block))
			return true;
	return false;
}

/* A drive of which pages cannot number all: its partitions can be used if they are smaller. */
static bool is_too_large(const struct block_file *block)
{
	if (bytes_of(&block->cached) <= CACHED_FILE_MOST)
		return false;
	printk("%s: it has more than 16 TiB, which is too large\n", block->block->name);
	return true;
}

/* Without O_CREAT, O_EXCL asks to be the device's only holder (open(2), "O_EXCL"). */
static int open_block(struct file *file)
{
	struct block_file *block = block_of_open(file);

	if (block->block->sectors == 0)
		return -ENXIO;
	if (is_too_large(block))
		return -EFBIG;
	if (file->flags & O_EXCL) {
		if (is_held(block))
			return -EBUSY;
		block->holder = file;
	}
	block->opens++;
	return cached_file_open(file);
}

static void release_block(struct file *file)
{
	struct block_file *block = block_of_open(file);

	block->opens--;
	if (block->holder == file)
		block->holder = NULL;
}

static uint64_t block_size(const struct file *file)
{
	return bytes_of(&block_of_open(file)->cached);
}

static int read_block_file(struct file *file, struct buffer *to, uint64_t offset)
{
	struct block_file *block = block_of_open(file);

	if (file->flags & O_DIRECT)
		return cached_file_direct(&block->cached, to, offset, false);
	if (block->is_claimed)
		cached_file_drop(&block->cached, offset >> PAGE_SHIFT,
				 (offset + to->length + PAGE_SIZE - 1) >> PAGE_SHIFT, false);
	return cached_file_read(&block->cached, to, offset);
}

/* Writes the range to the disk, and (`safely`: O_DSYNC) makes it safe from a power cut. */
static int write_range_back(struct block_file *block, uint64_t offset, uint32_t length, bool safely)
{
	int error = cached_file_write_back(&block->cached, offset >> PAGE_SHIFT,
					   ((offset + length - 1) >> PAGE_SHIFT) + 1);

	return error || !safely ? error : block_pages_commit(&block->cached, true);
}

/* A device does not grow: beyond its end there is no space. While a file system has it, nothing may
 * stay in these pages only. */
static int write_block_file(struct file *file, struct buffer *from, uint64_t offset)
{
	struct block_file *block = block_of_open(file);
	uint64_t size = bytes_of(&block->cached);
	bool safely = file->flags & O_DSYNC;
	int error = 0;

	if (from->length == 0)
		return 0;
	if (offset >= size)
		return -ENOSPC;
	if (from->length > size - offset)
		from->length = size - offset;
	mutex_lock(&block->lock);
	int moved = file->flags & O_DIRECT ? cached_file_direct(&block->cached, from, offset, true)
					   : cached_file_write(&block->cached, from, offset);

	mutex_unlock(&block->lock);
	if (moved > 0 && (safely || block->is_claimed))
		error = write_range_back(block, offset, moved, safely);
	return error ? error : moved;
}

/* mmap of a device: its pages. They do not show what a file system changes meanwhile. */
static struct memory_object *block_memory(struct file *file)
{
	return &block_of_open(file)->cached.cache.object;
}

/* ---- ranges ---- */

/* A range, or its beginning: *length becomes that of what was changed. */
typedef int change_range(struct block_file *block, uint64_t offset, uint64_t *length);

/* Blocks that a file system has in memory stay, as in Linux; what others have left there goes. */
static int discard_range(struct block_file *block, uint64_t offset, uint64_t *length)
{
	if (!block->is_claimed)
		bcache_drop();
	return block_discard(block->block, offset / SECTOR_SIZE, *length / SECTOR_SIZE);
}

/* A piece at a time, from a run of zeros: the caller asks again for the rest. */
static int zero_range(struct block_file *block, uint64_t offset, uint64_t *length)
{
	uint32_t run_length = CACHED_RUN;
	void *run = run_alloc(&run_length);

	if (!run)
		return -ENOMEM;
	memset(run, 0, run_length);
	if (*length > run_length)
		*length = run_length;
	int error = block_pages_write(&block->cached, offset, run, (uint32_t)*length);

	run_free(run, run_length);
	return error;
}

/* Its pages are not kept, and not written after it: of one at its edge only the range becomes
 * zeros. Write-back waits for a part of it, not for all. */
static int change_part(struct block_file *block, change_range *change, uint64_t offset,
		       uint64_t *length)
{
	struct cached_file *cached = &block->cached;

	mutex_lock(&cached->write_back);
	int error = change(block, offset, length);

	if (!error)
		cached_file_replace(cached, offset, offset + *length, NULL);
	else
		cached_file_invalidate(cached, 0, UINT32_MAX);
	mutex_unlock(&cached->write_back);
	return error;
}

/* Changes a range on the disk; `argument` points to its offset and its length, 64 bits each. */
static int change_given(const struct file *file, uint32_t argument, change_range *change)
{
	struct block_file *block = block_of_open(file);
	uint64_t range[2], size = bytes_of(&block->cached), done, length;
	int error = 0;

	if (!file_writable(file))
		return -EBADF;
	if (change == discard_range && !block_can_discard(block->block))
		return -EOPNOTSUPP;
	if (copy_from_user(range, argument, sizeof(range)) != 0)
		return -EFAULT;
	if ((range[0] | range[1]) % SECTOR_SIZE || range[1] == 0 || range[0] > size ||
	    range[1] > size - range[0])
		return -EINVAL;
	mutex_lock(&block->lock);
	for (done = 0; done < range[1] && !error; done += length) {
		length = range[1] - done;
		error = change_part(block, change, range[0] + done, &length);
	}
	mutex_unlock(&block->lock);
	return error;
}

/* ---- ioctl ---- */

/* Writes everything, and keeps nothing: the next read asks the drive. BLKFLSBUF. */
static int forget_pages(struct block_file *block)
{
	int error = cached_file_write_back(&block->cached, 0, UINT32_MAX);

	cached_file_drop(&block->cached, 0, UINT32_MAX, false);
	return error;
}

/* HDIO_GETGEO. Invented, as for all drives without tracks, because fdisk asks for it. */
static int give_geometry(const struct block_device *block, uint32_t address)
{
	uint64_t cylinders = block->sectors >> 14; /* of 255 heads with 63 sectors: nearly 2^14 */
	struct linux_geometry geometry = { .heads = 255,
					   .sectors = 63,
					   .cylinders = cylinders < 65535 ? cylinders : 65535,
					   .start = block->start };

	return give(address, &geometry, sizeof(geometry));
}

/* BLKGETSIZE, in sectors of 512 bytes and a number of 32 bits: -EFBIG from 2 TiB on. */
static int give_size(const struct block_device *block, uint32_t address)
{
	uint32_t sectors = block->sectors;

	return block->sectors >> 32 ? -EFBIG : give(address, &sectors, sizeof(sectors));
}

/* The largest of 4096, 2048, ... that the size is a multiple of: what Linux's block size is. */
static uint32_t unit_of(uint64_t bytes)
{
	uint32_t unit = PAGE_SIZE;

	while (bytes & (unit - 1))
		unit /= 2;
	return unit;
}

/* Is the partition not to be changed? Pages that are still there are shown by an area: a program's
 * mapping outlives its descriptor. */
static bool is_busy(const struct block_file *partition)
{
	return partition->opens || partition->is_claimed || partition->cached.cache.pages;
}

/* In /dev there are the partitions that the drive has, and no others. */
static void show_partition_files(const struct block_device *drive)
{
	char path[32];

	for (const struct block_file *each = files; each; each = each->next)
		if (each->block->whole == drive && each->block->sectors == 0) {
			snprintk(path, sizeof(path), "/dev/%s", each->block->name);
			vfs_remove(path_root(), path, false);
		}
	for (struct block_device *each = block_first(); each; each = each->next)
		if (each->whole == drive)
			block_file_show(each);
}

/* Nothing sleeps between the last check and the end of the old partitions. One task at a time. */
static int reread_partitions(struct block_file *drive)
{
	static struct mutex rereading;
	int error =
	    drive->block->whole || drive->block->is_snapshot ? -EINVAL : forget_pages(drive);

	for (struct block_file *each = files; each && !error; each = each->next)
		if (each->block->whole == drive->block)
			error = forget_pages(each);
	mutex_lock(&rereading);
	for (struct block_file *each = files; each && !error; each = each->next)
		if (each->block->whole == drive->block && is_busy(each))
			error = -EBUSY;
	if (!error) {
		partitions_reread(drive->block);
		show_partition_files(drive->block);
	}
	mutex_unlock(&rereading);
	return error;
}

/* What fdisk, blockdev, mkfs and blkdiscard ask (linux/fs.h). Values without a meaning for these
 * drives are 0, as for Linux's own. -ENOTTY for commands of other devices, and for those that would
 * change a drive in a way that is not here. */
static int control_block(struct file *file, uint32_t command, uint32_t argument)
{
	struct block_file *block = block_of_open(file);
	uint64_t bytes = bytes_of(&block->cached);
	uint32_t value = SECTOR_SIZE;

	switch (command) {
	case BLKGETSIZE64:
		return give(argument, &bytes, sizeof(bytes));
	case BLKGETSIZE:
		return give_size(block->block, argument);
	case HDIO_GETGEO:
		return give_geometry(block->block, argument);
	case BLKFLSBUF:
		return forget_pages(block);
	case BLKRRPART:
		return reread_partitions(block);
	case BLKDISCARD:
		return change_given(file, argument, discard_range);
	case BLKZEROOUT:
		return change_given(file, argument, zero_range);
	case BLKSECDISCARD:
		return -EOPNOTSUPP;
	case BLKSSZGET:
	case BLKPBSZGET:
	case BLKIOMIN:
		break;
	case BLKBSZGET:
		value = unit_of(bytes);
		break;
	case BLKRAGET:
		value = CACHED_RUN / SECTOR_SIZE;
		break;
	case BLKROGET:
	case BLKIOOPT:
	case BLKALIGNOFF:
	case BLKDISCARDZEROES:
		value = 0;
		break;
	default:
		return -ENOTTY;
	}
	return give(argument, &value, sizeof(value));
}

/* For mounts and snapshots. What is dirty in the pages is written first, because from now on each
 * read asks the block cache. */
int block_file_claim(struct block_device *device, bool is_claimed)
{
	struct block_file *block = file_of_number(device->number);

	if (!block)
		return 0;
	if (is_claimed && is_too_large(block))
		return -EFBIG;
	if (is_claimed && is_held(block))
		return -EBUSY;
	block->is_claimed = is_claimed; /* already: writing sleeps */
	int error = forget_pages(block);

	block->is_claimed &= !error;
	return error;
}

static const struct file_ops block_ops = { .open = open_block,
					   .read = read_block_file,
					   .write = write_block_file,
					   .control = control_block,
					   .size = block_size,
					   .memory = block_memory,
					   .sync = cached_file_sync,
					   .advise = cached_file_advise,
					   .release = release_block };

/* Without memory the device has no file: it is there for file systems all the same. */
static void make_block_file(struct block_device *device)
{
	struct block_file *made = NULL;

	if (!file_of_number(device->number))
		made = kmalloc(sizeof(*made));
	if (!made)
		return;
	*made = (struct block_file){
		.block = device,
		.device = { device->name, device->number, S_IFBLK | 0660, &block_ops, NULL },
		.next = files,
	};
	cached_file_initialize(&made->cached, &disk_ops);
	files = made;
	device_register(&made->device);
}

/* For devices that come later: snapshots, and partitions of a new table. */
void block_file_show(struct block_device *device)
{
	char path[32];

	make_block_file(device);
	snprintk(path, sizeof(path), "/dev/%s", device->name);
	vfs_make(path_root(), path, S_IFBLK | 0660, device->number);
}

/* For sync: all files on disks, those of file systems too. */
void vfs_sync_first(void)
{
	cached_files_write_back(false);
}

void block_files_initialize(void)
{
	for (struct block_device *device = block_first(); device; device = device->next)
		make_block_file(device);
}
