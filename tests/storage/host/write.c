/*
 * The file system that writes, asked from outside (tests/storage/writing.py): changes files of an
 * image, which is outside, too (asked_disk.h).
 *
 *	disk			gets the sectors of the device, and how many buffers the cache has
 *	mounted			gets the first change: what (below), inode, two numbers, a seed of
 *				the contents; an empty line: that was all
 *	done RESULT SIZE SECTORS
 *				what a change returned, and the inode's size and sectors; gets the
 *				next change
 *	end ERROR LOST		of the unmount, and how many buffers of the cache nobody gave back;
 *				gets an empty line
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "fs/ext/ext.h"
#include "tests/host/ext/shim.h"
#include "tests/host/question.h"
#include "tests/storage/host/asked.h"
#include "tests/storage/host/asked_disk.h"

#define PIECE 512u	 /* bytes of a buffer, and of no block of a file system */
#define MOST  (4u << 20) /* bytes of one write */

/* REMOVE: the only name of the inode, which is still used: then it is cut. */
enum what { WRITE, TRUNCATE, ALLOCATE, ALLOCATE_KEEP, PUNCH, COMMIT, REMOVE };

struct change {
	uint32_t what, inode;
	uint64_t first, second;
	uint32_t seed;
};

static struct ext_fs *fs;
static uint32_t buffers;

static void open_disk(void)
{
	char *rest;

	disk.mode = DISK_PRIVATE;
	disk.device.name = "hdb";
	disk.device.sectors = disk.limit = strtoull(ask("disk"), &rest, 10);
	buffers = (uint32_t)strtoul(rest, NULL, 10);
	disk.bad_sector = NO_SECTOR;
	disk.budget = UINT64_MAX; /* the disk has its own */
	disk_is_outside();
}

/* The byte at each place of what a seed writes. tests/storage/writing.py knows it, too. */
static uint8_t content(uint64_t place, uint32_t seed)
{
	return (uint8_t)(place + place / 256 * 7 + seed);
}

static int write_contents(struct ext_inode *inode, const struct change *change)
{
	uint8_t *data = malloc(change->second);
	int result;

	if (change->second > MOST)
		fail("a write of %ju bytes", change->second);
	for (uint64_t i = 0; i < change->second; i++)
		data[i] = content(change->first + i, change->seed);
	result = ext_write(inode, change->first, data, (uint32_t)change->second);
	free(data);
	return result;
}

/* The files a, b, ... of the root are inode 12 and those after it. */
static int remove_and_cut(struct ext_inode *inode, uint64_t size)
{
	const char letter = (char)('a' + inode->number - 12);
	const struct ext_name name = { &letter, 1 };
	struct ext_inode root;
	int error = ext_inode_read(fs, 2, &root);

	if (!error)
		error = ext_remove(&root, &name, inode);
	return error ? error : ext_truncate(inode, size);
}

static int make(struct ext_inode *inode, const struct change *change)
{
	switch ((enum what)change->what) {
	case WRITE:
		return write_contents(inode, change);
	case TRUNCATE:
		return ext_truncate(inode, change->first);
	case ALLOCATE:
	case ALLOCATE_KEEP:
		return ext_allocate(inode, change->first, change->second,
				    change->what == ALLOCATE_KEEP);
	case PUNCH:
		return ext_punch(inode, change->first, change->second);
	case COMMIT:
		return ext_commit(fs);
	case REMOVE:
		return remove_and_cut(inode, change->first);
	default:
		return -1;
	}
}

/* Returns the next change. */
static const char *obey(const char *line)
{
	struct ext_inode inode;
	struct change change;

	if (sscanf(line, "%u %u %" SCNu64 " %" SCNu64 " %u", &change.what, &change.inode,
		   &change.first, &change.second, &change.seed) != 5)
		fail("not a change: %s", line);
	int result = ext_inode_read(fs, change.inode, &inode);

	if (result == 0)
		result = make(&inode, &change);
	return ask("done %d %" PRIu64 " %" PRIu64, result, inode.size, inode.blocks);
}

/* All buffers can be had at once only if nobody forgot to give one back. Asked for in a size that
 * the file system does not have: what was forgotten is not found again. What is in them does not
 * matter: the disk is an empty one here. */
static uint32_t lost_buffers(void)
{
	struct cached_block *buffer;
	uint32_t block = 0;

	bcache_drop();
	disk.elsewhere = NULL;
	disk.bytes = calloc(buffers, PIECE);
	while (block < buffers && bcache_get(&disk.device, block, PIECE, BLOCK_OTHER, &buffer) == 0)
		block++;
	return buffers - block;
}

int main(void)
{
	const struct ext_options options = { .now = clock_count };
	int error;

	open_disk();
	if (bcache_init(buffers) != buffers)
		fail("no memory for the cache");
	error = ext_mount(&disk.device, &options, &fs);
	if (error)
		fail("mount: error %d", error);
	const char *line = ask("mounted");

	while (*line != '\n') {
		question_begins();
		line = obey(line);
	}
	error = ext_unmount(fs);
	ask("end %d %u", error, lost_buffers());
	return 0;
}
