/*
 * The file system, on the host: mounts an image and obeys the commands on stdin, one a line.
 *   ext_host IMAGE                            mount, then commands
 *   ext_host IMAGE write [OPTION...]          mount for writing; the image is changed
 *   ext_host IMAGE mutate SEED COUNT START LENGTH   see mutate.h
 * An answer is one line, or several; an error is the line "error ENAME". What the kernel would
 * print has "console " in front.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "fs/ext/ext.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"
#include "tests/host/ext/command.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/mutate.h"
#include "tests/host/ext/shim.h"

#define BUFFERS	      16u
#define WRITE_BUFFERS 1024u	 /* a transaction holds its blocks */
#define READ_MAX      (1u << 20) /* bytes of one "read" */
#define CHUNK_BASE    3001u	 /* bytes: neither a sector nor a block */

static uint8_t contents[READ_MAX];
static struct cached_block *held[BUFFERS];
static unsigned held_count;

void say_error(int64_t error)
{
	printf("error %s\n", errno_name((int)-error));
}

/* CRC-32 as zlib's, so that the test need not see the bytes. */
static uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t length)
{
	static uint32_t table[256];

	for (uint32_t i = 0; i < 256 && table[255] == 0; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
	}
	crc = ~crc;
	while (length-- > 0)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xFF];
	return ~crc;
}

/* Reads a whole file in pieces of changing size. Returns an error, or its checksum. */
static int64_t checksum(const struct ext_inode *inode)
{
	uint32_t crc = 0, chunk = CHUNK_BASE;

	for (uint64_t offset = 0; offset < inode->size;) {
		int64_t got = ext_read(inode, offset, contents, chunk);

		if (got < 0)
			return got;
		if (got == 0)
			fail("nothing read at %ju of %ju", offset, inode->size);
		crc = crc32(crc, contents, (size_t)got);
		offset += (uint64_t)got;
		chunk = chunk * 3 % READ_MAX + 1;
	}
	return crc;
}

static int print_entry(void *context, const char *name, uint32_t inode, uint8_t type)
{
	(void)context;
	printf("entry %u %u %s\n", inode, type, name);
	return 0;
}

#define DEPTH_MAX 100u /* a damaged directory may be its own child */

struct place {
	const char *path;
	unsigned depth;
};

static int print_tree(void *context, const char *name, uint32_t number, uint8_t type)
{
	struct place *parent = context;
	struct ext_inode inode;
	char path[4096];
	struct place here = { path, parent->depth + 1 };
	int64_t result;

	(void)type;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", parent->path, name);
	result = ext_inode_read(fs, number, &inode);
	if (here.depth > DEPTH_MAX)
		return -ELOOP;
	if (result == 0 && ext_is_directory(&inode)) {
		printf("node %o 0 0 %s\n", inode.mode, path);
		return ext_list(&inode, print_tree, &here);
	}
	if (result == 0)
		result = checksum(&inode);
	if (result < 0)
		return (int)result;
	printf("node %o %ju %u %s\n", inode.mode, inode.size, (uint32_t)result, path);
	return 0;
}

static void tree(char *path)
{
	struct place root = { path != NULL ? path : "", 0 };
	struct ext_inode inode;
	int error = ext_lookup(fs, path != NULL ? path : "/", &inode);

	if (!error)
		error = ext_list(&inode, print_tree, &root);
	if (error)
		say_error(error);
}

static bool find(const char *path, struct ext_inode *inode)
{
	int error = ext_lookup(fs, path, inode);

	if (error)
		say_error(error);
	return !error;
}

static void list(char *path)
{
	struct ext_inode inode;
	int error;

	if (!find(path, &inode))
		return;
	error = ext_list(&inode, print_entry, NULL);
	if (error)
		say_error(error);
}

static void stat_path(char *path)
{
	struct ext_inode inode;

	if (find(path, &inode))
		printf("inode %u %o %u %ju %ju\n", inode.number, inode.mode, inode.links,
		       inode.size, inode.blocks);
}

static void stat_number(char *number)
{
	struct ext_inode inode;
	int error = ext_inode_read(fs, (uint32_t)strtoul(number, NULL, 0), &inode);

	if (error)
		say_error(error);
	else
		printf("inode %u %o\n", inode.number, inode.mode);
}

/* "map PATH", then block numbers on stdin up to an empty line. */
static void map(char *path)
{
	struct ext_inode inode;
	bool found = find(path, &inode);
	char line[64];

	while (fgets(line, sizeof(line), stdin) != NULL && line[0] != '\n') {
		struct ext_mapping mapping;
		int error = found ? ext_map(&inode, strtoull(line, NULL, 0), &mapping) : 0;

		if (error)
			say_error(error);
		else if (found)
			printf("map %ju %ju %d %u\n", mapping.physical, mapping.length,
			       mapping.unwritten, mapping.depth);
	}
}

/* "read OFFSET LENGTH PATH": prints the length and the bytes in hexadecimal. */
static void read_path(char *arguments)
{
	uint64_t offset = strtoull(arguments, &arguments, 0);
	uint32_t length = (uint32_t)strtoul(arguments, &arguments, 0);
	struct ext_inode inode;
	int64_t got;

	if (length > sizeof(contents) || !find(arguments + 1, &inode))
		return;
	got = ext_read(&inode, offset, contents, length);
	if (got < 0) {
		say_error(got);
		return;
	}
	printf("read %jd ", (intmax_t)got);
	for (int64_t i = 0; i < got; i++)
		printf("%02x", contents[i]);
	printf("\n");
}

static void summary(char *arguments)
{
	const struct ext_summary *about = ext_summary(fs);

	(void)arguments;
	printf("summary %s %u %ju %u %u %u %d %s\n", about->type, about->block_size, about->blocks,
	       about->inodes, about->groups, about->descriptor_size, about->read_only_features,
	       about->label);
}

static void bad(char *sector)
{
	disk.bad_sector = strcmp(sector, "none") == 0 ? NO_SECTOR : strtoull(sector, NULL, 0);
}

static void trace(char *state)
{
	disk.trace = strcmp(state, "on") == 0;
}

static void drop(char *arguments)
{
	(void)arguments;
	printf("dropped %u\n", bcache_drop());
}

/* Gets a block of 1 KiB. Returns NULL, with a message, when that fails. */
static struct cached_block *get(uint64_t block)
{
	struct cached_block *buffer = NULL;
	int error = bcache_get(&disk.device, block, 1024, BLOCK_OTHER, &buffer);

	if (error)
		say_error(error);
	else if (memcmp(buffer->data, disk.bytes + buffer->block * 1024, 1024) != 0)
		fail("block %ju holds something else", buffer->block);
	return buffer;
}

/* "hold BLOCK": gets a block, and keeps it until the end. */
static void hold(char *block)
{
	struct cached_block *buffer = get(strtoull(block, NULL, 0));

	if (buffer != NULL)
		held[held_count++] = buffer;
}

static void touch(char *block)
{
	bcache_put(get(strtoull(block, NULL, 0)));
}

/* All buffers can be had at once only if nobody forgot to give one back. */
static void check_references(void)
{
	while (held_count > 0)
		bcache_put(held[--held_count]);
	bcache_drop();
	disk.bad_sector = NO_SECTOR;
	disk.trace = false;
	for (uint64_t block = 0; block < BUFFERS; block++)
		if (get(block) == NULL)
			fail("%ju buffers are still referenced", BUFFERS - block);
}

static void counts(char *arguments)
{
	const struct bcache_stats *stats = bcache_statistics();

	(void)arguments;
	printf("counts %ju %ju %ju %ju\n", stats->hits[BLOCK_MAPPING], stats->misses[BLOCK_MAPPING],
	       stats->hits[BLOCK_OTHER], stats->misses[BLOCK_OTHER]);
}

static const struct command commands[] = {
	{ "tree", tree },	  { "list", list },   { "stat", stat_path },
	{ "inode", stat_number }, { "map", map },     { "read", read_path },
	{ "bad", bad },		  { "trace", trace }, { "drop", drop },
	{ "hold", hold },	  { "touch", touch }, { "counts", counts },
	{ "summary", summary },	  { NULL, NULL },
};

static const struct command *const tables[] = { commands, write_commands, model_commands,
						name_commands };

static void obey(char *line)
{
	char *arguments = strchr(line, ' ');

	if (fs != NULL && files_obey(line))
		return;
	if (arguments != NULL)
		*arguments++ = '\0';
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct command *each = tables[i]; each->name != NULL; each++)
			if (strcmp(line, each->name) == 0) {
				each->run(arguments);
				return;
			}
	fail("no command '%s'", line);
}

static void obey_lines(void)
{
	char line[8192];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		obey(line);
	}
}

static int obey_all(void)
{
	const struct ext_options options = { .read_only = true, .must_be_clean = true };
	int error = ext_mount(&disk.device, &options, &fs);

	if (error) {
		say_error(error);
		return 1;
	}
	obey_lines();
	ext_unmount(fs);
	check_references();
	return 0;
}

/* Whatever could not be written is there, but nobody has it. */
static void check_given_back(void)
{
	for (uint32_t size = 1024; size <= 4096; size *= 2)
		for (uint64_t block = 0; block < (1u << 24) / size; block++) {
			const struct cached_block *found = bcache_find(&disk.device, block, size);

			if (found != NULL && found->references != 1)
				fail("block %ju has %d references", block,
				     (int)found->references - 1);
		}
}

static int write_all(const struct ext_options *options)
{
	int error = files_mount(options);

	if (error) {
		say_error(error);
		return 1;
	}
	obey_lines();
	error = fs != NULL ? files_unmount() : 0;
	if (error)
		say_error(error);
	check_given_back();
	return error != 0;
}

int main(int count, char **arguments)
{
	bool writing = count > 2 && strcmp(arguments[2], "write") == 0;
	uint32_t buffers = writing ? WRITE_BUFFERS : BUFFERS;

	if (count < 2)
		fail("usage: ext_host IMAGE [write OPTION... | mutate SEED COUNT START LENGTH]");
	disk_open(arguments[1], "hdc",
		  writing     ? DISK_SHARED
		  : count > 2 ? DISK_PRIVATE
			      : DISK_READ_ONLY);
	if (bcache_init(buffers) != buffers)
		fail("no memory for the cache");
	if (count == 2)
		return obey_all();
	if (writing)
		return write_all(write_options(arguments + 3));
	if (count != 7 || strcmp(arguments[2], "mutate") != 0)
		fail("unknown arguments");
	mutate(strtoull(arguments[3], NULL, 0), (unsigned)strtoul(arguments[4], NULL, 0),
	       strtoull(arguments[5], NULL, 0), strtoull(arguments[6], NULL, 0));
	check_references();
	return 0;
}
