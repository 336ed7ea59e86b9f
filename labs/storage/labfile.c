/*
 * lab-file, a host tool: makes the one big file of the lab's ext3 and ext4 images, and stamps the
 * sectors that a seeded run of random reads will ask for. What a sector holds:
 * labs/storage/stamp.h.
 *
 * The file is laid out as ext3 lays out a file that is written from its start: every pointer block
 * right before the 1024 blocks that it maps. Data blocks are allocated but never written, so the
 * image stays sparse. Everything goes by ranges of free blocks: there are 480 million blocks in 2
 * TB.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ext2fs/ext2fs.h>

#include "labs/storage/stamp.h"

#define BIG_FILE    "/big"
#define SECTOR_SIZE 512u

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("lab-file: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

/* Error is libext2fs's or an errno; 0 is success. */
static void check(errcode_t error, const char *what)
{
	if (error)
		die("%s: %s", what, error_message(error));
}

static uint64_t parse_number(const char *text, const char *what)
{
	char *end;
	uint64_t number;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-'))
		die("%s is not a number: %s", what, text);
	return number;
}

/* ---- Making the file ---- */

/* The file under construction, and the free blocks that it is taking. */
struct builder {
	ext2_filsys fs;
	ext2_ino_t number;
	struct ext2_inode inode;
	uint64_t blocks;       /* the file's data blocks, all told */
	uint64_t data_left;    /* of them still to be mapped */
	uint64_t mapping;      /* pointer or extent blocks */
	uint64_t extents;      /* 0 with pointers */
	uint64_t to_take;      /* blocks that may still be marked as used */
	blk64_t position, end; /* marked as used and not handed out yet: [position, end) */
};

struct run {
	blk64_t start;
	uint64_t count;
};

static unsigned extents_per_block(ext2_filsys fs)
{
	return (fs->blocksize - sizeof(struct ext3_extent_header)) / sizeof(struct ext3_extent);
}

static unsigned pointers_per_block(ext2_filsys fs)
{
	return fs->blocksize / sizeof(uint32_t);
}

/* The first run of free blocks at or after position; count is 0 if there is none. */
static struct run find_free(ext2_filsys fs, blk64_t position)
{
	blk64_t last = ext2fs_blocks_count(fs->super) - 1, start, end;

	if (position < fs->super->s_first_data_block) /* block 0 of 1 KiB is not a block of ours */
		position = fs->super->s_first_data_block;
	if (position > last ||
	    ext2fs_find_first_zero_block_bitmap2(fs->block_map, position, last, &start))
		return (struct run){ 0, 0 };
	if (ext2fs_find_first_set_block_bitmap2(fs->block_map, start, last, &end))
		end = last + 1;
	return (struct run){ start, end - start };
}

/* Marks the next run of free blocks as used, so that nobody else takes from its middle. */
static void reserve_run(struct builder *builder)
{
	struct run run = find_free(builder->fs, builder->end);

	if (!run.count || !builder->to_take)
		die("no free block is left");
	if (run.count > builder->to_take)
		run.count = builder->to_take;
	ext2fs_block_alloc_stats_range(builder->fs, run.start, run.count, +1);
	builder->to_take -= run.count;
	builder->position = run.start;
	builder->end = run.start + run.count;
}

/* Takes the next free blocks in disk order: at least one, at most limit, without a gap. */
static struct run take(struct builder *builder, uint64_t limit)
{
	struct run run;

	if (builder->position == builder->end)
		reserve_run(builder);
	run.start = builder->position;
	run.count = builder->end - builder->position;
	if (run.count > limit)
		run.count = limit;
	builder->position += run.count;
	return run;
}

/* Points up to count pointers at the file's next data blocks; the rest are left as they are. */
static void map_data(struct builder *builder, uint32_t *pointers, unsigned count)
{
	while (count && builder->data_left) {
		uint64_t limit = count < builder->data_left ? count : builder->data_left;
		struct run run = take(builder, limit);

		for (uint64_t i = 0; i < run.count; i++)
			*pointers++ = ext2fs_cpu_to_le32(run.start + i);
		count -= run.count;
		builder->data_left -= run.count;
	}
}

/* Makes a pointer block with all below it, `levels` of them (1: it points at data). */
static uint32_t make_pointer_block(struct builder *builder, unsigned levels)
{
	unsigned count = pointers_per_block(builder->fs);
	uint32_t block = take(builder, 1).start, *pointers = calloc(count, sizeof(*pointers));

	if (!pointers)
		die("no memory for a pointer block");
	builder->mapping++;
	if (levels == 1)
		map_data(builder, pointers, count);
	else
		for (unsigned i = 0; i < count && builder->data_left; i++)
			pointers[i] = ext2fs_cpu_to_le32(make_pointer_block(builder, levels - 1));
	check(io_channel_write_blk64(builder->fs->io, block, 1, pointers), "pointer block");
	free(pointers);
	return block;
}

static void map_with_pointers(struct builder *builder)
{
	uint32_t direct[EXT2_NDIR_BLOCKS] = { 0 };

	map_data(builder, direct, EXT2_NDIR_BLOCKS);
	for (unsigned i = 0; i < EXT2_NDIR_BLOCKS; i++)
		builder->inode.i_block[i] = ext2fs_le32_to_cpu(direct[i]);
	for (unsigned levels = 1; levels <= 3 && builder->data_left; levels++)
		builder->inode.i_block[EXT2_NDIR_BLOCKS + levels - 1] =
		    make_pointer_block(builder, levels);
	check(ext2fs_iblk_set(builder->fs, &builder->inode, builder->blocks + builder->mapping),
	      "block count of " BIG_FILE);
}

/* Appends one initialised extent; the library adds tree blocks where they are needed. */
static void append_extent(struct builder *builder, ext2_extent_handle_t tree)
{
	uint64_t limit = EXT_INIT_MAX_LEN;
	struct run run = take(builder, builder->data_left < limit ? builder->data_left : limit);
	struct ext2fs_extent extent = {
		.e_pblk = run.start,
		.e_lblk = builder->blocks - builder->data_left,
		.e_len = run.count,
	};

	check(ext2fs_extent_insert(tree, EXT2_EXTENT_INSERT_AFTER, &extent), "extent");
	builder->data_left -= run.count;
	builder->extents++;
}

static void map_with_extents(struct builder *builder)
{
	blk64_t free_before = ext2fs_free_blocks_count(builder->fs->super), used;
	ext2_extent_handle_t tree;

	check(ext2fs_extent_open2(builder->fs, builder->number, &builder->inode, &tree),
	      "extent tree");
	while (builder->data_left)
		append_extent(builder, tree);
	ext2fs_extent_free(tree);
	used = free_before - ext2fs_free_blocks_count(builder->fs->super);
	builder->mapping = used - builder->blocks;
	check(ext2fs_iblk_set(builder->fs, &builder->inode, used), "block count of " BIG_FILE);
}

static uint64_t divide_up(uint64_t number, uint64_t by)
{
	return (number + by - 1) / by;
}

/* How many pointer blocks a file of this many data blocks has. */
static uint64_t pointer_blocks(ext2_filsys fs, uint64_t data)
{
	uint64_t per_block = pointers_per_block(fs), reach = 1, total = 0;
	uint64_t left = data > EXT2_NDIR_BLOCKS ? data - EXT2_NDIR_BLOCKS : 0;

	for (unsigned levels = 1; levels <= 3 && left; levels++) {
		reach *= per_block;
		uint64_t here = left < reach ? left : reach;

		for (uint64_t unit = per_block; unit <= reach; unit *= per_block)
			total += divide_up(here, unit);
		left -= here;
	}
	return total;
}

/* How many extent blocks map all that is free: the inode itself holds four entries. */
static uint64_t extent_blocks(ext2_filsys fs)
{
	uint64_t entries = 0, total = 0;
	struct run run = { 0, 0 };

	while ((run = find_free(fs, run.start + run.count)).count)
		entries += divide_up(run.count, EXT_INIT_MAX_LEN);
	while (entries > 4) {
		entries = divide_up(entries, extents_per_block(fs));
		total += entries;
	}
	return total;
}

/* The most data blocks that fit, with the blocks that map them. */
static uint64_t largest_file(ext2_filsys fs)
{
	uint64_t fits = 0, too_many = ext2fs_free_blocks_count(fs->super) + 1;
	uint64_t free_blocks = too_many - 1;

	if (ext2fs_has_feature_extents(fs->super))
		return free_blocks - extent_blocks(fs);
	while (too_many - fits > 1) {
		uint64_t middle = fits + (too_many - fits) / 2;

		if (middle + pointer_blocks(fs, middle) <= free_blocks)
			fits = middle;
		else
			too_many = middle;
	}
	return fits;
}

static ext2_filsys open_file_system(const char *image, int flags)
{
	ext2_filsys fs;
	errcode_t error = ext2fs_open(image, flags | EXT2_FLAG_64BITS | EXT2_FLAG_THREADS, 0, 0,
				      unix_io_manager, &fs);

	check(error, image);
	return fs;
}

static void make_inode(struct builder *builder, uint64_t bytes)
{
	ext2_filsys fs = builder->fs;
	struct ext2_inode *inode = &builder->inode;

	check(ext2fs_new_inode(fs, EXT2_ROOT_INO, LINUX_S_IFREG, 0, &builder->number), "inode");
	ext2fs_inode_alloc_stats2(fs, builder->number, +1, 0);
	inode->i_mode = LINUX_S_IFREG | 0644;
	inode->i_links_count = 1;
	inode->i_atime = inode->i_ctime = inode->i_mtime = fs->now ? fs->now : time(NULL);
	if (ext2fs_has_feature_extents(fs->super))
		inode->i_flags = EXT4_EXTENTS_FL;
	check(ext2fs_inode_size_set(fs, inode, bytes), "size of " BIG_FILE);
	check(ext2fs_write_new_inode(fs, builder->number, inode), "inode of " BIG_FILE);
}

static void map_blocks(struct builder *builder)
{
	ext2_filsys fs = builder->fs;

	builder->data_left = builder->to_take = builder->blocks;
	if (ext2fs_has_feature_extents(fs->super)) {
		map_with_extents(builder);
		return;
	}
	builder->to_take += pointer_blocks(fs, builder->blocks);
	map_with_pointers(builder);
	if (builder->data_left)
		die("%s is too large for block pointers", BIG_FILE);
}

/* lab-file create IMAGE [BYTES]: without a size, as large as the free space allows. */
static int create(int count, char **arguments)
{
	ext2_filsys fs = open_file_system(arguments[0], EXT2_FLAG_RW);
	struct builder builder = { .fs = fs };
	uint64_t bytes;
	ext2_ino_t number;

	if (!ext2fs_namei(fs, EXT2_ROOT_INO, EXT2_ROOT_INO, BIG_FILE, &number))
		die("%s: %s is there already", arguments[0], BIG_FILE);
	check(ext2fs_read_bitmaps(fs), arguments[0]);
	bytes = count > 1 ? parse_number(arguments[1], "size") : largest_file(fs) * fs->blocksize;
	builder.blocks = divide_up(bytes, fs->blocksize);
	make_inode(&builder, bytes);
	map_blocks(&builder);
	check(ext2fs_write_inode(fs, builder.number, &builder.inode), "inode of " BIG_FILE);
	check(ext2fs_link(fs, EXT2_ROOT_INO, BIG_FILE + 1, builder.number, EXT2_FT_REG_FILE),
	      "name " BIG_FILE);
	check(ext2fs_close(fs), arguments[0]);
	printf("{\"bytes\": %" PRIu64 ", \"data_blocks\": %" PRIu64 ", \"mapping_blocks\": %" PRIu64
	       ", \"extents\": %" PRIu64 "}\n",
	       bytes, builder.blocks, builder.mapping, builder.extents);
	return EXIT_SUCCESS;
}

/* ---- The reads of a run ---- */

/* What the reads go to: a whole drive, or a file in the file system on it. */
struct target {
	const char *image;
	int image_descriptor;
	uint64_t bytes;
	ext2_filsys fs; /* NULL for a raw drive */
	ext2_ino_t number;
	struct ext2_inode inode;
};

static void open_target(struct target *target, const char *image, const char *file)
{
	off_t end;

	*target = (struct target){ .image = image };
	target->image_descriptor = open(image, O_RDWR);
	if (target->image_descriptor < 0)
		check(errno, image);
	end = lseek(target->image_descriptor, 0, SEEK_END);
	if (end < 0)
		check(errno, image);
	target->bytes = end;
	if (!file)
		return;
	target->fs = open_file_system(image, 0);
	check(ext2fs_namei(target->fs, EXT2_ROOT_INO, EXT2_ROOT_INO, file, &target->number), file);
	check(ext2fs_read_inode(target->fs, target->number, &target->inode), file);
	target->bytes = EXT2_I_SIZE(&target->inode);
}

static void close_target(struct target *target)
{
	if (target->fs)
		check(ext2fs_close(target->fs), target->image);
	if (close(target->image_descriptor))
		check(errno, target->image);
}

/* Where the target's byte at offset is on the drive, in bytes. */
static uint64_t locate(struct target *target, uint64_t offset)
{
	blk64_t block;
	int flags;

	if (!target->fs)
		return offset;
	check(ext2fs_bmap2(target->fs, target->number, &target->inode, NULL, 0,
			   offset / target->fs->blocksize, &flags, &block),
	      "block of the file");
	if (!block || flags & BMAP_RET_UNINIT)
		die("%s: the file has no written block at byte %" PRIu64, target->image, offset);
	return block * target->fs->blocksize + offset % target->fs->blocksize;
}

/* What is done with each read of the run. */
typedef void read_visitor(struct target *target, char drive, uint64_t lba, uint64_t offset);

static void stamp_read(struct target *target, char drive, uint64_t lba, uint64_t offset)
{
	struct stamped_sector sector;
	ssize_t written;

	stamp_fill(&sector, drive, lba, offset);
	written = pwrite(target->image_descriptor, &sector, SECTOR_SIZE, lba * SECTOR_SIZE);
	if (written != SECTOR_SIZE)
		check(written < 0 ? errno : ENOSPC, target->image);
}

static void print_read(struct target *target, char drive, uint64_t lba, uint64_t offset)
{
	(void)target, (void)drive;
	printf("%" PRIu64 " %" PRIu64 "\n", offset, lba);
}

/* The same seed gives the same reads to the guest: kernel/lib/random.h. */
static void each_read(struct target *target, char drive, struct random random, uint64_t reads,
		      read_visitor *visit)
{
	uint64_t sectors = target->bytes / SECTOR_SIZE;

	if (!sectors)
		die("%s: smaller than a sector", target->image);
	for (uint64_t i = 0; i < reads; i++) {
		uint64_t offset = random_below(&random, sectors) * SECTOR_SIZE;

		visit(target, drive, locate(target, offset) / SECTOR_SIZE, offset);
	}
}

static int visit_reads(int count, char **arguments, read_visitor *visit)
{
	const char *drive = arguments[1];
	struct random random = { parse_number(arguments[2], "seed") };
	uint64_t reads = parse_number(arguments[3], "number of reads");
	struct target target;

	if (strlen(drive) != 1 || !strchr("bcd", drive[0]))
		die("drive is b, c or d, not %s", drive);
	open_target(&target, arguments[0], count > 4 ? arguments[4] : NULL);
	each_read(&target, drive[0], random, reads, visit);
	close_target(&target);
	return EXIT_SUCCESS;
}

/* lab-file stamp IMAGE DRIVE SEED READS [FILE]: writes the sectors that the reads will ask for. */
static int stamp(int count, char **arguments)
{
	return visit_reads(count, arguments, stamp_read);
}

/* lab-file reads IMAGE DRIVE SEED READS [FILE]: prints byte offset and LBA of each. */
static int reads(int count, char **arguments)
{
	return visit_reads(count, arguments, print_read);
}

struct command {
	const char *name, *usage;
	int least, most; /* arguments */
	int (*run)(int count, char **arguments);
};

static const struct command commands[] = {
	{ "create", "IMAGE [BYTES]", 1, 2, create },
	{ "stamp", "IMAGE DRIVE SEED READS [FILE]", 4, 5, stamp },
	{ "reads", "IMAGE DRIVE SEED READS [FILE]", 4, 5, reads },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static int usage(void)
{
	for (unsigned i = 0; i < COMMAND_COUNT; i++)
		fprintf(stderr, "usage: lab-file %s %s\n", commands[i].name, commands[i].usage);
	return 2;
}

int main(int count, char **arguments)
{
	initialize_ext2_error_table();
	for (unsigned i = 0; count > 1 && i < COMMAND_COUNT; i++) {
		const struct command *command = &commands[i];

		if (strcmp(arguments[1], command->name))
			continue;
		if (count - 2 < command->least || count - 2 > command->most)
			break;
		return command->run(count - 2, arguments + 2);
	}
	return usage();
}
