/*
 * fs/ext/map_pointers.c and map_extents.c, asked from outside: tests/storage/mapping.py has the
 * disk and the questions. The maps know no more of a disk than what they have read, and what they
 * have read and put back is noted there.
 *
 *	next		bytes of a block, blocks of the disk, 1 for extents or 0 for pointers, the
 *			logical block, the 15 words of i_block; an empty line: that was all
 *	done ERROR PHYSICAL LENGTH UNWRITTEN DEPTH
 *			the answer to that; gets the next question, as above
 *	read BLOCK	its contents in hexadecimal, up to the last byte that is not 0, after a "+";
 *			an empty line: too many have been read
 *	put BLOCK	it was put back; gets an empty line
 *	said TEXT	on the file system's console; the same
 *
 * Block 0 is the superblock's. A block of the map is in memory of its own from ext_mapping_block to
 * bcache_put, so the sanitizers see what reads beyond its end, or after that.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "tests/host/question.h"
#include "tests/storage/host/asked.h"

#define WORDS 15 /* of i_block */

static struct ext_fs fs;

bool ext_range_valid(const struct ext_fs *of, uint64_t first, uint64_t count)
{
	uint64_t blocks = of->summary.blocks;

	return first > 0 && first < blocks && count <= blocks - first;
}

int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	va_list arguments;
	char said[200];

	(void)inode;
	va_start(arguments, format);
	vsnprintf(said, sizeof(said), format, arguments);
	va_end(arguments);
	ask("said %s", said);
	return -EUCLEAN;
}

int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	struct cached_block *buffer;

	if (!ext_range_valid(inode->fs, block, 1))
		return ext_corrupt_inode(inode, "mapping block %" PRIu64 " is outside", block);
	const char *hex = ask("read %" PRIu64, block);

	if (*hex != '+') {
		fprintf(stderr, "endless\n");
		exit(4);
	}
	buffer = calloc(1, sizeof(*buffer));
	buffer->block = block;
	buffer->references = 1;
	buffer->data = calloc(1, fs.summary.block_size);
	take_hex(buffer->data, fs.summary.block_size, hex + 1);
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
	ask("put %" PRIu64, (uint64_t)buffer->block);
	free(buffer->data);
	free(buffer);
}

/* Answers a question. Returns the next one. */
static const char *answer(const char *question)
{
	struct ext_inode inode = { .fs = &fs, .number = 12 };
	struct ext_mapping mapping = { .length = 1 };
	unsigned extents, most;
	uint64_t logical;
	int error, at;

	if (sscanf(question, "%u %" SCNu64 " %u %" SCNu64 " %u%n", &fs.summary.block_size,
		   &fs.summary.blocks, &extents, &logical, &most, &at) != 5)
		exit(2);
	mapping.most = most;
	for (int i = 0, length; i < WORDS; i++, at += length)
		if (sscanf(question + at, "%u%n", &inode.map[i], &length) != 1)
			exit(2);
	fs.block_shift = (unsigned)__builtin_ctz(fs.summary.block_size);
	error = extents ? ext_map_extents(&inode, logical, &mapping)
			: ext_map_pointers(&inode, logical, &mapping);
	return ask("done %d %" PRIu64 " %" PRIu64 " %d %u", error, mapping.physical, mapping.length,
		   mapping.unwritten, mapping.depth);
}

int main(void)
{
	const char *question = ask("next");

	while (*question != '\n') {
		question_begins();
		question = answer(question);
	}
	return 0;
}
