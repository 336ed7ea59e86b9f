/*
 * What a tree of files should be: names, and the files that they stand for, with all contents. It
 * knows no disk.
 *
 * One tree is made from each operation, so all of them are there to compare a disk with. A file's
 * index is the same in all trees of a session; files without names keep theirs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/host/crash/arena.h"

#define MODEL_PATH 512 /* bytes of a path, at most */

struct model_file {
	uint32_t number; /* of the inode, where the tree was read from a disk */
	uint16_t mode;
	uint16_t links;
	uint64_t size;
	const uint8_t *bytes;	/* contents, or a symbolic link's target; NULL: none of them */
	const char *attributes; /* extended ones, in order, as model_set_attribute; NULL: none */
};

struct model_name {
	const char *path;
	uint32_t file;
};

struct model {
	uint32_t name_count, name_room, file_count, file_room;
	struct model_name *names; /* sorted, after model_sort */
	struct model_file *files;
};

/* An empty tree with room for this many. */
struct model *model_make(struct arena *arena, uint32_t names, uint32_t files);
void model_add_name(struct model *model, const char *path, uint32_t file);
uint32_t model_add_file(struct model *model, struct model_file file);
void model_sort(struct model *model);

/*
 * The tree after an operation (tests/host/ext/files.h) on another one. *result is what the
 * operation gives, but for a full disk: `given` is what the library gave, and with -ENOSPC, or
 * fewer bytes written than wanted, the tree becomes what that means.
 */
struct model *model_operate(struct arena *arena, const struct model *before, const char *line,
			    uint32_t block_size, int64_t given, int64_t *result);

/* The file that a path stands for, or NULL. Follows no symbolic links. */
const struct model_file *model_find(const struct model *model, const char *path);

/* The name of a path, or NULL. */
struct model_name *model_name_of(const struct model *model, const char *path);

/*
 * A file's attributes with one set, or removed (value NULL). Values are only known by their length
 * and a sum: "user.a=20:1f3c5a77;user.b=4:0000abcd;".
 */
const char *model_set_attribute(struct arena *arena, const char *attributes, const char *name,
				const uint8_t *value, uint32_t length);

/* Is there an attribute of this name? */
bool model_has_attribute(const struct model_file *file, const char *name);

/* The same tree, with room for a name and a file more: an operation adds no more. */
struct model *model_copy(struct arena *arena, const struct model *from);
