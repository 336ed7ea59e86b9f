/*
 * The table of descriptors of a new process: a copy of its parent's, which fork makes (fork(2)).
 * The open files are shared: each has one reference more, and an offset that both move.
 *
 * For the current task. Nothing sleeps.
 */
#include "fs/files.h"

#include "kernel/lib/string.h"

/* The descriptors are in the table itself, or in a page (fs/files.c). Those that were never used
 * stay NULL. */
struct files *files_copy(const struct files *files)
{
	struct files *copy = files_create();
	struct file **slots = copy ? copy->first : NULL;

	if (copy && files->slots != files->first)
		slots = page_alloc(0);
	if (!slots) {
		if (copy)
			files_destroy(copy);
		return NULL;
	}
	memcpy(copy, files, sizeof(*copy));
	copy->slots = slots;
	if (slots != copy->first)
		memcpy(slots, files->slots, PAGE_SIZE);
	for (uint32_t i = 0; i < copy->count; i++)
		if (slots[i])
			slots[i]->references++;
	copy->directory = copy->program = NULL;
	files_set(&copy->directory, files->directory);
	files_set(&copy->program, files->program);
	return copy;
}
