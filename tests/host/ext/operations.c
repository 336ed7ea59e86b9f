/* The operations of tests/host/ext/files.h: from a line of text to calls of the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lib/errno.h"
#include "tests/host/ext/files.h"
#include "tests/host/ext/files_internal.h"
#include "tests/host/ext/shim.h"

#define WORDS_MAX 6u
#define VALUE_MAX 8192u /* bytes of an attribute */

#define MODE_FILE      0100644u
#define MODE_DIRECTORY 0040755u
#define MODE_FIFO      0010644u
#define MODE_SYMLINK   0120777u

/* The words of a line, and the first two paths of them looked up as the operation says. */
struct call {
	const char *words[WORDS_MAX];
	struct ext_inode *inode;     /* what words[1] names, if it was wanted */
	struct ext_inode *from, *to; /* the directories of words[1] and words[2] */
	struct ext_name name, new_name;
};

/* Word `index` as a number; 0 if there is none. */
static uint64_t number(const struct call *call, unsigned index)
{
	return call->words[index] != NULL ? strtoull(call->words[index], NULL, 0) : 0;
}

/* What a name in a directory stands for. */
static int find_name(struct ext_inode *directory, const struct ext_name *name,
		     struct ext_inode **out)
{
	uint32_t inode;
	int error = ext_find(directory, name, &inode);

	return error ? error : inode_use(inode, out);
}

/* The name must not be there: the library relies on it. */
static int check_absent(struct ext_inode *directory, const struct ext_name *name)
{
	uint32_t inode;
	int error = ext_find(directory, name, &inode);

	return error == -ENOENT ? 0 : error ? error : -EEXIST;
}

static int make(struct call *call, uint16_t mode)
{
	const struct ext_new new = { mode, call->from->owner, call->from->group, 0, NULL };
	struct ext_inode inode;
	int error = check_absent(call->from, &call->name);

	if (!error)
		error = ext_create(call->from, &call->name, &new, &inode);
	if (!error)
		inode_add(&inode);
	return error;
}

static int64_t op_create(struct call *call)
{
	return make(call, MODE_FILE);
}

static int64_t op_mkdir(struct call *call)
{
	return make(call, MODE_DIRECTORY);
}

static int64_t op_mknod(struct call *call)
{
	return make(call, MODE_FIFO);
}

static int64_t op_symlink(struct call *call)
{
	const struct ext_new new = { MODE_SYMLINK, call->to->owner, call->to->group, 0,
				     call->words[1] };
	struct ext_inode inode;
	int error = check_absent(call->to, &call->new_name);

	if (!error)
		error = ext_create(call->to, &call->new_name, &new, &inode);
	if (!error)
		inode_add(&inode);
	return error;
}

static int64_t op_link(struct call *call)
{
	struct ext_inode *inode;
	int error = find_name(call->from, &call->name, &inode);

	if (!error && ext_is_directory(inode))
		error = -EPERM;
	if (!error)
		error = check_absent(call->to, &call->new_name);
	return error ? error : ext_link(call->to, &call->new_name, inode);
}

static int remove_name(struct call *call, bool directory)
{
	struct ext_inode *inode;
	int error = find_name(call->from, &call->name, &inode);

	if (!error && ext_is_directory(inode) != directory)
		error = directory ? -ENOTDIR : -EISDIR;
	if (!error)
		error = ext_remove(call->from, &call->name, inode);
	return error ? error : inode_release(inode);
}

static int64_t op_unlink(struct call *call)
{
	return remove_name(call, false);
}

static int64_t op_rmdir(struct call *call)
{
	return remove_name(call, true);
}

/* As rename(2): over a name of the same kind only, and not into itself. */
static int64_t op_rename(struct call *call)
{
	struct ext_inode *inode, *replaced = NULL;
	size_t length = strlen(call->words[1]);
	int error = find_name(call->from, &call->name, &inode);

	if (error)
		return error;
	if (strncmp(call->words[1], call->words[2], length) == 0 && call->words[2][length] == '/')
		return -EINVAL;
	error = find_name(call->to, &call->new_name, &replaced);
	if (!error && replaced != NULL && ext_is_directory(inode) != ext_is_directory(replaced))
		error = ext_is_directory(inode) ? -ENOTDIR : -EISDIR;
	if ((error && error != -ENOENT) || inode == replaced)
		return error;
	error =
	    ext_rename(call->from, &call->name, inode, call->to, &call->new_name, replaced, false);
	return error || replaced == NULL ? error : inode_release(replaced);
}

static int64_t op_exchange(struct call *call)
{
	struct ext_inode *inode, *other;
	int error = find_name(call->from, &call->name, &inode);

	if (!error)
		error = find_name(call->to, &call->new_name, &other);
	return error ? error
		     : ext_rename(call->from, &call->name, inode, call->to, &call->new_name, other,
				  true);
}

static int64_t write_pattern(struct ext_inode *inode, uint64_t offset, uint32_t length,
			     uint32_t seed)
{
	uint8_t *buffer = malloc(length + 1);
	int64_t result;

	if (buffer == NULL)
		fail("no memory for %u bytes", length);
	if (!ext_is_regular(inode)) {
		free(buffer);
		return -EISDIR;
	}
	files_pattern(buffer, offset, length, seed);
	result = ext_write(inode, offset, buffer, length);
	free(buffer);
	return result;
}

static int64_t op_write(struct call *call)
{
	return write_pattern(call->inode, number(call, 2), (uint32_t)number(call, 3),
			     (uint32_t)number(call, 4));
}

static int64_t op_append(struct call *call)
{
	return write_pattern(call->inode, call->inode->size, (uint32_t)number(call, 2),
			     (uint32_t)number(call, 3));
}

static int64_t op_truncate(struct call *call)
{
	return ext_is_regular(call->inode) ? ext_truncate(call->inode, number(call, 2)) : -EISDIR;
}

/* The first whole block from word `index` on, and how many follow within the length. */
static uint64_t whole_blocks(const struct call *call, unsigned index, uint64_t *count)
{
	uint32_t size = ext_summary(fs)->block_size;
	uint64_t first = (number(call, index) + size - 1) / size;
	uint64_t end = (number(call, index) + number(call, index + 1)) / size;

	*count = end > first ? end - first : 0;
	return first;
}

static int64_t op_punch(struct call *call)
{
	uint64_t count, first = whole_blocks(call, 2, &count);

	if (!ext_is_regular(call->inode))
		return -EISDIR;
	return count > 0 ? ext_punch(call->inode, first, count) : 0;
}

static int64_t op_allocate(struct call *call)
{
	uint64_t count, first = whole_blocks(call, 2, &count);

	if (!ext_is_regular(call->inode))
		return -EISDIR;
	return count > 0 ? ext_allocate(call->inode, first, count, call->words[4] != NULL) : 0;
}

static int64_t op_chmod(struct call *call)
{
	const char *mode = call->words[2] != NULL ? call->words[2] : "0644";

	call->inode->mode = (uint16_t)((call->inode->mode & ~07777u) | strtoul(mode, NULL, 8));
	return ext_inode_write(call->inode);
}

/* A value is LENGTH bytes of files_pattern. How: create or replace. */
static int64_t op_setattr(struct call *call)
{
	static uint8_t value[VALUE_MAX];
	uint32_t length = (uint32_t)number(call, 3);
	const char *how = call->words[5] != NULL ? call->words[5] : "";
	enum ext_attribute_flags flags = *how == 'c'   ? EXT_ATTRIBUTE_CREATE
					 : *how == 'r' ? EXT_ATTRIBUTE_REPLACE
						       : 0;

	if (call->words[2] == NULL || length > VALUE_MAX)
		return -EINVAL;
	files_pattern(value, 0, length, (uint32_t)number(call, 4));
	return ext_attribute_set(call->inode, call->words[2], value, length, flags);
}

static int64_t op_removeattr(struct call *call)
{
	return call->words[2] == NULL ? -EINVAL
				      : ext_attribute_set(call->inode, call->words[2], NULL, 0, 0);
}

static int64_t op_open(struct call *call)
{
	return inode_open(call->inode);
}

static int64_t op_close(struct call *call)
{
	(void)call;
	return inode_close_all();
}

static int64_t op_sync(struct call *call)
{
	(void)call;
	return ext_commit(fs);
}

enum wants {
	NOTHING,
	INODE,	/* words[1] is a path of something that is there */
	ONE,	/* words[1] is a name in a directory */
	TWO,	/* words[1] and words[2] are */
	SECOND, /* words[2] is */
};

/* The library function that an operation stands on, as an address: NULL while it is missing. */
#define NEEDS(function) ((void (*)(void))(function))

static const struct {
	const char *name;
	int64_t (*run)(struct call *call);
	enum wants wants;
	void (*needs)(void);
} operations[] = {
	{ "create", op_create, ONE, NEEDS(ext_create) },
	{ "mkdir", op_mkdir, ONE, NEEDS(ext_create) },
	{ "mknod", op_mknod, ONE, NEEDS(ext_create) },
	{ "symlink", op_symlink, SECOND, NEEDS(ext_create) },
	{ "link", op_link, TWO, NEEDS(ext_link) },
	{ "unlink", op_unlink, ONE, NEEDS(ext_remove) },
	{ "rmdir", op_rmdir, ONE, NEEDS(ext_remove) },
	{ "rename", op_rename, TWO, NEEDS(ext_rename) },
	{ "exchange", op_exchange, TWO, NEEDS(ext_rename) },
	{ "write", op_write, INODE, NEEDS(ext_write) },
	{ "append", op_append, INODE, NEEDS(ext_write) },
	{ "truncate", op_truncate, INODE, NEEDS(ext_truncate) },
	{ "punch", op_punch, INODE, NEEDS(ext_punch) },
	{ "allocate", op_allocate, INODE, NEEDS(ext_allocate) },
	{ "chmod", op_chmod, INODE, NEEDS(ext_inode_write) },
	{ "setattr", op_setattr, INODE, NEEDS(ext_attribute_set) },
	{ "removeattr", op_removeattr, INODE, NEEDS(ext_attribute_set) },
	{ "open", op_open, INODE, NEEDS(ext_release) },
	{ "close", op_close, NOTHING, NEEDS(ext_release) },
	{ "fsync", op_sync, INODE, NEEDS(ext_commit) },
	{ "fdatasync", op_sync, INODE, NEEDS(ext_commit) },
	{ "sync", op_sync, NOTHING, NEEDS(ext_commit) },
};

/* Looks up what the operation wants. */
static int look_up(struct call *call, enum wants wants)
{
	int error = 0;

	for (unsigned i = 1; i <= (wants == NOTHING ? 0u : wants >= TWO ? 2u : 1u); i++)
		if (call->words[i] == NULL)
			return -EINVAL;
	if (wants == INODE)
		return path_walk(call->words[1], &call->inode, NULL);
	if (wants == ONE || wants == TWO)
		error = path_walk(call->words[1], &call->from, &call->name);
	if (!error && (wants == TWO || wants == SECOND))
		error = path_walk(call->words[2], &call->to, &call->new_name);
	return error;
}

bool files_knows(const char *line)
{
	size_t length = strcspn(line, " \n");

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strlen(operations[i].name) == length &&
		    memcmp(line, operations[i].name, length) == 0)
			return true;
	return false;
}

int64_t files_operate(const char *line)
{
	char text[8192], *rest = text;
	struct call call = { 0 };

	snprintf(text, sizeof(text), "%s", line);
	for (unsigned i = 0; i < WORDS_MAX; i++)
		call.words[i] = strtok_r(i == 0 ? text : NULL, " \n", &rest);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		int error;

		if (call.words[0] == NULL || strcmp(call.words[0], operations[i].name) != 0)
			continue;
		if (operations[i].needs == NULL || ext_find == NULL)
			return -ENOSYS;
		error = look_up(&call, operations[i].wants);
		return error ? error : operations[i].run(&call);
	}
	return -EINVAL;
}
