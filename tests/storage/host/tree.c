/*
 * fs/ext/set_extent.c, asked from outside (tests/storage/trees.py): an extent tree in memory, in
 * nodes of any size. With six entries a node a few dozen extents have all depths.
 *
 *	next		bytes of a node, and the first change: LOGICAL LENGTH PHYSICAL UNWRITTEN
 *			ROOM: for how many new nodes there is room
 *	node BLOCK BYTES	one that is in use, after a change; gets an empty line
 *	done RESULT HELD BYTES	what it returned, how many nodes nobody gave back, and i_block; gets
 *			the next change; an empty line: that was all
 *
 * A node that is given back or freed is in memory that the sanitizers watch.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "tests/host/question.h"
#include "tests/storage/host/asked.h"

#define NODES	    4096u
#define FIRST_BLOCK ((1ull << 40) + 77) /* of a node: more than 32 bits */
#define SEED	    0x2010a001u

static struct ext_fs fs;
static struct cached_block *nodes[NODES];
static unsigned made, room;

bool ext_range_valid(const struct ext_fs *of, uint64_t first, uint64_t count)
{
	(void)of;
	return first > 0 && count <= (1ull << 48) - first;
}

int ext_corrupt_inode(const struct ext_inode *inode, const char *format, ...)
{
	va_list arguments;

	(void)inode;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	return -EUCLEAN;
}

uint32_t ext_inode_seed(const struct ext_inode *inode)
{
	(void)inode;
	return SEED;
}

uint64_t ext_inode_goal(const struct ext_inode *inode)
{
	(void)inode;
	return FIRST_BLOCK;
}

/* Checksums are looked at from outside. */
int ext_extent_verify(const struct ext_inode *inode, const struct cached_block *buffer)
{
	(void)inode, (void)buffer;
	return 0;
}

int ext_change(struct ext_fs *of, struct cached_block *buffer)
{
	(void)of, (void)buffer;
	return 0;
}

int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	uint64_t number = block - FIRST_BLOCK;

	(void)inode;
	if (number >= made || !nodes[number])
		return -EUCLEAN;
	*out = nodes[number];
	(*out)->references++;
	return 0;
}

int ext_metadata_allocate(struct ext_inode *inode, uint64_t goal, struct cached_block **out)
{
	(void)inode, (void)goal;
	if (room == 0 || made == NODES)
		return -ENOSPC;
	room--;
	*out = nodes[made] = calloc(1, sizeof(**out));
	(*out)->block = FIRST_BLOCK + made++;
	(*out)->references = 1;
	(*out)->data = calloc(1, fs.summary.block_size);
	return 0;
}

void bcache_put(struct cached_block *buffer)
{
	if (buffer)
		buffer->references--;
}

int ext_blocks_free(struct ext_inode *inode, uint64_t first, uint32_t count, bool metadata)
{
	uint64_t number = first - FIRST_BLOCK;

	(void)inode, (void)metadata;
	if (count != 1 || number >= made || !nodes[number])
		return -EUCLEAN;
	free(nodes[number]->data);
	free(nodes[number]);
	nodes[number] = NULL;
	return 0;
}

/* Tells all nodes. Returns how many references to them there are. */
static unsigned tell_nodes(void)
{
	unsigned held = 0;
	char words[64];

	for (unsigned i = 0; i < made; i++) {
		if (!nodes[i])
			continue;
		held += nodes[i]->references;
		snprintf(words, sizeof(words), "node %" PRIu64, (uint64_t)nodes[i]->block);
		ask_with(words, nodes[i]->data, fs.summary.block_size);
	}
	return held;
}

int main(void)
{
	struct ext_inode inode = { .fs = &fs, .number = 12 };
	const char *line = ask("next");
	char words[64], *end;

	inode.map[0] = EXT_EXTENT_MAGIC; /* no entries */
	inode.map[1] = 4;		 /* room for four; a leaf */
	fs.super.s_feature_ro_compat = EXT_RO_COMPAT_METADATA_CSUM;
	fs.summary.block_size = (uint32_t)strtoul(line, &end, 10);
	while (*end != '\n') {
		struct ext_run run;
		unsigned unwritten;

		question_begins();
		if (sscanf(end, "%" SCNu64 " %u %" SCNu64 " %u %u", &run.logical, &run.length,
			   &run.physical, &unwritten, &room) != 5)
			return 2;
		run.unwritten = unwritten;
		int result = ext_set_extent(&inode, &run);
		unsigned held = tell_nodes();

		snprintf(words, sizeof(words), "done %d %u", result, held);
		end = ask_with(words, inode.map, sizeof(inode.map));
	}
	return 0;
}
