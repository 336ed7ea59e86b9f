/* Reads the tree of a mounted file system, with all contents. */
#include <stdio.h>
#include <string.h>

#include "kernel/lib/errno.h"
#include "tests/host/crash/session.h"
#include "tests/host/ext/files.h"

#define NAMES_MAX    4096u
#define CONTENTS_MAX (16u << 20) /* bytes of a file */
#define DEPTH_MAX    32u
#define VALUE_MAX    8192u /* bytes of an attribute, or of all their names */

struct walk {
	struct arena *arena;
	struct model *model;
	char path[MODEL_PATH];
	unsigned depth;
	char *problem;
};

static int complain(struct walk *walk, const char *what, int64_t error)
{
	snprintf(walk->problem, PROBLEM_SIZE, "%s: %s: %s", walk->path, what,
		 errno_name((int)-error));
	return -1;
}

/* Contents of a file, or a symbolic link's target. */
static int read_contents(struct walk *walk, const struct ext_inode *inode, struct model_file *file)
{
	uint8_t *bytes;
	int64_t got;

	if (inode->size > CONTENTS_MAX)
		return complain(walk, "too large", 0);
	bytes = arena_take_raw(walk->arena, inode->size + 1);
	bytes[inode->size] = 0;
	got = ext_read(inode, 0, bytes, (uint32_t)inode->size);
	if (got != (int64_t)inode->size)
		return complain(walk, "reading", got);
	file->bytes = bytes;
	return 0;
}

static int read_attributes(struct walk *walk, const struct ext_inode *inode,
			   struct model_file *file)
{
	static char names[VALUE_MAX];
	static uint8_t value[VALUE_MAX];
	int length = ext_attribute_list(inode, names, sizeof(names));

	for (int at = 0; at < length; at += (int)strlen(&names[at]) + 1) {
		int size = ext_attribute_get(inode, &names[at], value, sizeof(value));

		if (size < 0)
			return complain(walk, &names[at], size);
		file->attributes = model_set_attribute(walk->arena, file->attributes, &names[at],
						       value, (uint32_t)size);
	}
	return length < 0 ? complain(walk, "attributes", length) : 0;
}

/* Enters the file of an inode, unless another name did. */
static int add_file(struct walk *walk, const struct ext_inode *inode, uint32_t *out)
{
	struct model_file file = { .number = inode->number,
				   .mode = inode->mode,
				   .links = inode->links,
				   .size = inode->size };

	for (uint32_t i = 0; i < walk->model->file_count; i++)
		if (walk->model->files[i].number == inode->number) {
			*out = i;
			return 0;
		}
	if (read_attributes(walk, inode, &file) != 0)
		return -1;
	if (ext_is_directory(inode))
		file.size = 0; /* how large it is, is its own affair */
	else if ((ext_is_regular(inode) || ext_is_symlink(inode)) &&
		 read_contents(walk, inode, &file) != 0)
		return -1;
	*out = model_add_file(walk->model, file);
	return 0;
}

static int add_entry(void *context, const char *name, uint32_t number, uint8_t type);

/* Enters the path of the walk, and what is below it. */
static int add_path(struct walk *walk, uint32_t number)
{
	struct ext_inode inode;
	uint32_t file;
	char *path;
	int error = ext_inode_read(fs, number, &inode);

	if (error)
		return complain(walk, "inode", error);
	if (add_file(walk, &inode, &file) != 0)
		return -1;
	path = arena_take(walk->arena, strlen(walk->path) + 1);
	model_add_name(walk->model, strcpy(path, walk->path), file);
	if (!ext_is_directory(&inode))
		return 0;
	if (walk->depth++ == DEPTH_MAX)
		return complain(walk, "too deep", 0);
	error = ext_list(&inode, add_entry, walk);
	walk->depth--;
	return error == 0 || error == -1 ? error : complain(walk, "directory", error);
}

static int add_entry(void *context, const char *name, uint32_t number, uint8_t type)
{
	struct walk *walk = context;
	size_t length = strlen(walk->path);
	int result;

	(void)type;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (length + strlen(name) + 2 > MODEL_PATH)
		return complain(walk, "path too long", 0);
	sprintf(walk->path + length, "/%s", name);
	result = add_path(walk, number);
	walk->path[length] = '\0';
	return result;
}

struct model *tree_read(struct arena *arena, char *problem)
{
	struct walk walk = { .arena = arena, .problem = problem };

	walk.model = model_make(arena, NAMES_MAX, NAMES_MAX);
	if (add_path(&walk, 2) != 0)
		return NULL;
	model_sort(walk.model);
	return walk.model;
}
