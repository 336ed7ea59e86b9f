/*
 * The root: a read-only list of the files that the host provides, or a tree of directories.
 *
 *	files --> { etc/passwd, 120, its bytes } --> { bin/sh, 17060, its bytes } --> ...
 *
 * In the list a name is a whole path. There are no directories and no links: a file system has
 * those, and is asked where it is linked (fs/ram/root.c). Devices are found as /dev/NAME.
 *
 * The files come from the host (fs/cpio.h). Only regular files are taken. Of an archive that is
 * wrong, the files before the first error are kept.
 */
#include "fs/root.h"

#include "fs/cpio.h"
#include "fs/devices.h"
#include "kernel/lib/string.h"

#define TYPE	   0170000u /* of the mode, as in stat(2) */
#define REGULAR	   0100000u
#define EXECUTABLE 0111u
#define ORDER_MAX  10u /* a file has 4 MiB at most */

/* A file, in pages of its own. */
struct ram_file {
	struct ram_file *next;
	const char *name; /* without a slash at its beginning; it is after the contents */
	uint32_t size;
	bool is_program;
	uint8_t contents[];
};

static struct ram_file *files;

/* ---- open files ---- */

static int root_read(struct file *file, struct buffer *to, uint64_t offset)
{
	const struct ram_file *ram = file->private;

	if (offset >= ram->size)
		return 0;
	return buffer_put(to, ram->contents + offset, ram->size - (uint32_t)offset);
}

static uint64_t root_size(const struct file *file)
{
	return ((const struct ram_file *)file->private)->size;
}

/* A copy may sleep; the list only grows, so what is read stays where it is. */
static const struct file_ops root_ops = { .read = root_read, .size = root_size };

/* Every path begins at the root, with a slash or without. */
static const char *plain(const char *path)
{
	while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
		path++;
	return path;
}

static struct ram_file *find_ram_file(const char *name)
{
	struct ram_file *ram = files;

	while (ram && strcmp(ram->name, name) != 0)
		ram = ram->next;
	return ram;
}

static const struct device *find_device_file(const char *name)
{
	const struct device *device = device_next(NULL);

	if (strncmp(name, "dev/", 4) != 0)
		return NULL;
	while (device && strcmp(device->name, name + 4) != 0)
		device = device_next(device);
	return device;
}

/* Every path begins at the root. None of the host's files can be made, written or emptied. */
int root_open(const char *path, uint32_t flags, struct file **file)
{
	const struct device *device = find_device_file(plain(path));
	struct ram_file *ram = device ? NULL : find_ram_file(plain(path));

	if (!device && !ram)
		return flags & O_CREAT ? -EROFS : -ENOENT;
	if (ram && flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if (ram && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC))
		return -EROFS;
	*file = file_create(ram ? &root_ops : device->ops, ram, flags);
	return *file ? 0 : -ENFILE;
}

int file_open_program(const struct files *table, const char *path, struct file **file)
{
	if (tree_open_program)
		return tree_open_program(table, path, file);
	const struct ram_file *ram = find_ram_file(plain(path));

	if (find_device_file(plain(path)) || (ram && !ram->is_program))
		return -EACCES;
	return root_open(path, O_RDONLY, file);
}

/* ---- the files ---- */

/* Adds the entry, if it is a regular file, before the others: of two with one name the later is
 * found. Returns what is wrong, or NULL. */
static const char *add_ram_file(struct cpio *archive)
{
	const struct cpio_header *header = &archive->header;
	uint32_t whole = sizeof(struct ram_file) + header->size + header->name_size;
	unsigned order = 0;

	if ((header->mode & TYPE) != REGULAR)
		return NULL;
	while (order < ORDER_MAX && PAGE_SIZE << order < whole)
		order++;
	struct ram_file *ram = whole <= PAGE_SIZE << order ? page_alloc(order) : NULL;

	if (!ram)
		return "no memory for the file, or it has more than 4 MiB";
	char *name = memcpy(ram->contents + header->size, archive->name, header->name_size);

	*ram = (struct ram_file){ files, plain(name), header->size, header->mode & EXECUTABLE };
	files = ram;
	return cpio_read(archive, ram->contents, header->size);
}

void root_initialize(void)
{
	if (tree_make)
		tree_make();
	devices_initialize();
}

void root_unpack(void)
{
	if (tree_fill)
		tree_fill();
	else
		cpio_unpack(add_ram_file);
}
