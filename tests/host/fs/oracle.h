/* The host's own file system, in a directory of its own: what the same operations do there. */
#pragma once

#include <stdint.h>

/* Operations on one or two paths. */
enum operation {
	MAKE,	   /* open with O_CREAT */
	MAKE_NEW,  /* O_CREAT | O_EXCL */
	READ,	   /* O_RDONLY */
	WRITE,	   /* O_WRONLY | O_TRUNC, and the text of the first path's length */
	ENTER,	   /* O_DIRECTORY */
	NO_FOLLOW, /* O_NOFOLLOW */
	MAKE_DIRECTORY,
	REMOVE_DIRECTORY,
	REMOVE,
	MAKE_LINK,    /* of the first path's file, named by the second */
	MAKE_SYMLINK, /* with the first text, named by the second path */
	RENAME,
	RENAME_NEW, /* where nothing has the new name */
	EXCHANGE,   /* the two change names */
	STAT,
	LSTAT,
	READ_LINK,
	OPERATIONS,
};

/* What an operation gives: 0 or a negated errno; and what can be seen. */
struct outcome {
	int error;
	uint32_t type;	/* mode >> 12 */
	uint32_t links; /* 0 for directories: file systems differ there */
	uint64_t size;	/* 0 for directories */
	char text[300];
};

/* Makes an empty directory in the current one, so deep that four times ".." leads to nobody else,
 * and enters it. Returns its path, without links. Exits with a message when that cannot be done. */
const char *oracle_begin(void);

struct outcome oracle_do(enum operation operation, const char *first, const char *second);

/* Removes it. */
void oracle_end(void);

/* A pipe of the host, of 64 KiB, that never waits: 0, or a negated errno where there is none. */
int oracle_pipe_begin(void);
void oracle_pipe_end(void);

/* Moves this many bytes, no matter which: how many were moved, or a negated errno. */
int oracle_pipe_write(uint32_t length);
int oracle_pipe_read(uint32_t length);

/* How much is in it, and whether poll says that it can be written to. */
uint32_t oracle_pipe_filled(void);
int oracle_pipe_is_writable(void);
