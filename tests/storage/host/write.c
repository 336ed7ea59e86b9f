/*
 * The file system that writes, on the host: changes files of an image, and says what it did. The
 * image and the changes come on standard input, until it ends. All numbers are little-endian.
 *   image: bytes of it, how many pieces follow (64 and 32 bits); each has its number (32 bits) and
 *     1024 bytes. All other pieces are zeros.
 *   change: what (32 bits, below), inode, two numbers of 64 bits, a seed of the contents (32 bits)
 * On standard output: a line for each change, a result or an error; then "lost N", buffers of the
 * cache that nobody gave back, "pieces N", and the pieces that are not what they were. What the
 * console says has "console " in front.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fs/cache/bcache.h"
#include "fs/ext/ext.h"
#include "tests/host/ext/shim.h"
#include "tests/host/question.h"

#define PIECE	 1024u
#define BUFFERS	 1024u
#define MOST	 (4u << 20) /* bytes of one write */
#define REQUESTS 2000000u   /* of all changes together: more is a loop */

/* FAIL: of the requests after so many more (first) so many (second) fail. REMOVE: the only name of
 * the inode, which is still used: then it is cut. */
enum what { WRITE, TRUNCATE, ALLOCATE, ALLOCATE_KEEP, PUNCH, COMMIT, FAIL, REMOVE };

struct change {
	uint32_t what, inode;
	uint64_t first, second;
	uint32_t seed;
} __attribute__((packed));

static uint8_t *before;
static struct ext_fs *fs;

static void get(void *data, size_t size)
{
	if (fread(data, size, 1, stdin) != 1)
		fail("the image is not whole");
}

static uint8_t *memory(uint64_t size)
{
	void *place = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (place == MAP_FAILED)
		fail("no memory for the image");
	return place;
}

static void get_image(void)
{
	uint64_t size;
	uint32_t count, number;

	get(&size, sizeof(size));
	get(&count, sizeof(count));
	disk.bytes = memory(size);
	before = memory(size);
	for (; count > 0; count--) {
		get(&number, sizeof(number));
		get(disk.bytes + (size_t)number * PIECE, PIECE);
		memcpy(before + (size_t)number * PIECE, disk.bytes + (size_t)number * PIECE, PIECE);
	}
	disk.mode = DISK_PRIVATE;
	disk.device.name = "hdb";
	disk.device.sectors = disk.limit = size / SECTOR_SIZE;
	disk.bad_sector = NO_SECTOR;
	disk.budget = REQUESTS;
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
	const char name = (char)('a' + inode->number - 12);
	struct ext_inode root;
	int error = ext_inode_read(fs, 2, &root);

	if (!error)
		error = ext_remove(&root, &name, 1, inode);
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
	case FAIL:
		disk.fail_from = disk.requests + change->first;
		disk.fail_count = change->second;
		return 0;
	case REMOVE:
		return remove_and_cut(inode, change->first);
	default:
		return -1;
	}
}

static void obey(const struct change *change)
{
	struct ext_inode inode;
	int result = ext_inode_read(fs, change->inode, &inode);

	if (result == 0)
		result = make(&inode, change);
	printf("%d %" PRIu64 " %" PRIu64 "\n", result, inode.size, inode.blocks);
	fflush(stdout);
}

static void put_pieces(void)
{
	uint32_t count = (uint32_t)(disk.device.sectors * SECTOR_SIZE / PIECE), changed = 0;

	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *data = disk.bytes + (size_t)i * PIECE;

			if (memcmp(data, before + (size_t)i * PIECE, PIECE) == 0)
				continue;
			changed += turn == 0;
			if (turn == 1 && (fwrite(&i, sizeof(i), 1, stdout) != 1 ||
					  fwrite(data, PIECE, 1, stdout) != 1))
				exit(2);
		}
		if (turn == 0)
			printf("pieces %u\n", changed);
	}
}

/* All buffers can be had at once only if nobody forgot to give one back. */
static uint32_t lost_buffers(void)
{
	struct cached_block *buffer;
	uint32_t block = 0;

	bcache_drop();
	while (block < BUFFERS && bcache_get(&disk.device, block, PIECE, BLOCK_OTHER, &buffer) == 0)
		block++;
	return BUFFERS - block;
}

int main(void)
{
	const struct ext_options options = { .now = clock_count };
	struct change change;
	int error;

	get_image();
	if (bcache_init(BUFFERS) != BUFFERS)
		fail("no memory for the cache");
	error = ext_mount_with(&disk.device, &options, &fs);
	if (error)
		fail("mount: error %d", error);
	while (fread(&change, sizeof(change), 1, stdin) == 1) {
		question_begins();
		obey(&change);
	}
	error = ext_unmount_checked(fs);
	printf("unmount %d\n", error);
	printf("lost %u\n", lost_buffers());
	put_pieces();
	return 0;
}
