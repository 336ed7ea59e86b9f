/* What only the walk of fs/linux/path.c can do, which stands in for fs/path.c: it crosses mount
 * points and follows symbolic links. */
#pragma once

#include "fs/path.h"

/* The directory above this one, across mount points, with a reference. */
int path_parent(struct inode *directory, struct inode **parent);
