/* The storage lab's commands, and what they share. */
#pragma once

#include <stdint.h>

#include "fs/ext/ext.h"

/* The device of this name, or NULL, which is said. */
struct block_device *lab_device(const char *name);

/* The file system on the device of this name, mounted at the first use. NULL when that fails, which
 * is said. */
struct ext_fs *lab_mount(const char *name);

/* Looks up a path on a drive. Returns 0, or a negative errno, which is said. */
int lab_lookup(const char *drive, const char *path, struct ext_inode *inode);

/* The number in this argument. Returns false, and says so, when it is none. */
bool lab_number(const char *text, uint64_t *value);
