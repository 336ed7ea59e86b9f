/*
 * Unpacking a cpio archive of the format "newc", Linux's initramfs (Documentation/driver-api/
 * early-userspace/buffer-format.rst in Linux's source). It is one entry after the other:
 *
 *	"070701" + 13 numbers of 8 hexadecimal digits	110 bytes, the header
 *	"bin/sh" NUL					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	the contents					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	... until an entry with the name TRAILER!!!
 *
 * The archive is read as a stream, a page at a time, and nothing in it is trusted: lengths, digits
 * and the NUL are checked before they are used, and what is wrong is said with its place. Files
 * that were made before the error stay.
 *
 * Called once, at start-up, when the root and /dev are there.
 */
#include "fs/ram/initramfs.h"

#include <stddef.h>

#include "fs/path.h"
#include "fs/ram/initramfs_internal.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define HEADER_SIZE 110u
#define MAGIC_SIZE  6u

static const struct initramfs_extension *extension;

void initramfs_extend(const struct initramfs_extension *wanted)
{
	extension = wanted;
}

int archive_fail(struct archive *archive, int error, const char *cause)
{
	archive->error->cause = cause;
	archive->error->offset = archive->entry;
	snprintk(archive->error->name, sizeof(archive->error->name), "%s", archive->name);
	return error;
}

/* ---- the stream ---- */

int archive_read(struct archive *archive, void *to, uint32_t length)
{
	int count = archive->read(archive->context, to, length);

	if (count < 0)
		return archive_fail(archive, count, "the archive cannot be read");
	archive->offset += count;
	return (uint32_t)count == length
		   ? 0
		   : archive_fail(archive, -EINVAL, "the archive ends too soon");
}

/* Skips up to the next multiple of 4. */
static int skip_padding(struct archive *archive)
{
	char padding[3];

	return archive_read(archive, padding, -(uint32_t)archive->offset % 4);
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
		return archive_fail(archive, -EINVAL,
				    "the archive is compressed with gzip; unpack it");
	if (memcmp(header, "070707", MAGIC_SIZE) == 0 || memcmp(header, "\xc7\x71", 2) == 0)
		return archive_fail(archive, -EINVAL, "a cpio archive, but not of the format newc");
	return archive_fail(archive, -EINVAL, "no header of a cpio archive (newc)");
}

/* Reads a header and the name behind it. */
static int read_header(struct archive *archive)
{
	char header[HEADER_SIZE];

	archive->name[0] = '\0';
	archive->entry = archive->offset;
	int error = archive_read(archive, header, sizeof(header));

	if (!error)
		error = check_magic(archive, header);
	if (error)
		return error;
	for (unsigned i = 0; i < FIELDS; i++)
		if (!parse_number(header + MAGIC_SIZE + 8 * i, &archive->fields[i]))
			return archive_fail(archive, -EINVAL, "a number that is not hexadecimal");
	if (archive->fields[NAME_SIZE] == 0 || archive->fields[NAME_SIZE] > PATH_MAX)
		return archive_fail(archive, -EINVAL,
				    "a name of no length, or of more than 4096 bytes");
	memset(archive->name, 0, archive->fields[NAME_SIZE]); /* half a name ends, too */
	error = archive_read(archive, archive->name, archive->fields[NAME_SIZE]);
	if (error)
		return error;
	if (archive->name[archive->fields[NAME_SIZE] - 1] != '\0') {
		archive->name[0] = '\0';
		return archive_fail(archive, -EINVAL, "a name without its end");
	}
	return skip_padding(archive);
}

/* ---- files ---- */

/* Makes the directories above the name that are not there. */
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
		int error = archive_read(archive, archive->contents, chunk);

		if (error)
			return error;
		error = file_write(file, &buffer);
		if (error < 0 || buffer.length > 0)
			return archive_fail(archive, error < 0 ? error : -ENOSPC,
					    "no room for the contents; more memory may help");
		left -= chunk;
	}
	return 0;
}

/* Makes the file, unless it is there. */
static int make(struct archive *archive)
{
	const uint32_t *fields = archive->fields;
	uint32_t type = fields[MODE] & S_IFMT;
	int error = extension && type != S_IFDIR ? extension->make(archive) : 0;

	if (error)
		return error < 0 ? error : 0;
	if (type != S_IFDIR && type != S_IFREG && type != S_IFCHR && type != S_IFBLK &&
	    type != S_IFIFO)
		return archive_fail(archive, -EINVAL, "a file of unknown type");
	error = vfs_make(archive->root, archive->name, type | (fields[MODE] & S_ALL),
			 fields[DEVICE_MAJOR] << 8 | fields[DEVICE_MINOR]);
	return error == -EEXIST ? 0 : error;
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
			error = file_open_inode(inode, O_WRONLY, &file);
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

/* Symbolic links are left out, unless somebody knows how to make them. */
static int skip_link(struct archive *archive)
{
	uint32_t length = archive->fields[SIZE];
	int error =
	    archive_read(archive, archive->contents, length < PAGE_SIZE ? length : PAGE_SIZE);

	return error ? error : skip_padding(archive);
}

static int unpack_entry(struct archive *archive)
{
	bool has_contents = archive->fields[SIZE] > 0;
	uint32_t type = archive->fields[MODE] & S_IFMT;

	if (has_contents && type != S_IFREG && type != S_IFLNK)
		return archive_fail(archive, -EINVAL, "contents where there can be none");
	if (type == S_IFLNK && !extension)
		return skip_link(archive);
	int error = make_parents(archive);

	if (!error)
		error = make(archive);
	if (!error)
		error = complete(archive);
	if (!error)
		error = skip_padding(archive);
	if (error && !archive->error->cause)
		return archive_fail(archive, error, errno_name(-error));
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
	if (extension)
		extension->end(&archive);
	path_page_free(archive.name);
	path_page_free(archive.contents);
	return result;
}
