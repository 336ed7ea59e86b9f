/* The files that the host provides: a cpio archive, read as a stream. */
#pragma once

#include <stdint.h>

#include "kernel/abi/limits.h"

/* What a header says, in its order. */
struct cpio_header {
	uint32_t inode, mode, owner, group, links, time, size;
	uint32_t major, minor;		     /* of the disk that it was on */
	uint32_t device_major, device_minor; /* of a device */
	uint32_t name_size, check;
};

#define CPIO_NUMBERS (sizeof(struct cpio_header) / sizeof(uint32_t))

/* An archive, and the entry that was read last. Offsets are in bytes from the beginning. */
struct cpio {
	uint32_t entry;	       /* the offset of its header */
	uint32_t offset, left; /* what comes next, and how much there is */
	struct cpio_header header;
	char name[PATH_MAX];
};

/* Takes an entry, whose contents are all there. Returns what is wrong, or NULL. */
typedef const char *cpio_taker(struct cpio *archive);

/* Gives all entries of the host's archive to `take`, and prints how many there were, or what is
 * wrong, and where: then the files before it are kept. */
void cpio_unpack(cpio_taker *take);

/* The next `length` bytes of an entry's contents. Returns what is wrong, or NULL. */
const char *cpio_read(struct cpio *archive, void *to, uint32_t length);
