/* fs/cpio.c and fs/ram/initramfs.c: a random tree comes out as it went in; every truncation is
 * told; no damage hangs, leaks, or reads beyond what there is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/ram/ramfs.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "tests/host/fs/shim.h"

#define ARCHIVE_SIZE 200000u
#define FILES	     24u

struct archive {
	uint8_t *bytes;
	uint32_t length;
};

/* One entry, and what must be there in the end. */
struct sample {
	char name[40];
	uint32_t number, mode, links, device, length;
	uint8_t data[9000]; /* NUL behind it, for links */
};

static struct sample samples[FILES];
static uint32_t sample_count;

/* ---- making archives ---- */

static void put(struct archive *archive, const void *bytes, uint32_t length)
{
	REQUIRE(archive->length + length + 4 < ARCHIVE_SIZE, "the archive gets too long");
	memcpy(archive->bytes + archive->length, bytes, length);
	archive->length += length;
}

static void pad(struct archive *archive)
{
	while (archive->length % 4)
		archive->bytes[archive->length++] = '\0';
}

static void put_entry(struct archive *archive, const struct sample *sample)
{
	char header[111];
	uint32_t name_size = strlen(sample->name) + 1;

	snprintf(header, sizeof(header),
		 "070701%08X%08x%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", sample->number,
		 sample->mode, 3, 4, sample->links, 1234567890, sample->length, 0, 0,
		 sample->device >> 8, sample->device & 0xff, name_size, 0);
	put(archive, header, 110);
	put(archive, sample->name, name_size);
	pad(archive);
	put(archive, sample->data, sample->length);
	pad(archive);
}

static struct archive new_archive(void)
{
	return (struct archive){ .bytes = calloc(1, ARCHIVE_SIZE) };
}

static void put_trailer(struct archive *archive)
{
	put_entry(archive, &(struct sample){ .name = "TRAILER!!!", .links = 1 });
}

/* Names in a few directories, some of which get entries of their own, early or late. */
static void make_sample(struct random *random, struct sample *sample, uint32_t number)
{
	static const uint32_t types[] = { S_IFREG, S_IFREG, S_IFREG, S_IFDIR,
					  S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO };
	static const char *const directories[] = { "", "./", "d1/", "d1/d2/", "/d3/" };
	uint32_t type = types[random_below(random, 8)];

	memset(sample, 0, sizeof(*sample));
	snprintf(sample->name, sizeof(sample->name), "%sn%u", directories[random_below(random, 5)],
		 number);
	sample->number = number + 1;
	sample->mode = type | (uint32_t)random_below(random, 010000);
	sample->links = type == S_IFDIR ? 2 : 1;
	if (type == S_IFCHR || type == S_IFBLK)
		sample->device = random_below(random, 0x10000);
	if (type == S_IFREG)
		sample->length = random_below(random, sizeof(sample->data));
	if (type == S_IFLNK)
		sample->length = 1 + random_below(random, 150);
	for (uint32_t i = 0; i < sample->length; i++)
		sample->data[i] = 1 + random_below(random, 255);
}

/* Another name of an earlier file; the contents come with either. */
static void make_hard_link(struct random *random, struct sample *sample)
{
	struct sample *first = &samples[random_below(random, sample - samples)];

	if ((first->mode & S_IFMT) != S_IFREG || first->links > 1)
		return;
	sample->number = first->number;
	sample->mode = first->mode;
	sample->device = 0;
	sample->links = first->links = 2;
	sample->length = first->length;
	memcpy(sample->data, first->data, sizeof(first->data));
}

static struct archive make_archive(struct random *random)
{
	struct archive archive = new_archive();

	sample_count = 1 + random_below(random, FILES);
	for (uint32_t i = 0; i < sample_count; i++) {
		make_sample(random, &samples[i], i);
		if (i > 0 && random_below(random, 4) == 0)
			make_hard_link(random, &samples[i]);
	}
	for (uint32_t i = 0; i < sample_count; i++) {
		struct sample entry = samples[i];
		bool has_twin = entry.links == 2 && (entry.mode & S_IFMT) == S_IFREG;
		bool is_first = has_twin && entry.number == i + 1;

		if (has_twin && is_first == (entry.number % 2 == 0))
			entry.length = 0; /* its twin has them */
		put_entry(&archive, &entry);
	}
	put_trailer(&archive);
	return archive;
}

/* ---- unpacking ---- */

/* Unpacks it, from a copy so that the sanitizer sees its end. Returns whether all was well. */
static bool unpack(const struct archive *archive)
{
	uint8_t *copy = malloc(archive->length ? archive->length : 1);

	memcpy(copy, archive->bytes, archive->length);
	shim_archive = copy;
	shim_archive_length = archive->length;
	initramfs_unpack();
	free(copy);
	REQUIRE(strncmp(shim_said, "files: ", 7) == 0, "%s", shim_said);
	REQUIRE(strchr(shim_said, '\n') == shim_said + strlen(shim_said) - 1, "a line");
	return strstr(shim_said, " from the host, ");
}

/* Where it says that something is wrong. */
static uint32_t offset_said(void)
{
	const char *at = strstr(shim_said, ", at byte ");

	REQUIRE(at, "no offset: %s", shim_said);
	return strtoul(at + strlen(", at byte "), NULL, 10);
}

static void clean_up(const char *after)
{
	shim_remove_all(path_root());
	shim_require_no_leak(after, 0);
}

static void check_data(const struct sample *sample, struct inode *inode)
{
	static uint8_t data[sizeof(sample->data)];
	struct buffer buffer = buffer_of_kernel(data, sizeof(data));
	struct file *file;

	REQUIRE(inode->size == sample->length, "%s: %u bytes", sample->name, (unsigned)inode->size);
	if (inode_is(inode, S_IFLNK)) {
		inode->ops->read_link(inode, (char *)data, sizeof(data));
	} else {
		REQUIRE(vfs_open_inode(inode, O_RDONLY, &file) == 0, "%s", sample->name);
		file_read(file, &buffer);
		file_release(file);
	}
	REQUIRE(memcmp(data, sample->data, sample->length) == 0, "%s: contents", sample->name);
}

static void check_sample(const struct sample *sample)
{
	struct inode *inode;
	int error = path_find(path_root(), sample->name, PATH_NAME, &inode);

	REQUIRE(error == 0, "%s: %d", sample->name, error);
	REQUIRE(inode->mode == sample->mode || inode_is(inode, S_IFLNK), "%s: mode %o, not %o",
		sample->name, inode->mode, sample->mode);
	REQUIRE(inode->owner == 3 && inode->group == 4, "%s: owner", sample->name);
	REQUIRE(inode->modified == 1234567890000000000ull || inode_is(inode, S_IFDIR), "%s: time",
		sample->name);
	REQUIRE(inode->device == sample->device, "%s: device", sample->name);
	REQUIRE(inode_is(inode, S_IFDIR) || inode->links == sample->links, "%s: links",
		sample->name);
	if (inode_is(inode, S_IFREG) || inode_is(inode, S_IFLNK))
		check_data(sample, inode);
	inode_put(inode);
}

static void test_good(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct archive archive = make_archive(random);

		REQUIRE(unpack(&archive), "%s", shim_said);
		REQUIRE(strtoul(shim_said + strlen("files: "), NULL, 10) == sample_count,
			"not %u entries: %s", sample_count, shim_said);
		for (uint32_t i = 0; i < sample_count; i++)
			check_sample(&samples[i]);
		free(archive.bytes);
		clean_up("a good archive");
	}
}

static void test_truncations(struct random *random, uint32_t rounds)
{
	struct archive archive = make_archive(random);
	uint32_t whole = archive.length;

	(void)rounds;
	for (archive.length = 0; archive.length < whole - 124;
	     archive.length += 1 + random_below(random, 7)) {
		unit_round = archive.length;
		REQUIRE(!unpack(&archive), "%u of %u bytes", archive.length, whole);
		REQUIRE(strstr(shim_said, "the archive ends too soon"), "%s", shim_said);
		REQUIRE(offset_said() <= archive.length, "an offset behind the end");
		clean_up("a truncation");
	}
	free(archive.bytes);
}

/* A few bytes changed, mostly in headers, often to digits; and memory short now and then. */
static void damage(struct random *random, struct archive *archive)
{
	for (uint64_t count = 1 + random_below(random, 4); count > 0; count--) {
		uint32_t at = random_below(random, archive->length);

		if (random_below(random, 2))
			archive->bytes[at] = "0123456789abcdefABCDEF/."[random_below(random, 24)];
		else
			archive->bytes[at] = random_next(random);
	}
}

static void test_damage(struct random *random, uint32_t rounds)
{
	for (unit_round = 0; unit_round < rounds; unit_round++) {
		struct archive archive = make_archive(random);

		damage(random, &archive);
		shim_pages_left = random_below(random, 4) ? 1000 : random_below(random, 20);
		if (!unpack(&archive))
			REQUIRE(offset_said() < archive.length, "an offset behind the end");
		free(archive.bytes);
		shim_pages_left = 1000;
		clean_up("a damaged archive");
	}
}

/* What must be refused, and in which words. */
static void test_refusals(struct random *random, uint32_t rounds)
{
	static const struct {
		const char *bytes;
		const char *cause;
	} refusals[] = {
		{ "#!/bin/sh", "no header of a cpio archive (newc)" },
		{ "07070100000000000G", "a number that is not hexadecimal" },
		{ "070701", "a number that is not hexadecimal" },
	};

	(void)random, (void)rounds;
	for (uint32_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct archive archive = new_archive();

		memcpy(archive.bytes, refusals[i].bytes, strlen(refusals[i].bytes));
		archive.length = 500;
		REQUIRE(!unpack(&archive), "refusal %u", i);
		REQUIRE(strstr(shim_said, refusals[i].cause), "refusal %u: %s", i, shim_said);
		REQUIRE(offset_said() == 0, "refusal %u: offset", i);
		free(archive.bytes);
	}
	clean_up("refusals");
}

/* Odd, but good: a file instead of an earlier one, a directory twice, and (also) no directory at
 * all above a file. */
static void test_order(struct random *random, uint32_t rounds)
{
	static const struct sample entries[] = {
		{ "a/b/c", 1, S_IFREG | 0600, 1, 0, 3, "old" },
		{ "a/b", 2, S_IFDIR | 0700, 2, 0, 0, "" },
		{ "a/b/c", 3, S_IFREG | 0644, 1, 0, 2, "ok" },
		{ ".", 4, S_IFDIR | 0711, 2, 0, 0, "" },
		{ "link", 5, S_IFLNK | 0777, 1, 0, 3, "a/b" },
		{ "link/d", 6, S_IFREG | 0600, 1, 0, 1, "x" },
	};
	struct archive archive = new_archive();

	(void)random, (void)rounds;
	for (uint32_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		put_entry(&archive, &entries[i]);
	put_trailer(&archive);
	REQUIRE(unpack(&archive) && strstr(shim_said, "files: 6 from"), "%s", shim_said);
	for (uint32_t i = 1; i < 6; i++)
		check_sample(&entries[i]);
	free(archive.bytes);
	clean_up("odd orders");
}

const struct unit_test archive_tests[] = {
	{ "archive_good", test_good },	   { "archive_truncations", test_truncations },
	{ "archive_damage", test_damage }, { "archive_refusals", test_refusals },
	{ "archive_order", test_order },   { 0 },
};
