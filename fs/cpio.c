/*
 * Reads the archive of files that the host provides, for whichever root there is.
 *
 * It is a cpio archive of the format "newc", like Linux's initramfs (Documentation/driver-api/
 * early-userspace/buffer-format.rst in Linux's source), and comes through QEMU's fw_cfg. It is one
 * entry after the other:
 *
 *	"070701" + 13 numbers of 8 hexadecimal digits	110 bytes, the header
 *	"bin/sh" NUL					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	the contents					as many bytes as the header says
 *	zeros						up to a multiple of 4
 *	... until an entry with the name TRAILER!!!
 *
 * It is read piece by piece, so it need not fit into memory twice. Nothing in it is trusted:
 * digits, lengths and the NUL are checked before they are used.
 */
#include "fs/cpio.h"

#include "drivers/qemu/fw_cfg.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"

#define MAGIC	 "070701"
#define TOO_SOON "the archive ends too soon"

const char *cpio_read(struct cpio *archive, void *to, uint32_t length)
{
	if (length > archive->left)
		return TOO_SOON;
	fw_cfg_next(to, length);
	archive->offset += length;
	archive->left -= length;
	return NULL;
}

/* Skips up to the next multiple of 4 from this offset on. */
static const char *skip_to(struct cpio *archive, uint32_t offset)
{
	const char *wrong = NULL;
	char byte;

	while (archive->offset != ((offset + 3) & -4u) && !wrong)
		wrong = cpio_read(archive, &byte, sizeof(byte));
	return wrong;
}

/* Checks the header's text, and reads the name after it. */
static const char *read_entry_name(struct cpio *archive, const char *text)
{
	uint32_t *numbers = (uint32_t *)&archive->header, size;

	if (memcmp(text, MAGIC, strlen(MAGIC)) != 0)
		return "no header of a cpio archive (newc)";
	for (unsigned i = 0; i < CPIO_NUMBERS; i++) {
		char digits[] = "0x????????";
		uint64_t number;

		memcpy(digits + 2, text + strlen(MAGIC) + 8 * i, 8);
		if (!number_parse(digits, &number))
			return "a number that is not hexadecimal";
		numbers[i] = number;
	}
	size = archive->header.name_size;
	if (size == 0 || size > PATH_MAX)
		return "a name of no length, or of more than 4096 bytes";
	const char *wrong = cpio_read(archive, archive->name, size);

	if (wrong || archive->name[size - 1] == '\0')
		return wrong ?: skip_to(archive, archive->offset);
	archive->name[size - 1] = '\0';
	return "a name without its end";
}

/* Reads a header, and the name after it. The contents are all there. */
static const char *read_header(struct cpio *archive)
{
	char text[sizeof(MAGIC) - 1 + 8 * CPIO_NUMBERS];

	archive->name[0] = '\0';
	archive->entry = archive->offset;
	const char *wrong =
	    cpio_read(archive, text, sizeof(text)) ?: read_entry_name(archive, text);

	return !wrong && archive->header.size > archive->left ? TOO_SOON : wrong;
}

/* Without files the kernel still runs: its own prompt needs none. */
void cpio_unpack(cpio_taker *take)
{
	static struct cpio archive;
	int size = fw_cfg_open("opt/org.apprentice/initramfs");
	uint32_t entries = 0;

	if (size < 0) {
		printk("files: none from the host (%s)\n", errno_name(-size));
		return;
	}
	archive = (struct cpio){ .left = size };
	const char *wrong = read_header(&archive);

	for (; !wrong && strcmp(archive.name, "TRAILER!!!") != 0; entries++) {
		uint32_t end = archive.offset + archive.header.size;

		wrong = take(&archive) ?: skip_to(&archive, end) ?: read_header(&archive);
	}
	if (wrong)
		printk("files: %s, at byte %u of the archive (entry %.64s)\n", wrong, archive.entry,
		       archive.name);
	else
		printk("files: %u from the host, %u KiB\n", entries, (uint32_t)size / 1024);
}
