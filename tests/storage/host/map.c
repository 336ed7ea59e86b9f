/*
 * Answers questions about fs/ext/map_pointers.c and map_extents.c on standard input, until it ends.
 * All numbers are little-endian.
 *   disk: bytes of a block, how many blocks there are, how many follow here (32, 64 and 32 bits);
 *     each has its number (64 bits) and its contents. All other blocks are zeros.
 *   question: 1 for extents or 0 for pointers (32 bits), the 15 words of i_block, the logical block
 * (64 bits) answer, a line: error, physical, length, unwritten, depth, the blocks read, and, after
 * a colon, what the file system's console says.
 *
 * Block 0 is the superblock's. A block of the map is in memory of its own from ext_mapping_block to
 * bcache_put, so the sanitizers see what reads beyond its end, or after that.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "tests/host/question.h"

#define MOST_READ 32 /* blocks of the map for one answer */

struct piece {
	uint64_t number;
	uint8_t *data;
};

static struct piece *pieces;
static uint32_t piece_count;
static struct ext_fs fs;
static uint64_t chain[MOST_READ];
static unsigned chain_length, held;
static char said[200];

static void get(void *data, size_t size)
{
	if (fread(data, size, 1, stdin) != 1)
		exit(2);
}

static void get_disk(void)
{
	uint32_t size;

	get(&size, sizeof(size));
	fs.summary.block_size = size;
	get(&fs.summary.blocks, sizeof(fs.summary.blocks));
	get(&piece_count, sizeof(piece_count));
	fs.block_shift = (unsigned)__builtin_ctz(size);
	pieces = calloc(piece_count + 1, sizeof(*pieces));
	for (uint32_t i = 0; i < piece_count; i++) {
		get(&pieces[i].number, sizeof(pieces[i].number));
		pieces[i].data = malloc(size);
		get(pieces[i].data, size);
	}
}

bool ext_range_valid(const struct ext_fs *of, uint64_t first, uint64_t count)
{
	uint64_t blocks = of->summary.blocks;

	return first > 0 && first < blocks && count <= blocks - first;
}

int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	va_list arguments;

	(void)inode;
	va_start(arguments, format);
	vsnprintf(said, sizeof(said), format, arguments);
	va_end(arguments);
	return -EUCLEAN;
}

int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	struct cached_block *buffer;

	if (!ext_range_valid(inode->fs, block, 1))
		return ext_corrupt_inode(inode, "mapping block %" PRIu64 " is outside", block);
	if (chain_length == MOST_READ) {
		printf("endless\n");
		exit(0);
	}
	chain[chain_length++] = block;
	buffer = calloc(1, sizeof(*buffer));
	buffer->block = block;
	buffer->references = 1;
	buffer->data = calloc(1, fs.summary.block_size);
	for (uint32_t i = 0; i < piece_count; i++)
		if (pieces[i].number == block)
			memcpy(buffer->data, pieces[i].data, fs.summary.block_size);
	held++;
	*out = buffer;
	return 0;
}

/* The blocks have no checksums. */
int ext_extent_verify(const struct ext_inode *inode, const struct cached_block *buffer)
{
	(void)inode, (void)buffer;
	return 0;
}

void bcache_put(struct cached_block *buffer)
{
	if (buffer == NULL)
		return;
	held--;
	free(buffer->data);
	free(buffer);
}

static void answer(uint32_t extents)
{
	struct ext_inode inode = { .fs = &fs, .number = 12 };
	struct ext_mapping mapping = { .length = 1 };
	uint64_t logical;
	int error;

	get(inode.map, sizeof(inode.map));
	get(&logical, sizeof(logical));
	chain_length = held = 0;
	said[0] = '\0';
	error = extents ? ext_map_extents(&inode, logical, &mapping)
			: ext_map_pointers(&inode, logical, &mapping);
	printf("%d %" PRIu64 " %" PRIu64 " %d %u %u", error, mapping.physical, mapping.length,
	       mapping.unwritten, mapping.depth, held);
	for (unsigned i = 0; i < chain_length; i++)
		printf(" %" PRIu64, chain[i]);
	printf(":%s\n", said);
	fflush(stdout);
}

int main(void)
{
	uint32_t extents;

	get_disk();
	while (fread(&extents, sizeof(extents), 1, stdin) == 1) {
		question_begins();
		answer(extents);
	}
	return 0;
}
