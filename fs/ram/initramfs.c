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
 * Directories and regular files are made; others are read and left out. The archive is read as a
 * stream, a page at a time, and nothing in it is trusted: digits, lengths and the NUL are checked
 * before they are used. What is wrong is said with its place, and what was made before stays.
 *
 * Called once, at start-up, when the root is there.
 */
#include "fs/ram/initramfs.h"

#include <stddef.h>

#include "fs/path.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define MAGIC	    "070701"
#define MAGIC_SIZE  6u
#define NUMBERS	    13u
#define HEADER_SIZE (MAGIC_SIZE + 8 * NUMBERS)

/* Which of the header's numbers are wanted here. */
enum number {
	MODE = 1,
	SIZE = 6,
	NAME_SIZE = 11,
};

/* An archive that is being unpacked. */
struct archive {
	struct inode *root;
	initramfs_reader *read;
	void *context;
	uint64_t offset, entry; /* of the next byte, of the entry's header */
	uint32_t numbers[NUMBERS];
	char *name; /* a page, as is the next */
	char *contents;
	struct initramfs_error *error;
};

/* Notes what is wrong, and with which entry. Returns the error. */
static int fail(struct archive *archive, int error, const char *cause)
{
	archive->error->cause = cause;
	archive->error->offset = archive->entry;
	snprintk(archive->error->name, sizeof(archive->error->name), "%s", archive->name);
	return error;
}

/* Reads so many bytes; fewer are the archive's end, which is an error everywhere here. */
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

/* Reads a header, and the name that follows it. */
static int read_header(struct archive *archive)
{
	char header[HEADER_SIZE];

	archive->name[0] = '\0';
	archive->entry = archive->offset;
	int error = read_exactly(archive, header, sizeof(header));

	if (error)
		return error;
	if (memcmp(header, MAGIC, MAGIC_SIZE) != 0)
		return fail(archive, -EINVAL, "no header of a cpio archive (newc)");
	for (unsigned i = 0; i < NUMBERS; i++)
		if (!parse_number(header + MAGIC_SIZE + 8 * i, &archive->numbers[i]))
			return fail(archive, -EINVAL, "a number that is not hexadecimal");
	uint32_t size = archive->numbers[NAME_SIZE];

	if (size == 0 || size > PATH_MAX)
		return fail(archive, -EINVAL, "a name of no length, or of more than 4096 bytes");
	memset(archive->name, 0, size); /* half a name has an end, too */
	error = read_exactly(archive, archive->name, size);
	if (error)
		return error;
	if (archive->name[size - 1] != '\0') {
		archive->name[0] = '\0';
		return fail(archive, -EINVAL, "a name without its end");
	}
	return skip_padding(archive);
}

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

/* Reads the contents of an entry, and writes them to a file; NULL: nowhere. */
static int copy_contents(struct archive *archive, struct file *file)
{
	uint32_t left = archive->numbers[SIZE];

	while (left > 0) {
		uint32_t chunk = left < PAGE_SIZE ? left : PAGE_SIZE;
		struct buffer buffer = buffer_of_kernel(archive->contents, chunk);
		int error = read_exactly(archive, archive->contents, chunk);

		if (error)
			return error;
		if (file && file_write(file, &buffer) != (int)chunk)
			return fail(archive, -ENOSPC,
				    "no room for the contents; more memory may help");
		left -= chunk;
	}
	return 0;
}

/* A file that was there already becomes empty first: the later entry counts. */
static int make_file(struct archive *archive, uint32_t mode)
{
	struct file *file;
	int error =
	    vfs_open(archive->root, archive->name, O_WRONLY | O_CREAT | O_TRUNC, mode, &file);

	if (error)
		return error;
	error = copy_contents(archive, file);
	file_release(file);
	return error;
}

/* A directory may be there, made for a file in it or by the kernel itself. */
static int unpack_entry(struct archive *archive)
{
	uint32_t type = archive->numbers[MODE] & S_IFMT, mode = archive->numbers[MODE] & S_ALL;
	int error = type ? make_parents(archive) : fail(archive, -EINVAL, "a file of unknown type");

	if (!error && type == S_IFREG)
		error = make_file(archive, mode);
	else if (!error)
		error = copy_contents(archive, NULL);
	if (!error && type == S_IFDIR)
		error = vfs_make(archive->root, archive->name, S_IFDIR | mode, 0);
	if (!error || error == -EEXIST)
		error = skip_padding(archive);
	if (error && !archive->error->cause)
		return fail(archive, error, errno_name(-error));
	return error;
}

/* Counts the entries that were unpacked, up to the trailer. */
static int unpack_all(struct archive *archive, uint32_t *entries)
{
	for (*entries = 0;; ++*entries) {
		int error = read_header(archive);

		if (error || strcmp(archive->name, "TRAILER!!!") == 0)
			return error;
		error = unpack_entry(archive);
		if (error)
			return error;
	}
}

/* Two pages are needed meanwhile: for a name, and for a piece of the contents. */
int initramfs_unpack(struct inode *root, initramfs_reader *read, void *context, uint32_t *entries,
		     struct initramfs_error *error)
{
	struct archive archive = { .root = root, .read = read, .context = context, .error = error };
	int result = -ENOMEM;

	*error = (struct initramfs_error){ .cause = NULL };
	archive.name = path_page();
	archive.contents = path_page();
	if (archive.name && archive.contents)
		result = unpack_all(&archive, entries);
	else
		error->cause = "no memory";
	path_page_free(archive.name);
	path_page_free(archive.contents);
	return result;
}
