/* What wants blocks beside pages: names, attributes, maps, and data past the cache. */
#define _GNU_SOURCE
#include "full.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LONG	200 /* bytes of a long name */
#define SPARSE	(5u << 20)
#define FURTHER (300u << 20)

/* ---- places ---- */

static uint64_t in_line(uint32_t number)
{
	return (uint64_t)(number / FILES) * PAGE;
}

/* Each with blocks of pointers of its own, or an extent. */
static uint64_t scattered(uint32_t number)
{
	uint32_t at = number / FILES;

	return at % 2 ? (uint64_t)at * SPARSE : (uint64_t)(at % 40) * FURTHER + at * SPARSE;
}

/* Every other page, backwards: extents in the middle of full leaves. */
static uint64_t backwards(uint32_t number)
{
	return (uint64_t)(MOST - number / FILES) * 2 * PAGE;
}

/* ---- names ---- */

static void long_path(char *path, const char *name, uint32_t number)
{
	char text[LONG + 1];

	memset(text, 'n', LONG);
	text[LONG] = 0;
	full_path(path, name, (int)number);
	strcat(path, text);
}

static int make_directory(uint32_t number)
{
	char path[PATH_LENGTH];

	full_path(path, "directory", (int)number);
	return mkdir(path, 0755) == 0;
}

static int make_symlink(uint32_t number)
{
	char path[PATH_LENGTH], target[LONG + 1];

	memset(target, 't', LONG);
	target[LONG] = 0;
	full_path(path, "symlink", (int)number);
	return symlink(target, path) == 0;
}

static int make_name(uint32_t number)
{
	char path[PATH_LENGTH];

	long_path(path, "name", number);
	return mknod(path, S_IFREG | 0644, 0) == 0;
}

static int make_link(uint32_t number)
{
	char path[PATH_LENGTH], from[PATH_LENGTH];

	full_path(from, "file", (int)(number % FILES));
	long_path(path, "link", number);
	return link(from, path) == 0;
}

/* A name that becomes longer. Those that are there before: */
static void make_names(void)
{
	char path[PATH_LENGTH];

	for (int i = 0; i < 200; i++) {
		full_path(path, "short", i);
		mknod(path, S_IFREG | 0644, 0);
	}
}

static int rename_name(uint32_t number)
{
	char path[PATH_LENGTH], from[PATH_LENGTH];

	full_path(from, "short", (int)number);
	long_path(path, "renamed", number);
	return rename(from, path) == 0;
}

static int set_attribute(uint32_t number)
{
	char path[PATH_LENGTH], value[700];

	memset(value, 'a' + (int)(number % 26), sizeof(value));
	memcpy(value, &number, sizeof(number));
	full_path(path, "short", (int)number);
	return setxattr(path, "user.full", value, sizeof(value), 0) == 0;
}

/* A file of one byte. */
static int make_file(uint32_t number)
{
	char path[PATH_LENGTH];

	full_path(path, "small", (int)number);
	int file = open(path, O_WRONLY | O_CREAT, 0644);
	int is_written = file >= 0 && write(file, "x", 1) == 1;

	close(file);
	return is_written;
}

/* ---- maps and data ---- */

static int other_file(const char *name, int flags)
{
	static int file = -1;
	char path[PATH_LENGTH];

	full_path(path, name, 0);
	if (file < 0)
		file = open(path, O_RDWR | O_CREAT | flags, 0644);
	return file;
}

static int allocate(uint32_t number)
{
	return fallocate(other_file("other", 0), 0, (off_t)number * 3 * PAGE, PAGE) == 0;
}

static int write_direct(uint32_t number)
{
	static uint8_t page[2 * PAGE] __attribute__((aligned(PAGE)));

	return pwrite(other_file("other", O_DIRECT), page, sizeof(page), (off_t)number * SPARSE) >
	       0;
}

/* Holes in a file that is in one piece: its extents become more. At the end there is room. */
static int punch(uint32_t number)
{
	return number < 200 &&
	       fallocate(other_file("fill", 0), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)number * 4 * PAGE, 1024) == 0;
}

/* Blocks without contents, in which pages are written: all of what is left, but little. */
static void allocate_files(void)
{
	for (int i = 0; i < FILES; i++)
		fallocate(full_state()->files[i], 0, 0, 12 * PAGE);
}

/* The same beyond the end. */
static void allocate_beyond(void)
{
	for (int i = 0; i < FILES; i++)
		fallocate(full_state()->files[i], FALLOC_FL_KEEP_SIZE, 0, 12 * PAGE);
}

/* Every third page first, so that what is left is in pieces. */
static uint64_t in_pieces(uint32_t number)
{
	uint32_t at = number / FILES;

	return (uint64_t)(at < 12 ? at * 5 % 12 : at) * PAGE;
}

/* Others' pages. */
static int append(uint32_t number)
{
	return full_write((int)(number % FILES), (uint64_t)(MOST + number / FILES) * 3 * PAGE);
}

/* ---- through memory ---- */

static sigjmp_buf refused;

static void on_signal(int number)
{
	siglongjmp(refused, number);
}

/* Pages are accepted when the store has ended. */
static int store(uint32_t number)
{
	int file = (int)(number % FILES);
	uint64_t offset = (uint64_t)(MOST + number / FILES) * 16 * PAGE;
	int open_file = full_state()->files[file];
	struct stat before;

	fstat(open_file, &before);
	if (before.st_size < (off_t)(offset + PAGE) &&
	    ftruncate(open_file, (off_t)(offset + PAGE)) != 0)
		return 0;
	uint8_t *page =
	    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open_file, (off_t)offset);

	signal(SIGBUS, on_signal);
	if (page == MAP_FAILED || sigsetjmp(refused, 1) != 0)
		return 0;
	full_contents(page, file, offset);
	full_accept(file, offset, PAGE);
	munmap(page, PAGE);
	return 1;
}

static const struct way ways[] = {
	{ "plain", in_line, make_directory, NULL, 0 },
	{ "scattered", scattered, append, NULL, 0 },
	{ "backwards", backwards, make_directory, NULL, 0 },
	{ "symlinks", in_line, make_symlink, NULL, 0 },
	{ "names", in_line, make_name, NULL, 0 },
	{ "links", scattered, make_link, NULL, 0 },
	{ "renames", in_line, rename_name, make_names, 0 },
	{ "attributes", in_line, set_attribute, make_names, 0 },
	{ "small", in_line, make_file, NULL, 0 },
	{ "fallocate", in_line, allocate, NULL, 0 },
	{ "direct", scattered, write_direct, NULL, 0 },
	{ "punch", backwards, punch, NULL, 0 },
	{ "unwritten", in_pieces, make_directory, allocate_files, 0 },
	{ "beyond", in_line, make_directory, allocate_beyond, 0 },
	{ "mmap", in_line, store, NULL, 0 },
	{ "two-append", in_line, append, NULL, 1 },
	{ "two-scattered", scattered, append, NULL, 1 },
	{ "two-directories", scattered, make_directory, NULL, 1 },
	{ "two-direct", in_line, write_direct, NULL, 1 },
	{ "two-mmap", in_line, store, NULL, 1 },
};

const struct way *full_way(const char *name)
{
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	return NULL;
}
