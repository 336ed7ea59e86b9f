/*
 * Types of file systems, and mounting them. A type registers itself at start-up; each mount of
 * it is known by its root inode.
 *
 * Functions return 0 or a negated errno, and may sleep.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct inode;

/* The options of a mount: those that mount(2) passes as flags, and the others as text. */
struct mount_options {
	bool read_only;
	bool no_access_time;	      /* reading does not change a file's time of access */
	bool synchronous;	      /* each write is as with O_SYNC, and as below: */
	bool synchronous_directories; /* each change of a name is safe when it returns */
	const char *text; /* "data=ordered,barrier=0": what only the file system knows */
};

/* The results of statfs. */
struct filesystem_usage {
	uint32_t type;	     /* Linux's magic number */
	uint32_t block_size; /* bytes */
	uint64_t blocks, free, available;
	uint64_t inodes, free_inodes;
};

struct filesystem {
	const char *type; /* "ext4" */
	bool needs_device;
	/* Mounts what is on a device (an inode of type S_IFBLK; NULL: none is needed). *root gets a
	 * reference, the mount's. -EINVAL for an option that it does not know, which it names on
	 * the console. */
	int (*mount)(const struct filesystem *type, struct inode *device,
		     const struct mount_options *options, struct inode **root);
	/* Changes the options; those that the text does not name stay. NULL: it has none but
	 * read_only, which the VFS keeps. */
	int (*remount)(struct inode *root, const struct mount_options *options);
	void (*statfs)(struct inode *root, struct filesystem_usage *usage);
	/* Makes everything that was written safe. Errors of write-back since the first *seen are
	 * told, too (seen NULL: to nobody). NULL: it is in memory. */
	int (*sync)(struct inode *root, uint32_t *seen);
	/* It can only be read, although its options say otherwise: it is damaged, or could not be
	 * written at a remount. NULL: never. Does not sleep. */
	bool (*is_read_only)(const struct inode *root);
	/* The end: the mount's reference to the root goes with it. -EBUSY while any other inode of
	 * it, or the root by somebody else, is in use; and nothing has happened. Else it is gone,
	 * whatever this returns. */
	int (*unmount)(struct inode *root);
	struct filesystem *next;
};

/* Adds a type; the structure must live as long as the kernel. */
void filesystem_register(struct filesystem *type);

/* Every type: the first for NULL, NULL after the last. */
const struct filesystem *filesystem_next(const struct filesystem *type);

/* The type of this name, or NULL. */
const struct filesystem *filesystem_find(const char *type);

/*
 * The next option of a text like "size=4m,mode=755": copies it into name, cut at "=", and points
 * *value to what follows, or to "". Moves *text on. False after the last. size: of name, at least
 * 2; what does not fit is cut.
 */
bool mount_option_next(const char **text, char *name, uint32_t size, const char **value);
