/* fs/root.c: archives come out as they went in, damage is told, and files hold what was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/root.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "tests/host/fs_core/shim.h"

#define ARCHIVE_SIZE 100000u
#define FILES	     12u
#define REGULAR	     0100000u
#define DIRECTORY    0040000u

struct archive {
	uint8_t bytes[ARCHIVE_SIZE];
	uint32_t length;
};

/* A file that must be there in the end; each test has names of its own, since none is removed. */
struct sample {
	char name[40];
	uint32_t mode, length;
	uint8_t data[6000];
};

static struct sample samples[FILES];
static struct archive archive;

/* ---- making archives ---- */

static void put(const void *bytes, uint32_t length)
{
	REQUIRE(archive.length + length + 4 < ARCHIVE_SIZE, "the archive gets too long");
	memcpy(archive.bytes + archive.length, bytes, length);
	archive.length += length;
	while (archive.length % 4)
		archive.bytes[archive.length++] = '\0';
}

static void put_entry(const char *name, uint32_t mode, const void *data, uint32_t length)
{
	char text[200];
	int header = snprintf(
	    text, sizeof(text), "070701%08X%08x%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s", 7,
	    mode, 3, 4, 1, 1234567890, length, 0, 0, 0, 0, (uint32_t)strlen(name) + 1, 0, name);

	put(text, header + 1);
	put(data, length);
}

static void make_archive(struct random *random, uint32_t number)
{
	static const char *const places[] = { "", "./", "bin/", "/", "usr/lib/" };

	archive.length = 0;
	for (uint32_t i = 0; i < FILES; i++) {
		struct sample *sample = &samples[i];

		snprintf(sample->name, sizeof(sample->name), "%sn%u.%u",
			 places[random_below(random, 5)], number, i);
		sample->mode = REGULAR | (random_below(random, 2) ? 0755 : 0644);
		sample->length = random_below(random, sizeof(sample->data));
		for (uint32_t at = 0; at < sample->length; at++)
			sample->data[at] = random_next(random);
		if (random_below(random, 3) == 0)
			put_entry("bin", DIRECTORY | 0755, "", 0);
		put_entry(sample->name, sample->mode, sample->data, sample->length);
	}
	put_entry("TRAILER!!!", 0, "", 0);
}

static void unpack(uint32_t length)
{
	uint8_t *copy = malloc(length ? length : 1); /* so that the sanitizer sees its end */

	memcpy(copy, archive.bytes, length);
	shim_archive = copy;
	shim_archive_length = length;
	root_unpack();
	free(copy); /* the kernel has a copy of its own, which it keeps */
}

/* ---- tests ---- */

static void check_sample(const struct sample *sample)
{
	static uint8_t data[sizeof(sample->data)];
	struct buffer buffer = buffer_of_kernel(data, sizeof(data));
	struct file *file, *program;
	int error = file_open(NULL, sample->name, O_RDONLY, 0, &file);

	REQUIRE(error == 0, "%s: %d", sample->name, error);
	REQUIRE(file_size(file) == sample->length, "%s: size", sample->name);
	REQUIRE(file_read(file, &buffer) == (int)sample->length, "%s: length", sample->name);
	REQUIRE(memcmp(data, sample->data, sample->length) == 0, "%s: contents", sample->name);
	file_release(file);
	REQUIRE(file_open(NULL, sample->name, O_RDWR, 0, &file) == -EROFS, "%s", sample->name);
	error = file_open_program(NULL, sample->name, &program);
	REQUIRE(error == (sample->mode & 0111 ? 0 : -EACCES), "%s: run: %d", sample->name, error);
	if (!error)
		file_release(program);
}

static void test_good(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		make_archive(random, unit_round);
		unpack(archive.length);
		REQUIRE(strstr(shim_said, " from the host"), "%s", shim_said);
		for (uint32_t i = 0; i < FILES; i++)
			check_sample(&samples[i]);
		REQUIRE(file_pool.used == 0, "open files");
	}
}

static void test_truncations(struct random *random, uint32_t rounds)
{
	(void)rounds;
	make_archive(random, 0);
	for (uint32_t length = 0; length < archive.length - 1;
	     length += 1 + random_below(random, 23)) {
		unit_round = length;
		unpack(length);
		REQUIRE(strstr(shim_said, "the archive ends too soon, at byte "), "%s", shim_said);
	}
}

/* Nothing hangs, nothing is read that is not there, and what is wrong is said in a line. */
static void test_damage(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		make_archive(random, unit_round);
		for (uint64_t count = 1 + random_below(random, 4); count > 0; count--)
			archive.bytes[random_below(random, archive.length)] =
			    random_below(random, 2)
				? "0123456789abcdefABCDEF/."[random_below(random, 24)]
				: random_next(random);
		shim_pages_left = random_below(random, 4) ? 1000 : random_below(random, 20);
		unpack(archive.length);
		REQUIRE(strncmp(shim_said, "files: ", 7) == 0, "%s", shim_said);
		REQUIRE(strchr(shim_said, '\n') == shim_said + strlen(shim_said) - 1, "a line");
	}
}

static void test_refusals(struct random *random, uint32_t rounds)
{
	static const struct {
		const char *bytes, *cause;
	} refusals[] = {
		{ "#!/bin/sh", "no header of a cpio archive (newc), at byte 0" },
		{ "07070100000000000G", "a number that is not hexadecimal, at byte 0" },
	};

	(void)random, (void)rounds;
	for (uint32_t i = 0; i < 2; i++) {
		memset(archive.bytes, 0, 500);
		memcpy(archive.bytes, refusals[i].bytes, strlen(refusals[i].bytes));
		unpack(500);
		REQUIRE(strstr(shim_said, refusals[i].cause), "%s", shim_said);
	}
}

/* The later of two entries counts. */
static void test_order(struct random *random, uint32_t rounds)
{
	char text[4] = { 0 };
	struct buffer buffer = buffer_of_kernel(text, sizeof(text));
	struct file *file;

	(void)random, (void)rounds;
	archive.length = 0;
	put_entry("twice", REGULAR | 0644, "old", 3);
	put_entry("twice", REGULAR | 0644, "ok", 2);
	put_entry("TRAILER!!!", 0, "", 0);
	unpack(archive.length);
	REQUIRE(file_open(NULL, "/twice", O_RDONLY, 0, &file) == 0, "it is there");
	REQUIRE(file_read(file, &buffer) == 2 && strcmp(text, "ok") == 0, "%s", text);
	file_release(file);
}

/* Reads anywhere in a file, and behind its end. */
static void test_contents(struct random *random, uint32_t rounds)
{
	static uint8_t bytes[sizeof(samples[0].data) + 100];
	struct file *file;

	make_archive(random, 7);
	unpack(archive.length);
	REQUIRE(file_open(NULL, samples[0].name, O_RDONLY, 0, &file) == 0, "it is there");
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t length = random_below(random, sizeof(bytes)), size = samples[0].length;
		struct buffer buffer = buffer_of_kernel(bytes, length);

		file->offset = random_below(random, sizeof(bytes));
		uint32_t offset = file->offset, left = offset < size ? size - offset : 0;
		uint32_t expected = length < left ? length : left;

		REQUIRE(file_read(file, &buffer) == (int)expected, "how many bytes");
		REQUIRE(file->offset == offset + expected, "the offset");
		REQUIRE(memcmp(bytes, samples[0].data + offset, expected) == 0, "contents");
	}
	file_release(file);
}

/* What open refuses. */
static void test_names(struct random *random, uint32_t rounds)
{
	struct file *file;

	(void)random, (void)rounds;
	archive.length = 0;
	put_entry("there", REGULAR | 0644, "x", 1);
	put_entry("TRAILER!!!", 0, "", 0);
	unpack(archive.length);
	REQUIRE(file_open(NULL, "none", O_RDWR, 0, &file) == -ENOENT, "not there");
	REQUIRE(file_open(NULL, "none", O_RDWR | O_CREAT, 0, &file) == -EROFS, "to be made");
	REQUIRE(file_open(NULL, "there", O_WRONLY, 0, &file) == -EROFS, "to be written");
	REQUIRE(file_open(NULL, "there", O_TRUNC, 0, &file) == -EROFS, "to be emptied");
	REQUIRE(file_open(NULL, "there", O_CREAT | O_EXCL, 0, &file) == -EEXIST, "to be new");
	REQUIRE(file_open(NULL, "there", O_CREAT, 0, &file) == 0, "to be made, and is there");
	file_release(file);
	REQUIRE(file_open(NULL, "/dev/none", O_RDWR, 0, &file) == -ENOENT, "no device");
	REQUIRE(file_open(NULL, "/dev/zero", O_RDWR, 0, &file) == 0, "zero");
	REQUIRE(file_size(file) == 0, "it has no end");
	file_release(file);
	REQUIRE(file_open_program(NULL, "/dev/null", &file) == -EACCES, "a device is no program");
	REQUIRE(file_open_program(NULL, "there", &file) == -EACCES, "nor is a text");
	REQUIRE(file_open_program(NULL, "none", &file) == -ENOENT, "nor what is not there");
}

const struct unit_test root_tests[] = {
	{ "root_good", test_good },	{ "root_truncations", test_truncations },
	{ "root_damage", test_damage }, { "root_refusals", test_refusals },
	{ "root_order", test_order },	{ "root_contents", test_contents },
	{ "root_names", test_names },	{ 0 },
};
