/*
 * Files of one mount by path, for programs that change it: as a kernel does, they have one copy of
 * each inode in use.
 *
 * Functions return 0 or a negative errno; -ENOSYS for what the library does not have yet. Paths
 * begin at the root; symbolic links are not followed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/ext/ext.h"

/* The mount that all of this is about. */
extern struct ext_fs *fs;

/* Mounts the disk for writing. */
int files_mount(const struct ext_options *options);

/* Releases what nobody uses any more, and unmounts. Files that are held open are closed first. */
int files_unmount(void);

/* The power goes: forgets the inodes. The mount and the cache are left as they are. */
void files_forget(void);

/* The one copy of an inode; valid until its last link goes, or files_unmount. */
int files_find(const char *path, struct ext_inode **out);

/*
 * One operation, as a line of text:
 *
 *	create PATH		mkdir PATH		mknod PATH
 *	write PATH OFFSET LENGTH SEED			append PATH LENGTH SEED
 *	truncate PATH SIZE	punch PATH OFFSET LENGTH
 *	allocate PATH OFFSET LENGTH [keep]		chmod PATH OCTAL
 *	link OLD NEW		symlink TARGET PATH	unlink PATH	rmdir PATH
 *	rename OLD NEW		exchange ONE OTHER
 *	setattr PATH NAME LENGTH SEED [create / replace]
 *	removeattr PATH NAME
 *	open PATH		close			(all that are open)
 *	fsync PATH		fdatasync PATH		sync
 *
 * Returns its result (write and append: the bytes), or -EINVAL for a line that is none of these.
 */
int64_t files_operate(const char *line);

/* What "write" writes: eight bytes at each multiple of 8 in the file, {offset / 8 + 1, seed}, so
 * that a test knows where a byte is from. Fills buffer as the file's bytes [offset, + length). */
void files_pattern(uint8_t *buffer, uint64_t offset, uint32_t length, uint32_t seed);

/* Whether a line begins with the name of an operation. */
bool files_knows(const char *line);
