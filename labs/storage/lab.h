/* The storage lab's commands, and what they share. */
#pragma once

#include <stdint.h>

#include "fs/ext/ext.h"

/* The device of this name, or NULL, with a message. */
struct block_device *lab_device(const char *name);

/* The file system on the device of this name, mounted at the first use. NULL, with a message, when
 * that fails. */
struct ext_fs *lab_mount(const char *name);

/* Looks up a path on a drive. Returns 0, or a negative errno, with a message. */
int lab_lookup(const char *drive, const char *path, struct ext_inode *inode);

/* The number in this argument. Returns false, with a message, if it is not a number. */
bool lab_number(const char *text, uint64_t *value);
