/*
 * A process's table of descriptors, and its working directory.
 *
 *	slots --> [0] [1] [2] [3] ... [31]	the first few are in the table itself
 *		   |   |   |   '-> NULL: free
 *		   '---'---'-> the terminal's struct file, with three references
 *
 * A descriptor is an index; a new one is the lowest that is free, which is what shells rely on. A
 * process that wants more than FILES_INLINE gets a page, which holds FILES_MAX.
 *
 * Each slot owns a reference to its file, the table one to the working directory. After fork both
 * processes have the same files, with a reference from each table; nothing else of a table is
 * shared, so only its own process changes it, and it needs no lock. Closing may sleep.
 */
#include "fs/files.h"

#include "mm/pool.h"
#include "kernel/lib/string.h"

static struct pool pool = POOL_INITIALIZER(struct files);

/* Limits that are not set are all ones: none. */
struct files *files_create(void)
{
	struct files *files = pool_alloc(&pool);

	if (!files)
		return NULL;
	files->slots = files->first;
	files->umask = 022;
	memset(files->limits, 0xff, sizeof(files->limits));
	files->limits[LIMIT_FILES] = (struct limit){ FILES_MAX, FILES_MAX };
	return files;
}

/* Makes this descriptor the last one that is looked at. If it is beyond the table itself, the few
 * that are there move to a page, in order: descriptors stay what they are. */
static bool reach(struct files *files, uint32_t descriptor)
{
	if (descriptor >= FILES_INLINE && files->slots == files->first) {
		struct file **slots = page_alloc(0);

		if (!slots)
			return false;
		memset(slots, 0, PAGE_SIZE);
		files->slots = memcpy(slots, files->first, sizeof(files->first));
	}
	files->count = descriptor + 1;
	return true;
}

/* The last reference to a file may be here: its release may sleep, and wake a task that waits at
 * the other end of a pipe. */
void files_destroy(struct files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		files_close(files, i);
	if (files->slots != files->first)
		page_free(files->slots, 0);
	files_set(&files->program, NULL);
	files_set(&files->directory, NULL);
	pool_free(&pool, files);
}

/* A bit for each descriptor, since two of one file may differ in it. */
bool files_closes_on_exec(const struct files *files, uint32_t descriptor)
{
	return files->close_on_exec[descriptor / 32] >> descriptor % 32 & 1;
}

void files_set_close_on_exec(struct files *files, uint32_t descriptor, bool close_on_exec)
{
	files->close_on_exec[descriptor / 32] &= ~(1u << descriptor % 32);
	files->close_on_exec[descriptor / 32] |= (uint32_t)close_on_exec << descriptor % 32;
}

/* The search is linear, from the lowest on that may be used: there are few. */
int files_add(struct files *files, struct file *file, uint32_t descriptor, bool close_on_exec)
{
	while (descriptor < files->count && files->slots[descriptor])
		descriptor++;
	if (descriptor >= files->limits[LIMIT_FILES].soft)
		return -EMFILE;
	if (descriptor >= files->count && !reach(files, descriptor))
		return -ENOMEM;
	files->slots[descriptor] = file;
	files_set_close_on_exec(files, descriptor, close_on_exec);
	return descriptor;
}

/* Puts a file, or none, into a slot. The old one is released last: that may sleep, and the table
 * must be whole by then. */
static int exchange(struct files *files, uint32_t descriptor, struct file *file)
{
	struct file *before = files->slots[descriptor];

	files->slots[descriptor] = file;
	if (before && files_closing)
		files_closing(files, before);
	if (before)
		file_release(before);
	return 0;
}

int files_replace(struct files *files, uint32_t descriptor, struct file *file, bool close_on_exec)
{
	if (descriptor >= files->limits[LIMIT_FILES].soft)
		return -EBADF;
	if (descriptor >= files->count && !reach(files, descriptor))
		return -ENOMEM;
	files_set_close_on_exec(files, descriptor, close_on_exec);
	exchange(files, descriptor, file);
	return descriptor;
}

/* The slot is free before the release, which may sleep. */
int files_close(struct files *files, uint32_t descriptor)
{
	return files_get(files, descriptor) ? exchange(files, descriptor, NULL) : -EBADF;
}

/* The files that a shell has open for itself are not passed to the programs that it starts. */
void files_close_on_exec(struct files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (files->slots[i] && files_closes_on_exec(files, i))
			files_close(files, i);
}

/* Held before the old one is released: the two may be the same. */
void files_set(struct file **place, struct file *file)
{
	struct file *before = *place;

	if (file)
		file->references++;
	*place = file;
	if (before)
		file_release(before);
}
