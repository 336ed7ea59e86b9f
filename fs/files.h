/* A task's table of descriptors: small numbers for open files. */
#pragma once

#include "fs/file.h"
#include "mm/page_alloc.h"

#define FILES_INLINE 32u /* descriptors that need no page of their own */
#define FILES_MAX    (uint32_t)(PAGE_SIZE / sizeof(struct file *))

/* Set by setrlimit: `soft` is the limit that applies. */
struct limit {
	uint32_t soft, hard;
};

#define LIMITS	    16
#define LIMIT_FILES 7 /* descriptors; at most FILES_MAX */

struct files {
	/* A reference each, or NULL: here, or in a page. Those from count on were never used. */
	struct file **slots, *first[FILES_INLINE];
	uint32_t count;
	uint32_t close_on_exec[FILES_MAX / 32];
	/* References: the working directory, NULL: the root; the program that the task runs, or
	 * NULL. */
	struct file *directory, *program;
	uint32_t umask, personality; /* umask(2), personality(2) */
	struct limit limits[LIMITS];
};

/* An empty table, at the root directory; or a copy that shares the open files. NULL without
 * memory. */
struct files *files_create(void);
struct files *files_copy(const struct files *files);

/* Closes everything. */
void files_destroy(struct files *files);

/* Called when a descriptor is closed, before the file is released. */
void files_closing(const struct files *files, const struct file *file) OPTIONAL;

/* The open file of a descriptor, or NULL. */
static inline struct file *files_get(const struct files *files, uint32_t descriptor)
{
	return descriptor < files->count ? files->slots[descriptor] : NULL;
}

/* Gives a file the lowest free descriptor from `lowest` on, and takes over the caller's reference.
 * Returns the descriptor; -EMFILE or -ENOMEM, and the reference is still the caller's. No file
 * (NULL): says which descriptor would be next, which stays free. */
int files_add(struct files *files, struct file *file, uint32_t lowest, bool close_on_exec);

/* Gives a file this descriptor, and takes over the reference, as above; what had it is closed.
 * -EBADF for a descriptor out of range. */
int files_replace(struct files *files, uint32_t descriptor, struct file *file, bool close_on_exec);

/* -EBADF when it is not open. */
int files_close(struct files *files, uint32_t descriptor);

bool files_closes_on_exec(const struct files *files, uint32_t descriptor);
void files_set_close_on_exec(struct files *files, uint32_t descriptor, bool close_on_exec);

/* Closes those with FD_CLOEXEC, as exec wants it. */
void files_close_on_exec(struct files *files);

/* Changes files->program, which the task runs (a file of file_open_program's: it cannot be written
 * as long as it is held), or files->directory. Takes a reference of its own; releases the old one.
 */
void files_set(struct file **place, struct file *file);
