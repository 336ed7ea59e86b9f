/* Names of inodes that are in memory, to be found without their directory. Nothing here sleeps. */
#pragma once

#include <stdint.h>

#include "fs/vfs/inode.h"

#define KEPT_NAME 31u /* bytes: of longer names there is no text */

/* A part of an inode. Zeroed, it is ready for use. */
struct kept_name {
	struct kept_name *chain; /* same hash */
	uint32_t filesystem;
	uint32_t parent; /* the directory's number; 0: there is none */
	uint32_t hash;
	uint8_t length;
	char text[KEPT_NAME];
};

/* The inode that has the name; NULL: that is not known. */
struct kept_name *kept_name_find(const struct inode *directory, const struct name *name);

/* Whether that is the name, and the directory, by which an inode was found. */
bool kept_name_is(const struct kept_name *kept, const struct inode *directory,
		  const struct name *name);

/* The inode has been found, or made, by this name; and its name is about to change. */
void kept_name_note(struct kept_name *kept, const struct inode *directory, const struct name *name);
void kept_name_set(struct kept_name *kept, const struct inode *directory, const struct name *name);
void kept_name_forget(struct kept_name *kept);
