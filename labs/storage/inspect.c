/*
 * Commands that look: at memory, drives, file systems, and where the blocks of a file are.
 *
 *	read hdb 0 1		the first sector, as a hex dump, with a CRC-32
 *	mount hdc		what the superblock says
 *	ls hdc /; cat hdc /a	directories and files
 *	map hdc /big 0 12	which disk blocks hold blocks 0 and 12 of the file
 *	cache drop		forget what was read, so that the next measurement is cold
 *
 * Tests compare every line with what e2fsprogs says about the same image. Each command explains its
 * own failure, and returns an exit status.
 */
#include "drivers/console/keyboard.h"
#include "drivers/disk/partition.h"
#include "fs/cache/bcache.h"
#include "fs/ext/ext.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define DRIVES	      4
#define KEY_INTERRUPT 3 /* ^C */

static struct {
	struct block_device *device;
	struct ext_fs *fs;
} mounts[DRIVES];

static struct block_device *find_drive(const char *name)
{
	struct block_device *device = block_find(name);

	if (!device)
		printk("%s: no such drive; `drives` lists them\n", name);
	return device;
}

/* Mounts are kept for good: a drive has one mount, at a free place or its own. */
static struct ext_fs *file_system_of(const char *name)
{
	const struct ext_options options = { .read_only = true, .must_be_clean = true };
	struct block_device *device = find_drive(name);
	unsigned i = 0;

	if (!device)
		return NULL;
	while (i < DRIVES && mounts[i].device && mounts[i].device != device)
		i++;
	if (i == DRIVES)
		return NULL;
	if (!mounts[i].device && ext_mount(device, &options, &mounts[i].fs) == 0)
		mounts[i].device = device;
	return mounts[i].device ? mounts[i].fs : NULL;
}

/* Says what failed, by the name of the error; the command's status. */
static int say_error(const char *what, int error)
{
	printk("%s: %s\n", what, errno_name(-error));
	return EXIT_FAILURE;
}

static int look_up_on(const char *drive, const char *path, struct ext_inode *inode)
{
	struct ext_fs *fs = file_system_of(drive);

	if (!fs)
		return -ENODEV;
	int error = ext_lookup(fs, path, inode);

	if (error < 0)
		say_error(path, error);
	return error;
}

static bool parse_number(const char *text, uint64_t *value)
{
	bool good = number_parse(text, value);

	if (!good)
		printk("%s is not a number\n", text);
	return good;
}

/* The figures count since boot, the cache's misses included, its hits not. */
static int run_drives(int count, char **arguments)
{
	printk("drive      sectors  requests   sectors read  errors\n");
	for (struct block_device *device = block_first(); device; device = device->next) {
		struct block_count reads = block_reads(device);

		printk("%-5s %12llu %9llu %14llu %7llu\n", device->name, device->sectors,
		       reads.requests, reads.sectors, device->stats.errors);
	}
	return EXIT_SUCCESS;
}

/* Sixteen bytes a line, as xxd shows them; length is a multiple of sixteen. */
static void dump(const uint8_t *bytes, unsigned length)
{
	for (unsigned i = 0; i < length; i += 16) {
		printk("%04x ", i);
		for (unsigned j = 0; j < 16; j++)
			printk(" %02x", bytes[i + j]);
		printk("  ");
		for (unsigned j = 0; j < 16; j++)
			printk("%c",
			       bytes[i + j] >= ' ' && bytes[i + j] < 0x7f ? bytes[i + j] : '.');
		printk("\n");
	}
}

/* Raw sectors, past any file system. 1024 are 512 KiB, which is a block of order 7. */
static int run_read(int count, char **arguments)
{
	struct block_device *device = find_drive(arguments[1]);
	uint64_t lba, sectors = 1;
	uint8_t *buffer;
	int error;

	if (!device || !parse_number(arguments[2], &lba) ||
	    (count > 3 && !parse_number(arguments[3], &sectors)))
		return EXIT_FAILURE;
	if (sectors < 1 || sectors > 1024) {
		printk("read: SECTORS must be 1 to 1024, not %llu\n", sectors);
		return EXIT_FAILURE;
	}
	buffer = page_alloc(7);
	if (!buffer)
		return say_error("read", -ENOMEM);
	error = block_read(device, lba, sectors, buffer, BLOCK_DATA);
	if (error == 0) {
		dump(buffer, 64);
		printk("%llu sectors, crc32 0x%08x\n", sectors,
		       crc32(0, buffer, sectors * SECTOR_SIZE));
	}
	page_free(buffer, 7);
	return error < 0 ? say_error("read", error) : EXIT_SUCCESS;
}

/* Mounting for the first time checks the superblock, and prints what is wrong with it. */
static int run_mount(int count, char **arguments)
{
	struct ext_fs *fs = file_system_of(arguments[1]);

	if (!fs)
		return EXIT_FAILURE;
	const struct ext_summary *summary = ext_summary(fs);

	printk("%s: %s, %llu blocks of %u bytes, %u inodes, %u groups, descriptors of %u bytes\n",
	       arguments[1], summary->type, summary->blocks, summary->block_size, summary->inodes,
	       summary->groups, summary->descriptor_size);
	return EXIT_SUCCESS;
}

struct listing {
	struct ext_fs *fs;
	bool complete; /* each inode so far could be read */
};

/* For ext_list. An inode that cannot be read is named, and the list goes on: its neighbours may be
 * all that somebody with a damaged disk wants to see. */
static int print_entry(void *context, const char *name, uint32_t number, uint8_t type)
{
	struct listing *listing = context;
	struct ext_inode inode;

	int error = ext_inode_read(listing->fs, number, &inode);

	if (error < 0) {
		printk("%8u %s: %s\n", number, name, errno_name(-error));
		listing->complete = false;
		return 0;
	}
	printk("%8u %06o %3u %12llu %s\n", number, inode.mode, inode.links, inode.size, name);
	return 0;
}

/* A path that is not a directory is an error of ext_list. */
static int run_ls(int count, char **arguments)
{
	struct ext_inode inode;

	if (look_up_on(arguments[1], count > 2 ? arguments[2] : "/", &inode) < 0)
		return EXIT_FAILURE;
	struct listing listing = { .fs = inode.fs, .complete = true };
	int error = ext_list(&inode, print_entry, &listing);

	if (error < 0)
		return say_error(arguments[0], error);
	return listing.complete ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Was ^C typed? Other keys that were typed during the command are lost. */
static bool is_interrupted(void)
{
	int key;

	while ((key = keyboard_or_serial_get()) >= 0)
		if (key == KEY_INTERRUPT)
			return true;
	return false;
}

/* Reads a whole file piece by piece and gives each to visit. Returns 0 or a negative errno: -EINTR
 * after ^C, because a file with holes may be larger than any disk. */
static int for_each_piece(const struct ext_inode *inode, void *buffer, uint32_t size,
			  void (*visit)(void *context, const uint8_t *bytes, uint32_t length),
			  void *context)
{
	uint64_t offset = 0;
	int length;

	while ((length = ext_read(inode, offset, buffer, size)) > 0) {
		visit(context, buffer, length);
		offset += length;
		if (is_interrupted()) {
			printk("^C after %llu bytes\n", offset);
			return -EINTR;
		}
	}
	return length;
}

/* What `cat` and `sum` share: visit gets the file in pieces of 64 KiB. */
static int read_pieces(char **arguments, struct ext_inode *inode,
		       void (*visit)(void *context, const uint8_t *bytes, uint32_t length),
		       void *context)
{
	void *buffer;
	int error;

	if (look_up_on(arguments[1], arguments[2], inode) < 0)
		return EXIT_FAILURE;
	buffer = page_alloc(4);
	if (!buffer)
		return say_error(arguments[0], -ENOMEM);
	error = for_each_piece(inode, buffer, PAGE_SIZE << 4, visit, context);
	page_free(buffer, 4);
	return error < 0 ? say_error(arguments[2], error) : EXIT_SUCCESS;
}

static void show_piece(void *context, const uint8_t *bytes, uint32_t length)
{
	while (length--)
		printk("%c", *bytes++);
}

/* As it is: a file of bytes that are not text may confuse the terminal. */
static int run_cat(int count, char **arguments)
{
	struct ext_inode inode;

	return read_pieces(arguments, &inode, show_piece, NULL);
}

static void sum_piece(void *context, const uint8_t *bytes, uint32_t length)
{
	uint32_t *crc = context;

	*crc = crc32(*crc, bytes, length);
}

/* Compares a whole file with the host's copy in one number. */
static int run_sum(int count, char **arguments)
{
	struct ext_inode inode;
	uint32_t crc = 0;

	int status = read_pieces(arguments, &inode, sum_piece, &crc);

	if (status == EXIT_SUCCESS)
		printk("crc32 0x%08x, %llu bytes, %s\n", crc, inode.size, arguments[2]);
	return status;
}

/* Physical block 0 is a hole: the superblock is there, which belongs to no file. */
static int run_map(int count, char **arguments)
{
	struct ext_inode inode;
	struct ext_mapping mapping;
	uint64_t logical;

	if (look_up_on(arguments[1], arguments[2], &inode) < 0)
		return EXIT_FAILURE;
	for (int i = 3; i < count; i++) {
		if (!parse_number(arguments[i], &logical))
			return EXIT_FAILURE;
		int error = ext_map(&inode, logical, &mapping);

		if (error < 0)
			return say_error("map", error);
		printk("map %llu -> %llu%s\n", logical, mapping.physical,
		       mapping.unwritten ? " unwritten" : "");
	}
	return EXIT_SUCCESS;
}

/* Hits and misses by purpose; `drop` also says how many blocks were there. */
static int run_cache(int count, char **arguments)
{
	const struct bcache_stats *stats = bcache_statistics();

	if (count > 1 && strcmp(arguments[1], "drop") == 0)
		printk("cache: %u blocks dropped\n", bcache_drop());
	printk("cache: mapping %llu hits %llu misses, other %llu hits %llu misses\n",
	       stats->hits[BLOCK_MAPPING], stats->misses[BLOCK_MAPPING], stats->hits[BLOCK_OTHER],
	       stats->misses[BLOCK_OTHER]);
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "drives", "", "the drives and what was read from them", 0, run_drives },
	{ "read", "DRIVE LBA [SECTORS]", "read sectors; show the first bytes", 2, run_read },
	{ "mount", "DRIVE", "what file system is on a drive", 1, run_mount },
	{ "ls", "DRIVE [PATH]", "inode, mode, links, size and name", 1, run_ls },
	{ "cat", "DRIVE PATH", "show a file", 2, run_cat },
	{ "sum", "DRIVE PATH", "the CRC-32 of a file", 2, run_sum },
	{ "map", "DRIVE PATH BLOCK...", "where a file's blocks are", 3, run_map },
	{ "cache", "[drop]", "the block cache: hits and misses", 0, run_cache },
};
