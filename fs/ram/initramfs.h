/* The files that the root begins with: a cpio archive of the format "newc", read as a stream. */
#pragma once

#include <stdint.h>

#include "fs/vfs/inode.h"

/* Gives the next bytes of an archive, up to length. Returns how many: fewer at its end only, or a
 * negated errno. */
typedef int initramfs_reader(void *context, void *buffer, uint32_t length);

/* What went wrong, and where. */
struct initramfs_error {
	const char *cause;
	uint64_t offset; /* in the archive: of the entry */
	char name[64];	 /* of the entry, cut; empty when it has none yet */
};

/*
 * Makes the archive's files below root. Directories that are missing on the way are made (mode
 * 0755). Returns 0 and how many entries there were in *entries; or, with *error filled in, -EINVAL
 * if it is not such an archive, or the errno of a file that could not be made. Files that were made
 * before remain.
 */
int initramfs_unpack(struct inode *root, initramfs_reader *read, void *context, uint32_t *entries,
		     struct initramfs_error *error);
