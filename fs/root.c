/*
 * The root of lessons 3 and 4: a read-only list of the files that the host provides.
 *
 *	the archive	[header]bin/sh[its bytes][header]etc/passwd[its bytes] ... TRAILER!!!
 *				   ^			       ^
 *	files --> { etc/passwd, 120 bytes, --------------------' } --> { bin/sh, ... } --> ...
 *
 * A name is a whole path. There are no directories and no links: a file system has those, and
 * implements the same header (fs/vfs, fs/ram). Devices are found as /dev/NAME.
 *
 * The files come as a cpio archive of the format "newc", like Linux's initramfs (Documentation/
 * driver-api/early-userspace/buffer-format.rst in Linux's source), through QEMU's fw_cfg. It is one
 * entry after the other:
 *
 *	"070701" + 13 numbers of 8 hexadecimal digits	110 bytes, the header
 *	"bin/sh" NUL					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	the contents					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	... until an entry with the name TRAILER!!!
 *
 * Only regular files are taken. Nothing in the archive is trusted: digits, lengths and the NUL are
 * checked before they are used. The files before the first error are kept.
 */
#include "fs/root.h"

#include "drivers/qemu/fw_cfg.h"
#include "fs/devices.h"
#include "kernel/abi/limits.h"
#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/pool.h"

#define ARCHIVE	    "opt/org.apprentice/initramfs"
#define MAGIC	    "070701"
#define MAGIC_SIZE  6u
#define NUMBER(n)   (MAGIC_SIZE + 8 * (n)) /* where number n is in the header */
#define HEADER_SIZE NUMBER(13)
#define TRAILER	    "TRAILER!!!"
#define TOO_SOON    "the archive ends too soon"
#define TYPE	    0170000u /* of the mode, as in stat(2) */
#define REGULAR	    0100000u
#define EXECUTABLE  0111u
#define ORDER_MAX   10u /* the archive has 4 MiB at most */

/* A file; name and contents are in the archive. */
struct ram_file {
	struct ram_file *next;
	const char *name; /* without a slash at its beginning */
	const uint8_t *contents;
	uint32_t size;
	bool is_program;
};

static struct pool pool = POOL_INITIALIZER(struct ram_file);
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

static const struct file_ops root_ops = { .read = root_read, .size = root_size };

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

/* Opens one of the host's files. None can be made, written or emptied. */
static int open_ram_file(const char *name, uint32_t flags, struct file **file)
{
	struct ram_file *ram = find(name);

	if (!ram)
		return flags & O_CREAT ? -EROFS : -ENOENT;
	if (flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
		return -EROFS;
	*file = file_create(&root_ops, ram, flags);
	return *file ? 0 : -ENFILE;
}

/* Every path begins at the root, and no file is made: the table and the mode mean nothing. */
int file_open(const struct files *table, const char *path, uint32_t flags, uint32_t mode,
	      struct file **file)
{
	const struct device *device = find_device(plain(path));

	if (!device)
		return open_ram_file(plain(path), flags, file);
	*file = file_create(device->ops, NULL, flags);
	return *file ? 0 : -ENFILE;
}

int file_open_program(const struct files *table, const char *path, struct file **file)
{
	const struct ram_file *ram = find(plain(path));

	if (find_device(plain(path)) || (ram && !ram->is_program))
		return -EACCES;
	return open_ram_file(plain(path), O_RDONLY, file);
}

/* ---- the archive ---- */

/* Where we are in the archive. Offsets are in bytes from its beginning. */
struct archive {
	uint8_t *bytes;
	uint32_t size;
	uint32_t entry;	   /* of the entry that is read, */
	uint32_t contents; /* of its contents, */
	uint32_t next;	   /* and of the entry after it */
	uint32_t mode, length;
	const char *name;
	uint32_t entries; /* this many until now */
};

/* Eight hexadecimal digits, in capital or small letters. */
static bool parse_number(const uint8_t *digits, uint32_t *number)
{
	char text[] = "0x????????";
	uint64_t value;

	memcpy(text + 2, digits, 8);
	if (!number_parse(text, &value))
		return false;
	*number = value;
	return true;
}

/* Steps over this many bytes, and up to the next multiple of 4. False: the archive ends before. */
static bool step(const struct archive *archive, uint32_t *offset, uint32_t length)
{
	if (*offset > archive->size || length > archive->size - *offset)
		return false;
	*offset = (*offset + length + 3) & -4u;
	return true;
}

/* Reads a header, and finds the name and the contents after it. Returns what is wrong, or NULL. */
static const char *read_header(struct archive *archive)
{
	const uint8_t *header = archive->bytes + archive->entry;
	uint32_t name_size;

	archive->name = "";
	archive->contents = archive->entry;
	if (!step(archive, &archive->contents, HEADER_SIZE))
		return TOO_SOON;
	if (memcmp(header, MAGIC, MAGIC_SIZE) != 0)
		return "no header of a cpio archive (newc)";
	if (!parse_number(header + NUMBER(1), &archive->mode) ||
	    !parse_number(header + NUMBER(6), &archive->length) ||
	    !parse_number(header + NUMBER(11), &name_size))
		return "a number that is not hexadecimal";
	if (name_size == 0 || name_size > PATH_MAX)
		return "a name of no length, or of more than 4096 bytes";
	archive->contents = archive->entry;
	if (!step(archive, &archive->contents, HEADER_SIZE + name_size))
		return TOO_SOON;
	if (header[HEADER_SIZE + name_size - 1] != '\0')
		return "a name without its end";
	archive->name = (const char *)header + HEADER_SIZE;
	archive->next = archive->contents;
	return step(archive, &archive->next, archive->length) ? NULL : TOO_SOON;
}

/* Adds the file that is read, before the others: of two with one name the later is found. False
 * without memory. */
static bool take(const struct archive *archive)
{
	struct ram_file *ram = pool_alloc(&pool);

	if (!ram)
		return false;
	*ram = (struct ram_file){ files, plain(archive->name), archive->bytes + archive->contents,
				  archive->length, archive->mode & EXECUTABLE };
	files = ram;
	return true;
}

/* Adds the regular files, up to the trailer. Returns what is wrong, or NULL. */
static const char *read_entries(struct archive *archive)
{
	const char *wrong;

	for (; !(wrong = read_header(archive)); archive->entries++) {
		if (strcmp(archive->name, TRAILER) == 0)
			return NULL;
		if ((archive->mode & TYPE) == REGULAR && !take(archive))
			return "no memory for another file";
		archive->entry = archive->next;
	}
	return wrong;
}

void root_initialize(void)
{
	devices_initialize();
}

/* Memory for the archive, with the archive in it; NULL where there is not enough. */
static uint8_t *fetch(uint32_t size)
{
	unsigned order = 0;

	while (order < ORDER_MAX && PAGE_SIZE << order < size)
		order++;
	uint8_t *bytes = size <= PAGE_SIZE << order ? page_alloc(order) : NULL;

	if (bytes)
		fw_cfg_next(bytes, size);
	return bytes;
}

/* Without files the kernel still runs: its own prompt needs none. */
void root_unpack(void)
{
	int size = fw_cfg_open(ARCHIVE);
	struct archive archive = { .size = size };

	if (size < 0) {
		printk("files: no archive from the host (%s)\n", errno_name(-size));
		return;
	}
	archive.bytes = fetch(size);
	if (!archive.bytes) {
		printk("files: no memory for the archive, or it has more than 4 MiB\n");
		return;
	}
	const char *wrong = read_entries(&archive);

	if (wrong)
		printk("files: %s, at byte %u of the archive (entry %s)\n", wrong, archive.entry,
		       archive.name);
	else
		printk("files: %u from the host, %u KiB\n", archive.entries, (uint32_t)size / 1024);
}
