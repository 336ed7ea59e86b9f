/* An archive that is being unpacked, for whoever adds to what can be unpacked at start-up. */
#pragma once

#include <stdint.h>

#include "fs/inode.h"

struct initramfs_error;

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

/* An archive that is being unpacked. */
struct archive {
	struct inode *root;
	int (*read)(void *context, void *buffer, uint32_t length);
	void *context;
	uint64_t offset, entry; /* of the next byte, of the entry's header */
	uint32_t fields[FIELDS];
	char *name; /* a page, as is the next */
	char *contents;
	void *links; /* the extension's own */
	struct initramfs_error *error;
};

/* Makes what needs links: entries with several names, symbolic links. */
struct initramfs_extension {
	/* Before each entry but a directory's. Returns 1 when it has made the entry, 0 when that
	 * is still to be done, or a negated errno. */
	int (*make)(struct archive *archive);
	/* After the last entry, or an error. */
	void (*end)(struct archive *archive);
};

void initramfs_extend(const struct initramfs_extension *extension);

/* Fills in the error, and returns its number. */
int archive_fail(struct archive *archive, int error, const char *cause);

/* Reads so many bytes. Returns 0, or fails. */
int archive_read(struct archive *archive, void *to, uint32_t length);
