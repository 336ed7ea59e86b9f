/*
 * "model SEED STEPS BYTES PATH...": random changes of files, each compared with plain memory.
 *
 * A step is one call of the library on one of the files, at offsets and lengths of all kinds: on
 * block boundaries, beside them, beyond the end, a byte, a block, many blocks. After each step a
 * part of the file is read back, and at the end all of it. Prints a line a file, "model SIZE CRC
 * PATH", and one with how often each result occurred: "results OK ENOSPC other".
 *
 * "scatter COUNT STRIDE PATH": writes every STRIDE-th of COUNT * STRIDE blocks, in an order that
 * jumps, and reads them back. Prints the depth of the map: "depth N".
 * "grow ROUNDS BYTES PATH...": the files become longer in turns, by BYTES each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ext/ext.h"
#include "kernel/lib/errno.h"
#include "tests/host/ext/command.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/shim.h"

#define FILES 8u

struct modelled {
	const char *path;
	struct ext_inode inode;
	uint8_t *bytes; /* zeros beyond the size */
};

static struct modelled files[FILES];
static unsigned file_count;
static uint32_t limit; /* bytes that a file may have */
static uint32_t block; /* bytes */
static uint64_t state;
static unsigned full_disk, other_error, successes;
static uint8_t *scratch;

static uint32_t random_below(uint32_t end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return end == 0 ? 0 : (uint32_t)(state >> 20) % end;
}

/* An offset: half of them on a block's boundary or a byte beside it. */
static uint32_t random_offset(const struct modelled *file)
{
	uint32_t end = random_below(4) != 0 && file->inode.size > 0
			   ? (uint32_t)file->inode.size + block
			   : limit;
	uint32_t offset = random_below(end);

	if (random_below(2) == 0)
		offset = offset / block * block + random_below(3) - 1;
	return offset < limit ? offset : 0;
}

static uint32_t random_length(uint32_t offset)
{
	static const uint32_t most[] = { 3, 600, 3000, 20000, 300000 };
	uint32_t length = 1 + random_below(most[random_below(5)]);

	if (random_below(3) == 0)
		length = (length / block + 1) * block;
	return length < limit - offset ? length : limit - offset;
}

static bool count_result(const struct modelled *file, const char *what, int64_t result)
{
	if (result >= 0)
		successes++;
	else if (result == -ENOSPC)
		full_disk++;
	else if (disk.fail_count == 0)
		fail("%s of %s: %s", what, file->path, errno_name((int)-result));
	else
		other_error++;
	return result >= 0;
}

static void step_write(struct modelled *file)
{
	uint32_t offset = random_below(3) == 0 ? (uint32_t)file->inode.size : random_offset(file);
	uint32_t length = random_length(offset);
	int64_t done;

	if (length == 0)
		return;
	for (uint32_t i = 0; i < length; i++)
		scratch[i] = (uint8_t)(random_below(255) + 1);
	done = ext_write(&file->inode, offset, scratch, length);
	if (count_result(file, "write", done))
		memcpy(file->bytes + offset, scratch, (size_t)done);
}

static void step_truncate(struct modelled *file)
{
	uint32_t size = random_offset(file);

	if (!count_result(file, "truncate", ext_truncate(&file->inode, size)))
		return;
	if (file->inode.size != size)
		fail("size %ju, not %u", file->inode.size, size);
	memset(file->bytes + size, 0, limit - size);
}

static void step_punch(struct modelled *file)
{
	uint32_t first = random_offset(file) / block;
	uint32_t count = random_below(random_below(2) == 0 ? 4 : limit / block / 4) + 1;

	if (count > limit / block - first)
		count = limit / block - first;
	if (count > 0 && count_result(file, "punch", ext_punch(&file->inode, first, count)))
		memset(file->bytes + first * block, 0, count * block);
}

static void step_allocate(struct modelled *file)
{
	uint32_t first = random_offset(file) / block;
	uint32_t count = random_below(40) + 1;
	int result;

	if (count > limit / block - first)
		count = limit / block - first;
	if (count == 0)
		return;
	result = ext_allocate(&file->inode, first, count, random_below(2) == 0);
	if (result != -EOPNOTSUPP)
		count_result(file, "allocate", result);
}

static void compare(const struct modelled *file, uint32_t offset, uint32_t length)
{
	int64_t got = ext_read(&file->inode, offset, scratch, length);
	uint64_t end = file->inode.size < offset ? offset : file->inode.size;

	if (got < 0 && disk.fail_count != 0)
		return;
	if (got != (int64_t)(end - offset < length ? end - offset : length))
		fail("%s: read %jd of %u at %u, size %ju", file->path, (intmax_t)got, length,
		     offset, file->inode.size);
	for (uint32_t i = 0; i < (uint32_t)got; i++)
		if (scratch[i] != file->bytes[offset + i])
			fail("%s: byte %u is %u, not %u", file->path, offset + i, scratch[i],
			     file->bytes[offset + i]);
}

static void step(bool check)
{
	static void (*const steps[])(struct modelled *) = {
		step_write, step_write, step_write,    step_write,
		step_write, step_punch, step_truncate, step_allocate,
	};
	struct modelled *file = &files[random_below(file_count)];
	uint32_t offset = random_offset(file);

	steps[random_below(sizeof(steps) / sizeof(steps[0]))](file);
	if (check)
		compare(file, offset, random_length(offset));
}

static void open_files(char *paths)
{
	file_count = 0;
	for (char *path = strtok(paths, " "); path != NULL && file_count < FILES;
	     path = strtok(NULL, " ")) {
		struct modelled *file = &files[file_count++];
		int error = ext_lookup(fs, path, &file->inode);

		if (error && disk.fail_count != 0) {
			file_count--;
			continue;
		}
		if (error || file->inode.size != 0)
			fail("%s: %s", path, error ? errno_name(-error) : "is not empty");
		file->path = path;
		free(file->bytes);
		file->bytes = calloc(1, limit + 1);
	}
}

static uint32_t crc32(const uint8_t *bytes, uint64_t length)
{
	uint32_t crc = ~0u;

	while (length-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
	}
	return ~crc;
}

/* With a disk that fails, contents are not compared. */
static void model(char *arguments)
{
	uint32_t steps;

	state = strtoull(arguments, &arguments, 0) * 2654435761u + 88172645463325252u;
	steps = (uint32_t)strtoul(arguments, &arguments, 0);
	limit = (uint32_t)strtoul(arguments, &arguments, 0);
	block = ext_summary(fs)->block_size;
	scratch = realloc(scratch, limit + block);
	full_disk = other_error = successes = 0;
	open_files(arguments);
	for (uint32_t i = 0; i < steps && file_count > 0; i++)
		step(disk.fail_count == 0);
	for (unsigned i = 0; i < file_count; i++) {
		struct modelled *file = &files[i];

		if (disk.fail_count == 0)
			compare(file, 0, limit);
		printf("model %ju %u %s\n", file->inode.size, crc32(file->bytes, file->inode.size),
		       file->path);
	}
	printf("results %u %u %u\n", successes, full_disk, other_error);
}

/* The block's contents are its number. */
static void fill_block(uint64_t number)
{
	for (uint32_t i = 0; i < block / sizeof(number); i++)
		memcpy(scratch + i * sizeof(number), &number, sizeof(number));
}

static bool open_one(const char *path, struct ext_inode *inode)
{
	int error = ext_lookup(fs, path, inode);

	block = ext_summary(fs)->block_size;
	scratch = realloc(scratch, 2 * (size_t)block);
	if (error)
		say_error(error);
	return !error;
}

static void scatter(char *arguments)
{
	uint64_t count = strtoull(arguments, &arguments, 0);
	uint64_t stride = strtoull(arguments, &arguments, 0), at = 0;
	struct ext_mapping mapping = { .depth = 0 };
	struct ext_inode inode;

	if (!open_one(arguments + 1, &inode))
		return;
	for (uint64_t i = 0; i < count; i++, at = (at + 40503) % count) {
		int done;

		fill_block(at * stride);
		done = ext_write(&inode, at * stride * block, scratch, block);
		if (done < 0) {
			say_error(done);
			return;
		}
		if (done != (int)block)
			fail("block %ju of %s: %d", at * stride, arguments + 1, done);
	}
	for (at = 0; at < count; at++) {
		fill_block(at * stride);
		if (ext_read(&inode, at * stride * block, scratch + block, block) != (int)block ||
		    memcmp(scratch, scratch + block, block) != 0)
			fail("block %ju of %s is another one", at * stride, arguments + 1);
	}
	ext_map(&inode, 0, &mapping);
	printf("depth %u\n", mapping.depth);
}

static void grow(char *arguments)
{
	uint32_t rounds = (uint32_t)strtoul(arguments, &arguments, 0);
	uint32_t length = (uint32_t)strtoul(arguments, &arguments, 0);

	limit = 0;
	scratch = realloc(scratch, length);
	memset(scratch, 0x5A, length);
	open_files(arguments);
	for (uint32_t i = 0; i < rounds * file_count; i++) {
		struct modelled *file = &files[i % file_count];
		int done = ext_write(&file->inode, file->inode.size, scratch, length);

		if (done != (int)length)
			fail("%s: %d of %u", file->path, done, length);
	}
	printf("done\n");
}

const struct command model_commands[] = {
	{ "model", model },
	{ "scatter", scatter },
	{ "grow", grow },
	{ NULL, NULL },
};
