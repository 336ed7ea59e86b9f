/*
 * The root of lessons 3 and 4: a list of files in memory, each with its whole path for a name.
 *
 *	files --> "bin/sh" ------> "etc/passwd" --> ... --> "tmp/list"
 *		  24,576 bytes	   120 bytes		    made by a program: one page
 *		  from the host, read-only
 *
 * There are no directories and no links: "tmp" is nothing, and "tmp/list" is just a name. What has
 * those is a file system, which stands behind the same header (fs/vfs, fs/ext).
 *
 * The host's files come as a cpio archive of the format "newc", like Linux's initramfs
 * (Documentation/ driver-api/early-userspace/buffer-format.rst in Linux's source), through QEMU's
 * fw_cfg. It is one entry after the other:
 *
 *	"070701" + 13 numbers of 8 hexadecimal digits	110 bytes, the header
 *	"bin/sh" NUL					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	the contents					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	... until an entry with the name TRAILER!!!
 *
 * Only regular files are taken. Nothing in the archive is trusted: digits, lengths and the NUL are
 * checked before they are used. What was taken before something is wrong stays.
 *
 * Files are never removed. Nothing here sleeps, so no lock is needed.
 */
#include "fs/root.h"

#include <stddef.h>

#include "drivers/qemu/fw_cfg.h"
#include "fs/devices.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

#define ARCHIVE	   "opt/org.apprentice/initramfs"
#define MAGIC	   "070701"
#define MAGIC_SIZE 6u
#define NUMBERS	   13u
#define TRAILER	   "TRAILER!!!"
#define TOO_SOON   "the archive ends too soon"
#define TYPE	   0170000u /* of the mode, as in stat(2) */
#define REGULAR	   0100000u
#define EXECUTABLE 0111u
#define NAME_SIZE  128u
#define ORDER_MAX  10u /* a file has 4 MiB at most */
#define MADE_MAX   64u /* files that programs have made */

/* Which of the header's numbers are wanted. */
enum {
	MODE = 1,
	SIZE = 6,
	NAME_LENGTH = 11,
};

/* A file, and what of it there is. */
struct ram_file {
	struct ram_file *next;
	uint8_t *contents;
	uint32_t size;
	uint32_t room; /* bytes that it may grow to; 0: it is the host's, and cannot be written */
	bool is_program;
	char name[NAME_SIZE]; /* without a slash at its beginning */
};

static struct pool pool = POOL_INITIALIZER(struct ram_file);
static struct ram_file *files;
static uint32_t made; /* by programs */

/* ---- open files ---- */

static int root_read(struct file *file, struct buffer *to, uint64_t offset)
{
	const struct ram_file *ram = file->private;

	if (offset >= ram->size)
		return 0;
	return buffer_put(to, ram->contents + offset, ram->size - (uint32_t)offset);
}

/* What lies between the old end and the offset is zero: nothing was ever written behind the end. */
static int root_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct ram_file *ram = file->private;

	if (offset >= ram->room)
		return -ENOSPC;
	int moved = buffer_take(from, ram->contents + offset, ram->room - (uint32_t)offset);

	if (moved > 0 && offset + moved > ram->size)
		ram->size = offset + moved;
	return moved;
}

static uint64_t root_size(const struct file *file)
{
	return ((const struct ram_file *)file->private)->size;
}

static const struct file_ops root_ops = {
	.read = root_read,
	.write = root_write,
	.size = root_size,
};

/* ---- names ---- */

/* Every path begins at the root, with a slash or without. */
static const char *plain(const char *path)
{
	while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
		path++;
	return path;
}

static struct ram_file *find(const char *name)
{
	struct ram_file *ram = files;

	while (ram && strcmp(ram->name, name) != 0)
		ram = ram->next;
	return ram;
}

static const struct device *find_device(const char *name)
{
	const struct device *device = device_next(NULL);

	if (strncmp(name, "dev/", 4) != 0)
		return NULL;
	while (device && strcmp(device->name, name + 4) != 0)
		device = device_next(device);
	return device;
}

/* A new file, with so many pages for its contents, before those that are there: of two with one
 * name the later is found. NULL without memory, or for too long a name. */
static struct ram_file *add(const char *name, unsigned order)
{
	size_t length = strlen(name);
	uint8_t *contents = length < NAME_SIZE ? page_alloc(order) : NULL;
	struct ram_file *ram = contents ? pool_alloc(&pool) : NULL;

	if (!ram) {
		if (contents)
			page_free(contents, order);
		return NULL;
	}
	memcpy(ram->name, name, length);
	ram->contents = contents;
	ram->next = files;
	files = ram;
	return ram;
}

/* For a program: an empty file that can grow to a page. */
static struct ram_file *make(const char *name)
{
	struct ram_file *ram = made < MADE_MAX ? add(name, 0) : NULL;

	if (!ram)
		return NULL;
	memset(ram->contents, 0, PAGE_SIZE);
	ram->room = PAGE_SIZE;
	made++;
	return ram;
}

/* The file of this name as open's flags want it: as it is, made, or emptied. */
static int prepare(const char *name, uint32_t flags, struct ram_file **prepared)
{
	bool changes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	struct ram_file *ram = find(name);

	if (ram && flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if (!ram && !(flags & O_CREAT))
		return -ENOENT;
	if (!ram)
		ram = make(name);
	if (!ram)
		return -ENOSPC;
	if (changes && ram->room == 0)
		return -EROFS;
	if (flags & O_TRUNC) {
		memset(ram->contents, 0, ram->size);
		ram->size = 0;
	}
	*prepared = ram;
	return 0;
}

/* Everybody may do everything with what he has made: the mode means nothing. */
int file_open(const struct files *table, const char *path, uint32_t flags, uint32_t mode,
	      struct file **file)
{
	const struct device *device = find_device(plain(path));
	struct ram_file *ram = NULL;
	int error = device ? 0 : prepare(plain(path), flags, &ram);

	if (error)
		return error;
	*file = file_create(device ? device->ops : &root_ops, ram, flags);
	return *file ? 0 : -ENFILE;
}

/* The host's files do not change, and no others are programs. */
int file_open_program(const struct files *table, const char *path, struct file **file)
{
	struct ram_file *ram = find(plain(path));

	if (!ram)
		return find_device(plain(path)) ? -EACCES : -ENOENT;
	if (!ram->is_program)
		return -EACCES;
	*file = file_create(&root_ops, ram, O_RDONLY);
	return *file ? 0 : -ENFILE;
}

/* ---- the archive ---- */

/* Where in the archive we are, and the entry that is read there. */
struct archive {
	uint32_t size, offset, entry; /* bytes: all, before the next one, before the entry */
	uint32_t mode, size_of_file;
	char name[NAME_SIZE];
};

/* Gives the next bytes. False: the archive ends before. */
static bool take(struct archive *archive, void *to, uint32_t length)
{
	if (length > archive->size - archive->offset)
		return false;
	fw_cfg_next(to, length);
	archive->offset += length;
	return true;
}

/* Leaves bytes out. */
static bool skip(struct archive *archive, uint32_t length)
{
	char bytes[64];

	for (; length > sizeof(bytes); length -= sizeof(bytes))
		if (!take(archive, bytes, sizeof(bytes)))
			return false;
	return take(archive, bytes, length);
}

/* Up to the next multiple of 4. */
static bool skip_padding(struct archive *archive)
{
	return skip(archive, -archive->offset % 4);
}

/* Eight hexadecimal digits, in capital or small letters. */
static bool parse_number(const char *digits, uint32_t *number)
{
	*number = 0;
	for (unsigned i = 0; i < 8; i++) {
		char digit = digits[i] | 0x20; /* a capital letter becomes a small one */
		bool is_letter = digit >= 'a' && digit <= 'f';

		if (!is_letter && (digits[i] < '0' || digits[i] > '9'))
			return false;
		*number = *number << 4 | (is_letter ? digit - 'a' + 10 : digits[i] - '0');
	}
	return true;
}

/* Reads a header and the name behind it. Returns what is wrong, or NULL. */
static const char *read_header(struct archive *archive)
{
	char magic[MAGIC_SIZE], digits[NUMBERS][8];
	uint32_t name_size;

	archive->entry = archive->offset;
	archive->name[0] = '\0';
	if (!take(archive, magic, sizeof(magic)) || !take(archive, digits, sizeof(digits)))
		return TOO_SOON;
	if (memcmp(magic, MAGIC, MAGIC_SIZE) != 0)
		return "no header of a cpio archive (newc)";
	if (!parse_number(digits[MODE], &archive->mode) ||
	    !parse_number(digits[SIZE], &archive->size_of_file) ||
	    !parse_number(digits[NAME_LENGTH], &name_size))
		return "a number that is not hexadecimal";
	if (name_size == 0 || name_size > NAME_SIZE)
		return "a name of no length, or of more than 127 bytes";
	if (!take(archive, archive->name, name_size) || !skip_padding(archive))
		return TOO_SOON;
	if (archive->name[name_size - 1] == '\0')
		return NULL;
	archive->name[0] = '\0';
	return "a name without its end";
}

/* Reads the contents of a regular file into memory of its own. */
static const char *read_file(struct archive *archive)
{
	unsigned order = 0;

	while (order <= ORDER_MAX && PAGE_SIZE << order < archive->size_of_file)
		order++;
	if (order > ORDER_MAX)
		return "a file of more than 4 MiB";
	struct ram_file *ram = add(plain(archive->name), order);

	if (!ram)
		return "no memory for a file";
	if (!take(archive, ram->contents, archive->size_of_file))
		return TOO_SOON;
	ram->size = archive->size_of_file;
	ram->is_program = archive->mode & EXECUTABLE;
	return NULL;
}

/* Reads entries up to the trailer, and counts them. Returns what is wrong, or NULL. */
static const char *read_entries(struct archive *archive, uint32_t *entries)
{
	for (*entries = 0;; ++*entries) {
		const char *wrong = read_header(archive);

		if (wrong || strcmp(archive->name, TRAILER) == 0)
			return wrong;
		if ((archive->mode & TYPE) == REGULAR)
			wrong = read_file(archive);
		else if (!skip(archive, archive->size_of_file))
			wrong = TOO_SOON;
		if (!wrong && !skip_padding(archive))
			wrong = TOO_SOON;
		if (wrong)
			return wrong;
	}
}

void root_initialize(void)
{
	devices_initialize();
}

/* The kernel goes on with whatever there is: its own prompt needs no files. */
void root_unpack(void)
{
	int size = fw_cfg_open(ARCHIVE);
	struct archive archive = { .size = size };
	uint32_t entries;

	if (size < 0) {
		printk("files: the host gives none (%s)\n", errno_name(-size));
		return;
	}
	const char *wrong = read_entries(&archive, &entries);

	if (wrong)
		printk("files: %s, at byte %u of the archive (entry %s)\n", wrong, archive.entry,
		       archive.name);
	else
		printk("files: %u from the host, %u KiB\n", entries, (uint32_t)size / 1024);
}
