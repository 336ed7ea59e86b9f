/*
 * Inodes, to which the names in directories refer. Every file system has its own kind, with the
 * same operations.
 *
 * Functions return 0 (or a count) or a negated errno.
 */
#pragma once

#include "fs/vfs/wall_time.h"
#include "kernel/abi/limits.h"
#include "kernel/abi/stat.h"
#include "kernel/lib/string.h"
#include "kernel/task/claim.h"

struct file_lock;
struct file_ops;
struct inode;
struct pipe;

/* A part of a path, which continues after it: there is no NUL. */
struct name {
	const char *text;
	uint32_t length; /* at most NAME_MAX */
	uint32_t hash;
};

struct directory_entry {
	struct name name;
	uint32_t number;
	uint32_t mode; /* the type at least */
	uint64_t next; /* the position after this entry */
};

/* Gets one entry. False: the entry was not taken, and no more are wanted. */
typedef bool directory_visitor(void *context, const struct directory_entry *entry);

/*
 * The operations of a file system. A call whose operation is NULL fails (mostly with EPERM). All
 * names are those of directory entries: never "", "." or "..", except that lookup must know "..".
 *
 * The caller has checked the types, that what is to be made is not there, and that what is to be
 * removed is; it holds references to all the inodes it gives. Nothing is locked: where operations
 * sleep, those may not be true any more. Such a file system checks the names again, under its own
 * lock; if they have changed it changes nothing and says -ESTALE, and the caller begins again.
 *
 * References after an error: what fails has put whatever it took itself, and has not touched where
 * its result goes. So its caller puts what the caller has taken, and nothing else. All functions of
 * fs that give a reference keep to this rule, the file systems' mount among them.
 */
struct inode_ops {
	/* Finds a name in a directory. *found gets a reference. -ENOENT. */
	int (*lookup)(struct inode *directory, const struct name *name, struct inode **found);

	/* Makes an inode of any type but a symbolic link. *made gets a reference. */
	int (*create)(struct inode *directory, const struct name *name, uint32_t mode,
		      uint32_t device, struct inode **made);
	int (*symlink)(struct inode *directory, const struct name *name, const char *target);
	int (*link)(struct inode *directory, const struct name *name, struct inode *inode);

	/* Removes a name; if it is a directory's, that must be empty (-ENOTEMPTY). The inode is
	 * freed with its last name and its last reference. */
	int (*remove)(struct inode *directory, const struct name *name, struct inode *inode);

	/* Moves a name of inode; `replaced`, which may be NULL, had the new name before. */
	int (*rename)(struct inode *directory, const struct name *name, struct inode *inode,
		      struct inode *new_directory, const struct name *new_name,
		      struct inode *replaced);

	/* The two inodes change names. It is there wherever rename is. */
	int (*exchange)(struct inode *directory, const struct name *name, struct inode *inode,
			struct inode *new_directory, const struct name *new_name,
			struct inode *other);

	/* Shows the entries from a position on, "." and ".." among them, and moves the position
	 * after those that were taken. Position 0 is the first; the file system defines the others,
	 * which remain valid while names are added and removed. */
	int (*iterate)(struct inode *directory, uint64_t *position, directory_visitor *visit,
		       void *context);

	/* Copies a symbolic link's target, cut to size, without a NUL. Returns its length. */
	int (*read_link)(struct inode *inode, char *target, uint32_t size);

	/* Of a symbolic link that leads to an inode, wherever that is, and not to a path. Gives
	 * references to it, and to its directory, or NULL where that is not known. NULL: any other
	 * symbolic link. */
	int (*jump)(struct inode *inode, struct inode **to, struct inode **directory);

	/* Makes a regular file shorter or longer; new bytes are zero. */
	int (*truncate)(struct inode *inode, uint64_t size);

	/* fallocate, with Linux's numbers. NULL: nothing is reserved. */
	int (*allocate)(struct inode *inode, uint32_t mode, uint64_t offset, uint64_t length);

	/* Moves the offset to the next byte that is data, or (hole) is in a hole or the file's end;
	 * -ENXIO. NULL: all is data. */
	int (*seek)(struct inode *inode, bool hole, uint64_t *offset);

	/* Extended attributes; NULL: -EOPNOTSUPP. With a size of 0 the first two only say how many
	 * bytes they would copy: a value, or names that each end with a NUL; -ERANGE if it is too
	 * small. Setting NULL removes; the flags are kernel/abi/file.h's XATTR_. */
	int (*get_attribute)(struct inode *inode, const char *name, void *value, uint32_t size);
	int (*list_attributes)(struct inode *inode, char *names, uint32_t size);
	int (*set_attribute)(struct inode *inode, const char *name, const void *value,
			     uint32_t size, uint32_t flags);

	/* Called after mode, owner or times in *inode were changed; NULL if nothing more is to be
	 * done. */
	int (*changed)(struct inode *inode);

	/* The last reference is gone. */
	void (*forget)(struct inode *inode);
};

struct inode {
	const struct inode_ops *ops;
	const struct file_ops *file_ops; /* of its open files; a device's come from its number */
	uint32_t references;
	uint32_t filesystem; /* a number for each mounted file system */
	uint32_t block_size; /* bytes; 0: a page's */
	uint32_t number;
	uint32_t mode;
	uint32_t links; /* names; 0: it goes with the last reference */
	uint32_t owner, group;
	uint32_t device; /* of a device: major << 8 | minor */
	uint64_t size;
	uint64_t blocks;		     /* in use, of 512 bytes */
	int64_t accessed, modified, changed; /* ns since 1970, modulo 2^64: from 1901 to 2446 */
	struct inode *mounted;		     /* the root of what is mounted here, or NULL */
	struct inode *covers;		     /* of a mounted root: the directory it hides */
	uint32_t writers, programs;	     /* of a regular file: open to write, open to be run */
	bool has_fixed_mode;		     /* no chmod */
	bool is_immutable, is_append_only;   /* as chattr's flags i and a say, to root, too */
	struct pipe *pipe;		     /* of a named pipe that is open, or NULL */
	struct file_lock *locks;	     /* that are set: fs/vfs/locks.h */
	struct claim appending;		     /* of the task that writes at the end (O_APPEND) */
};

static inline bool inode_is(const struct inode *inode, uint32_t type)
{
	return (inode->mode & S_IFMT) == type;
}

static inline struct inode *inode_hold(struct inode *inode)
{
	inode->references++;
	return inode;
}

/* Gives a reference back. NULL is allowed. */
static inline void inode_put(struct inode *inode)
{
	if (inode && --inode->references == 0)
		inode->ops->forget(inode);
}

/* Is it this name? strncmp stops at the text's NUL, and then the text must be over, too. */
static inline bool name_is(const struct name *name, const char *text)
{
	return *name->text == *text && strncmp(name->text, text, name->length) == 0 &&
	       text[name->length] == '\0';
}

/* Is it an entry's, and neither the directory itself ("", ".") nor the one above it? */
static inline bool name_is_entry(const struct name *name)
{
	return name->length > 0 && !name_is(name, ".") && !name_is(name, "..");
}

/* The hash of a name with one letter more. The factor 31 spreads similar names; it only has to be
 * quick to compare. */
static inline uint32_t name_hash(uint32_t hash, char letter)
{
	return hash * 31 + (uint8_t)letter;
}

/* Makes a name of a text that lives as long; its length must be in the range. */
struct name name_of(const char *text, uint32_t length);

/* Fills in a new inode: one reference, one name, and the time now. */
void inode_initialize(struct inode *inode, uint32_t mode);

/* A number for a new file system. */
uint32_t filesystem_number(void);

/* The contents, or (false) only the inode itself, changed now. */
void inode_touch(struct inode *inode, bool contents);
