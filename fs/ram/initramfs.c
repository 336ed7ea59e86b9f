/*
 * Unpacks a cpio archive with everything that it may contain: directories, symbolic links, several
 * names of one file, devices, pipes, owners and times. The format is described in fs/root.c.
 *
 * Several names of one file are entries with the same inode number; any one of them
 * has the contents.
 */
#include "fs/ram/initramfs.h"

#include <stddef.h>

#include "fs/file.h"
#include "fs/path_page.h"
#include "fs/vfs/path.h"
#include "fs/vfs/names.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define HEADER_SIZE 110u
#define MAGIC_SIZE  6u

/* The numbers of a header, eight digits each, in this order. */
enum field {
	INODE,
	MODE,
	OWNER,
	GROUP,
	LINKS,
	TIME,
	SIZE,
	MAJOR,
	MINOR,
	DEVICE_MAJOR,
	DEVICE_MINOR,
	NAME_SIZE,
	CHECK,
	FIELDS,
};

/* A file with several names that has been met. */
struct met {
	uint32_t fields[FIELDS];
	struct inode *inode; /* a reference */
	struct met *next;
};

static struct pool met_pool = POOL_INITIALIZER(struct met);

/* An archive that is being unpacked. */
struct archive {
	struct inode *root;
	initramfs_reader *read;
	void *context;
	uint64_t offset, entry; /* of the next byte, of the entry's header */
	uint32_t fields[FIELDS];
	char *name; /* a page, as is the next */
	char *contents;
	struct met *met;
	struct initramfs_error *error;
};

static int fail(struct archive *archive, int error, const char *cause)
{
	archive->error->cause = cause;
	archive->error->offset = archive->entry;
	snprintk(archive->error->name, sizeof(archive->error->name), "%s", archive->name);
	return error;
}

/* ---- the stream ---- */

static int read_exactly(struct archive *archive, void *to, uint32_t length)
{
	int count = archive->read(archive->context, to, length);

	if (count < 0)
		return fail(archive, count, "the archive cannot be read");
	archive->offset += count;
	return (uint32_t)count == length ? 0 : fail(archive, -EINVAL, "the archive ends too soon");
}

/* Skips up to the next multiple of 4. */
static int skip_padding(struct archive *archive)
{
	char padding[3];

	return read_exactly(archive, padding, -(uint32_t)archive->offset % 4);
}

static bool parse_number(const char *digits, uint32_t *number)
{
	*number = 0;
	for (unsigned i = 0; i < 8; i++) {
		char digit = digits[i] | 0x20;
		uint32_t value = digit >= 'a' ? digit - 'a' + 10 : digits[i] - '0';

		if (value > 15 || (digit < 'a' && value > 9))
			return false;
		*number = *number << 4 | value;
	}
	return true;
}

static int check_magic(struct archive *archive, const char *header)
{
	if (memcmp(header, "070701", MAGIC_SIZE) == 0 || memcmp(header, "070702", MAGIC_SIZE) == 0)
		return 0;
	if (memcmp(header, "\x1f\x8b", 2) == 0)
		return fail(archive, -EINVAL, "the archive is compressed with gzip; unpack it");
	if (memcmp(header, "070707", MAGIC_SIZE) == 0 || memcmp(header, "\xc7\x71", 2) == 0)
		return fail(archive, -EINVAL, "a cpio archive, but not of the format newc");
	return fail(archive, -EINVAL, "no header of a cpio archive (newc)");
}

/* Reads a header and the name after it. */
static int read_header(struct archive *archive)
{
	char header[HEADER_SIZE];

	archive->name[0] = '\0';
	archive->entry = archive->offset;
	int error = read_exactly(archive, header, sizeof(header));

	if (!error)
		error = check_magic(archive, header);
	if (error)
		return error;
	for (unsigned i = 0; i < FIELDS; i++)
		if (!parse_number(header + MAGIC_SIZE + 8 * i, &archive->fields[i]))
			return fail(archive, -EINVAL, "a number that is not hexadecimal");
	if (archive->fields[NAME_SIZE] == 0 || archive->fields[NAME_SIZE] > PATH_MAX)
		return fail(archive, -EINVAL, "a name of no length, or of more than 4096 bytes");
	memset(archive->name, 0, archive->fields[NAME_SIZE]); /* half a name ends, too */
	error = read_exactly(archive, archive->name, archive->fields[NAME_SIZE]);
	if (error)
		return error;
	if (archive->name[archive->fields[NAME_SIZE] - 1] != '\0') {
		archive->name[0] = '\0';
		return fail(archive, -EINVAL, "a name without its end");
	}
	return skip_padding(archive);
}

/* ---- files ---- */

/* Makes the missing directories above the name. */
static int make_parents(struct archive *archive)
{
	for (char *at = archive->name; *at; at++) {
		if (*at != '/' || at == archive->name)
			continue;
		*at = '\0';
		int error = vfs_make(archive->root, archive->name, S_IFDIR | 0755, 0);

		*at = '/';
		if (error && error != -EEXIST)
			return error;
	}
	return 0;
}

/* Copies the contents of an entry into a file. */
static int copy_contents(struct archive *archive, struct file *file)
{
	uint32_t left = archive->fields[SIZE];

	while (left > 0) {
		uint32_t chunk = left < PAGE_SIZE ? left : PAGE_SIZE;
		struct buffer buffer = buffer_of_kernel(archive->contents, chunk);
		int error = read_exactly(archive, archive->contents, chunk);

		if (error)
			return error;
		error = file_write(file, &buffer);
		if (error < 0 || buffer.length > 0)
			return fail(archive, error < 0 ? error : -ENOSPC,
				    "no room for the contents; more memory may help");
		left -= chunk;
	}
	return 0;
}

static struct met **find_met(struct archive *archive)
{
	struct met **at = &archive->met;

	while (*at && ((*at)->fields[INODE] != archive->fields[INODE] ||
		       (*at)->fields[MAJOR] != archive->fields[MAJOR] ||
		       (*at)->fields[MINOR] != archive->fields[MINOR]))
		at = &(*at)->next;
	return at;
}

/* Remembers a file that has more names. */
static int remember(struct archive *archive, struct inode *inode)
{
	struct met *met = pool_alloc(&met_pool);

	if (!met)
		return -ENOMEM;
	memcpy(met->fields, archive->fields, sizeof(met->fields));
	met->inode = inode_hold(inode);
	met->next = archive->met;
	archive->met = met;
	return 0;
}

static void forget_all(struct archive *archive)
{
	while (archive->met) {
		struct met *met = archive->met;

		archive->met = met->next;
		inode_put(met->inode);
		pool_free(&met_pool, met);
	}
}

/* Makes the file, or another name of one that was met. A file that had the name before is removed.
 */
static int make_regular(struct archive *archive)
{
	const uint32_t *fields = archive->fields;
	bool has_names = fields[LINKS] > 1;
	struct met *met = has_names ? *find_met(archive) : NULL;
	int error = vfs_remove(archive->root, archive->name, false);

	if (error && error != -ENOENT)
		return error;
	if (met)
		return vfs_link(archive->root, archive->name, met->inode);
	error = vfs_make(archive->root, archive->name, fields[MODE] & (S_IFMT | S_ALL),
			 fields[DEVICE_MAJOR] << 8 | fields[DEVICE_MINOR]);
	if (error || !has_names)
		return error;
	struct inode *inode;

	error = path_find(archive->root, archive->name, PATH_NAME, &inode);
	if (error)
		return error;
	error = remember(archive, inode);
	inode_put(inode);
	return error;
}

static int make_directory(struct archive *archive)
{
	int error =
	    vfs_make(archive->root, archive->name, S_IFDIR | (archive->fields[MODE] & S_ALL), 0);

	return error == -EEXIST ? 0 : error;
}

static int make_link(struct archive *archive)
{
	uint32_t length = archive->fields[SIZE];

	if (length == 0 || length >= PATH_MAX)
		return fail(archive, -EINVAL, "a symbolic link to nowhere, or too far");
	int error = read_exactly(archive, archive->contents, length);

	if (error)
		return error;
	archive->contents[length] = '\0';
	error = vfs_remove(archive->root, archive->name, false);
	if (error && error != -ENOENT)
		return error;
	return vfs_symlink(archive->root, archive->name, archive->contents);
}

/* Fills in what the header tells, and the contents. */
static int complete(struct archive *archive)
{
	const uint32_t *fields = archive->fields;
	struct inode *inode;
	struct file *file;
	int error = path_find(archive->root, archive->name, PATH_NAME, &inode);

	if (error)
		return error;
	if (inode_is(inode, S_IFREG) && fields[SIZE] > 0) {
		error = vfs_truncate(inode, 0);
		if (!error)
			error = vfs_open_inode(inode, O_WRONLY, &file);
		if (!error) {
			error = copy_contents(archive, file);
			file_release(file);
		}
	}
	inode->mode = (inode->mode & S_IFMT) | (fields[MODE] & S_ALL);
	inode->owner = fields[OWNER];
	inode->group = fields[GROUP];
	inode->modified = inode->accessed = fields[TIME] * 1000000000ull;
	inode_put(inode);
	return error;
}

static int make(struct archive *archive)
{
	switch (archive->fields[MODE] & S_IFMT) {
	case S_IFDIR:
		return make_directory(archive);
	case S_IFLNK:
		return make_link(archive);
	case S_IFREG:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
		return make_regular(archive);
	}
	return fail(archive, -EINVAL, "a file of unknown type");
}

static int unpack_entry(struct archive *archive)
{
	bool has_contents = archive->fields[SIZE] > 0;
	uint32_t type = archive->fields[MODE] & S_IFMT;

	if (has_contents && type != S_IFREG && type != S_IFLNK)
		return fail(archive, -EINVAL, "contents where there can be none");
	int error = make_parents(archive);

	if (!error)
		error = make(archive);
	if (!error)
		error = complete(archive);
	if (!error)
		error = skip_padding(archive);
	if (error && !archive->error->cause)
		return fail(archive, error, errno_name(-error));
	return error;
}

static int unpack_all(struct archive *archive, uint32_t *entries)
{
	for (*entries = 0;; ++*entries) {
		int error = read_header(archive);

		if (error)
			return error;
		if (strcmp(archive->name, "TRAILER!!!") == 0)
			return 0;
		error = unpack_entry(archive);
		if (error)
			return error;
	}
}

int initramfs_unpack(struct inode *root, initramfs_reader *read, void *context, uint32_t *entries,
		     struct initramfs_error *error)
{
	struct archive archive = { .root = root, .read = read, .context = context };

	error->cause = NULL;
	archive.error = error;
	archive.name = path_page();
	archive.contents = path_page();
	int result = -ENOMEM;

	if (archive.name && archive.contents) {
		archive.name[0] = '\0';
		result = unpack_all(&archive, entries);
	}
	if (result && !error->cause)
		*error = (struct initramfs_error){ .cause = "no memory" };
	forget_all(&archive);
	path_page_free(archive.name);
	path_page_free(archive.contents);
	return result;
}
