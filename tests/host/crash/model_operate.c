/* A tree of files as it should be: what each operation does with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/errno.h"
#include "tests/host/crash/model.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/shim.h"

#define WORDS_MAX 6u
#define VALUE_MAX 8192u /* bytes of an attribute */

#define MODE_TYPE      0170000u
#define MODE_DIRECTORY 0040000u
#define MODE_REGULAR   0100000u

/* One operation under way. */
struct change {
	struct arena *arena;
	struct model *model;
	char *words[WORDS_MAX];
	uint32_t block_size;
	int64_t given;
};

static const char *keep(struct change *change, const char *text)
{
	return strcpy(arena_take(change->arena, strlen(text) + 1), text);
}

static bool is_directory(const struct model_file *file)
{
	return (file->mode & MODE_TYPE) == MODE_DIRECTORY;
}

static struct model_file *file_of(struct change *change, const char *path)
{
	return (struct model_file *)model_find(change->model, path);
}

/* The directory of a path; NULL and *error if the way there is none. The root is "". */
static struct model_file *parent_of(struct change *change, const char *path, int *error)
{
	char text[MODEL_PATH];
	struct model_file *file = file_of(change, "");

	for (const char *end = strchr(path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
		if (!is_directory(file))
			break;
		snprintf(text, sizeof(text), "%.*s", (int)(end - path), path);
		file = file_of(change, text);
		if (file == NULL) {
			*error = -ENOENT;
			return NULL;
		}
	}
	*error = is_directory(file) ? 0 : -ENOTDIR;
	return *error ? NULL : file;
}

/* The file of word `index`, or an error. */
static int look_up(struct change *change, unsigned index, struct model_file **out)
{
	int error;

	*out = NULL;
	if (parent_of(change, change->words[index], &error) == NULL)
		return error;
	*out = file_of(change, change->words[index]);
	return *out == NULL ? -ENOENT : 0;
}

static int check_absent(struct change *change, unsigned index)
{
	struct model_file *file;
	int error = look_up(change, index, &file);

	return error == -ENOENT ? 0 : error ? error : -EEXIST;
}

/* Is what the library could not do for want of room not done here either. */
static bool is_full(const struct change *change)
{
	return change->given == -ENOSPC;
}

static int64_t make(struct change *change, unsigned index, struct model_file file)
{
	const char *path = change->words[index];
	int error, found;
	struct model_file *parent = parent_of(change, path, &error);

	if (error)
		return error;
	found = check_absent(change, index);
	if (found)
		return found;
	if (is_full(change))
		return -ENOSPC;
	if (is_directory(&file))
		parent->links++;
	model_add_name(change->model, keep(change, path), model_add_file(change->model, file));
	return 0;
}

static int64_t op_create(struct change *change)
{
	return make(change, 1, (struct model_file){ .mode = 0100644, .links = 1 });
}

static int64_t op_mkdir(struct change *change)
{
	return make(change, 1, (struct model_file){ .mode = 0040755, .links = 2 });
}

static int64_t op_mknod(struct change *change)
{
	return make(change, 1, (struct model_file){ .mode = 0010644, .links = 1 });
}

static int64_t op_symlink(struct change *change)
{
	const char *target = keep(change, change->words[1]);
	struct model_file file = { .mode = 0120777, .links = 1, .size = strlen(target) };

	file.bytes = (const uint8_t *)target;
	return make(change, 2, file);
}

static int64_t op_link(struct change *change)
{
	struct model_file *file;
	int error = look_up(change, 1, &file);

	if (!error && is_directory(file))
		error = -EPERM;
	if (!error)
		parent_of(change, change->words[2], &error);
	if (!error)
		error = check_absent(change, 2);
	if (!error && is_full(change))
		error = -ENOSPC;
	if (error)
		return error;
	file->links++;
	model_add_name(change->model, keep(change, change->words[2]),
		       model_name_of(change->model, change->words[1])->file);
	return 0;
}

static bool is_inside(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static bool is_empty(const struct change *change, const char *path)
{
	for (uint32_t i = 0; i < change->model->name_count; i++)
		if (is_inside(change->model->names[i].path, path))
			return false;
	return true;
}

static void drop_name(struct change *change, const char *path)
{
	struct model_name *name = model_name_of(change->model, path);
	struct model_file *file = &change->model->files[name->file];
	int error;

	if (is_directory(file))
		parent_of(change, path, &error)->links--;
	file->links -= is_directory(file) ? 2 : 1;
	*name = change->model->names[--change->model->name_count];
}

static int64_t remove_name(struct change *change, bool directory)
{
	struct model_file *file;
	int error = look_up(change, 1, &file);

	if (!error && is_directory(file) != directory)
		error = directory ? -ENOTDIR : -EISDIR;
	if (!error && directory && !is_empty(change, change->words[1]))
		error = -ENOTEMPTY;
	if (!error)
		drop_name(change, change->words[1]);
	return error;
}

static int64_t op_unlink(struct change *change)
{
	return remove_name(change, false);
}

static int64_t op_rmdir(struct change *change)
{
	return remove_name(change, true);
}

/* What is below a directory that moves has other paths, too. */
static void move_paths(struct change *change, const char *from, const char *to)
{
	char text[MODEL_PATH];

	for (uint32_t i = 0; i < change->model->name_count; i++) {
		struct model_name *name = &change->model->names[i];

		if (strcmp(name->path, from) != 0 && !is_inside(name->path, from))
			continue;
		snprintf(text, sizeof(text), "%s%s", to, name->path + strlen(from));
		name->path = keep(change, text);
	}
}

static void move_directory_link(struct change *change, const char *from, const char *to)
{
	int error;

	parent_of(change, from, &error)->links--;
	parent_of(change, to, &error)->links++;
}

static int64_t op_rename(struct change *change)
{
	const char *from = change->words[1], *to = change->words[2];
	struct model_file *file, *replaced = NULL;
	int error, found;

	/* In the order in which the library's user checks. */
	if (parent_of(change, from, &error) == NULL || parent_of(change, to, &error) == NULL)
		return error;
	error = look_up(change, 1, &file);
	if (!error && is_inside(to, from))
		error = -EINVAL;
	if (error)
		return error;
	found = look_up(change, 2, &replaced);
	if (!found && is_directory(file) != is_directory(replaced))
		return is_directory(file) ? -ENOTDIR : -EISDIR;
	if (!found && file == replaced)
		return 0;
	if (!found && is_directory(replaced) && !is_empty(change, to))
		return -ENOTEMPTY;
	if (is_full(change))
		return -ENOSPC;
	if (!found)
		drop_name(change, to);
	if (is_directory(file))
		move_directory_link(change, from, to);
	move_paths(change, from, to);
	return 0;
}

static int64_t op_exchange(struct change *change)
{
	const char *one = change->words[1], *other = change->words[2];
	struct model_file *first, *second;
	int error, missing;

	if (parent_of(change, one, &error) == NULL || parent_of(change, other, &error) == NULL)
		return error;
	error = look_up(change, 1, &first);
	missing = look_up(change, 2, &second);
	if (error || missing)
		return error ? error : missing;
	if (is_directory(first) && !is_directory(second))
		move_directory_link(change, one, other);
	if (!is_directory(first) && is_directory(second))
		move_directory_link(change, other, one);
	move_paths(change, one, "/\1");
	move_paths(change, other, one);
	move_paths(change, "/\1", other);
	return 0;
}

static uint64_t number(const struct change *change, unsigned index)
{
	return change->words[index] != NULL ? strtoull(change->words[index], NULL, 0) : 0;
}

/* Contents of another size: what is new is zeros. Returns what may be changed. */
static uint8_t *resize(struct change *change, struct model_file *file, uint64_t size)
{
	uint8_t *bytes = arena_take(change->arena, size + 1);

	if (file->bytes != NULL)
		memcpy(bytes, file->bytes, file->size < size ? file->size : size);
	file->bytes = bytes;
	file->size = size;
	return bytes;
}

static int regular_file(struct change *change, struct model_file **file)
{
	int error = look_up(change, 1, file);

	if (!error && ((*file)->mode & MODE_TYPE) != MODE_REGULAR)
		error = -EISDIR;
	return error;
}

static int64_t write_pattern(struct change *change, bool append, unsigned at)
{
	uint32_t length = (uint32_t)number(change, at), seed = (uint32_t)number(change, at + 1);
	struct model_file *file;
	uint64_t offset, end;
	uint8_t *bytes;
	int error = regular_file(change, &file);

	if (!error && is_full(change))
		error = -ENOSPC;
	if (error)
		return error;
	if (change->given > 0 && change->given < length)
		length = (uint32_t)change->given;
	offset = append ? file->size : number(change, 2);
	end = offset + length;
	bytes = resize(change, file, end > file->size && length > 0 ? end : file->size);
	files_pattern(bytes + offset, offset, length, seed);
	return length;
}

static int64_t op_write(struct change *change)
{
	return write_pattern(change, false, 3);
}

static int64_t op_append(struct change *change)
{
	return write_pattern(change, true, 2);
}

static int64_t op_truncate(struct change *change)
{
	struct model_file *file;
	int error = regular_file(change, &file);

	if (!error && is_full(change))
		error = -ENOSPC;
	if (!error)
		resize(change, file, number(change, 2));
	return error;
}

/* The whole blocks within a range, in bytes. */
static void whole_blocks(const struct change *change, uint64_t *first, uint64_t *end)
{
	*first = (number(change, 2) + change->block_size - 1) / change->block_size;
	*end = (number(change, 2) + number(change, 3)) / change->block_size;
	*first *= change->block_size;
	*end *= change->block_size;
}

static int64_t op_punch(struct change *change)
{
	struct model_file *file;
	uint64_t first, end;
	uint8_t *bytes;
	int error = regular_file(change, &file);

	if (!error && is_full(change))
		error = -ENOSPC;
	if (error)
		return error;
	whole_blocks(change, &first, &end);
	bytes = resize(change, file, file->size);
	if (end > file->size)
		end = file->size;
	if (first < end)
		memset(bytes + first, 0, end - first);
	return 0;
}

static int64_t op_allocate(struct change *change)
{
	struct model_file *file;
	uint64_t first, end;
	int error = regular_file(change, &file);

	whole_blocks(change, &first, &end);
	if (error || end <= first)
		return error;
	if (change->given == -ENOSPC || change->given == -EOPNOTSUPP)
		return change->given;
	if (change->words[4] == NULL && end > file->size)
		resize(change, file, end);
	return 0;
}

static int64_t op_chmod(struct change *change)
{
	struct model_file *file;
	int error = look_up(change, 1, &file);

	if (!error)
		file->mode =
		    (uint16_t)((file->mode & MODE_TYPE) | strtoul(change->words[2], NULL, 8));
	return error;
}

static int64_t op_look_up(struct change *change)
{
	struct model_file *file;

	return look_up(change, 1, &file);
}

/* What the library refuses for another reason than that the attribute is there, or is not, is
 * believed: names of unknown kinds, and values that do not fit. */
static int64_t op_setattr(struct change *change)
{
	static uint8_t value[VALUE_MAX];
	const char *name = change->words[2], *how = change->words[5];
	struct model_file *file;
	int error = look_up(change, 1, &file);
	uint32_t length = (uint32_t)number(change, 3);

	if (!error && how != NULL && model_has_attribute(file, name) != (*how == 'r'))
		error = *how == 'r' ? -ENODATA : -EEXIST;
	if (error || change->given < 0)
		return error ? error : change->given;
	files_pattern(value, 0, length, (uint32_t)number(change, 4));
	file->attributes =
	    model_set_attribute(change->arena, file->attributes, name, value, length);
	return 0;
}

static int64_t op_removeattr(struct change *change)
{
	struct model_file *file;
	int error = look_up(change, 1, &file);

	if (!error && !model_has_attribute(file, change->words[2]))
		error = -ENODATA;
	if (!error)
		file->attributes =
		    model_set_attribute(change->arena, file->attributes, change->words[2], NULL, 0);
	return error;
}

static int64_t op_nothing(struct change *change)
{
	(void)change;
	return 0;
}

static const struct {
	const char *name;
	int64_t (*run)(struct change *change);
} operations[] = {
	{ "create", op_create },
	{ "mkdir", op_mkdir },
	{ "mknod", op_mknod },
	{ "symlink", op_symlink },
	{ "link", op_link },
	{ "unlink", op_unlink },
	{ "rmdir", op_rmdir },
	{ "rename", op_rename },
	{ "exchange", op_exchange },
	{ "write", op_write },
	{ "append", op_append },
	{ "truncate", op_truncate },
	{ "punch", op_punch },
	{ "allocate", op_allocate },
	{ "chmod", op_chmod },
	{ "open", op_look_up },
	{ "fsync", op_look_up },
	{ "close", op_nothing },
	{ "fdatasync", op_look_up },
	{ "sync", op_nothing },
	{ "again", op_nothing },
	{ "setattr", op_setattr },
	{ "removeattr", op_removeattr },
};

struct model *model_operate(struct arena *arena, const struct model *before, const char *line,
			    uint32_t block_size, int64_t given, int64_t *result)
{
	struct change change = { .arena = arena, .block_size = block_size, .given = given };
	char text[2 * MODEL_PATH], *rest = text;

	change.model = model_copy(arena, before);
	snprintf(text, sizeof(text), "%s", line);
	for (unsigned i = 0; i < WORDS_MAX; i++)
		change.words[i] = strtok_r(i == 0 ? text : NULL, " \n", &rest);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (change.words[0] != NULL && strcmp(change.words[0], operations[i].name) == 0) {
			*result = operations[i].run(&change);
			return change.model;
		}
	fail("no operation '%s'", line);
}
