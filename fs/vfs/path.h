/* From a path to an inode: across symbolic links and mount points. */
#pragma once

#include "fs/vfs/inode.h"

/* What to do when the last name of a path is a symbolic link's. */
enum path_end {
	PATH_FOLLOW,   /* go where it leads */
	PATH_STAY,     /* take the link itself, unless slashes follow it */
	PATH_NAME,     /* take the link itself: the name is what matters */
	PATH_FILE = 4, /* added to these: a file may be made, so slashes after its name are -EISDIR
			  before the name is looked at */
};

struct path {
	struct inode *directory; /* where the last name is looked up; a reference */
	struct inode *inode;	 /* what it stands for, a reference; NULL: there is nothing */
	struct name last;	 /* "", "." or ".." where the path ends in no directory entry */
	bool slashes;		 /* after the last name: it must be a directory's */

	/* The walk's own. */
	const char *rest; /* after the last name */
	char *expanded;	  /* with links: a page that `last` and `rest` point into, or NULL */
	unsigned links;	  /* that were followed */
};

/*
 * Walks along a path, from the directory `start` on, or from the root. Where only the last name is
 * not there, that is not an error. After success, call path_release; `text` must stay valid until
 * then. Else: -ENOENT, -ENOTDIR, -ELOOP (more than 40 symbolic links), -ENAMETOOLONG (a name, or
 * what links make of the path), -ENOMEM, or the file system's error.
 */
int path_resolve(struct path *path, struct inode *start, const char *text, enum path_end end);

void path_release(struct path *path);

/* Walks along a path, and does something with what it has led to; again, as long as that is
 * -ESTALE: the names are others meanwhile. Returns the error of the walk, or what `action` does. */
typedef int path_action(struct path *path, void *context);
int path_do(struct inode *start, const char *text, enum path_end end, path_action *action,
	    void *context);

/* Do slashes follow the name of a file that is not a directory? Usually that is -ENOTDIR. */
bool path_is_wrong_kind(const struct path *path);

/* Is the last name an entry of the directory, which can be made or removed? */
bool path_is_entry(const struct path *path);

/* Is what is there in a directory where everybody may make names and only owners remove them
 * (S_ISVTX), and belongs neither to the caller, user 0, nor to the owner of the directory? As on
 * Debian's Linux, a symbolic link like that is not followed at the end of a path: -EACCES. */
bool path_is_planted(const struct path *path);

/* The inode at a path, with a reference; -ENOENT when it is not there. */
int path_find(struct inode *start, const char *text, enum path_end end, struct inode **found);

/* Where paths begin; set once. */
void path_set_root(struct inode *root);
struct inode *path_root(void);

/* The directory above this one, across mount points, with a reference. */
int path_parent(struct inode *directory, struct inode **parent);
