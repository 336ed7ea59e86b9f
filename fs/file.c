/*
 * Open files, to which descriptors refer.
 *
 *	descriptor 3 --.
 *	descriptor 5 ----> struct file	offset, flags of open, 2 references
 *			     ops ------> read, write, ...	one for each kind of file
 *			     private --> a pipe, a file in memory, ...
 *
 * The code that opens a file gives it its operations. Nothing here depends on the kind of file: a
 * new kind is a new table of operations.
 *
 * A file lives as long as there is a reference to it: each descriptor has one, and so has code that
 * uses a file for longer than one call. The offset belongs to the file, and only file_read and
 * file_write move it. A system call that uses it locks it first (kernel/process/held_call.h).
 */
#include "fs/file.h"

#include "mm/pool.h"

struct pool file_pool = POOL_INITIALIZER(struct file);

/* Flags that only say how to open are dropped: fcntl shows the others. */
struct file *file_create(const struct file_ops *ops, void *private, uint32_t flags)
{
	struct file *file = pool_alloc(&file_pool);

	if (!file)
		return NULL;
	*file = (struct file){ .ops = ops, .private = private, .references = 1 };
	file->flags = flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC);
	return file;
}

/* The operations are released first: they may still use the inode, if there is one. */
void file_end(struct file *file)
{
	if (file->watches)
		file_unwatch(file);
	if (file->ops->release)
		file->ops->release(file);
	if (file->forget)
		file->forget(file);
	pool_free(&file_pool, file);
}

uint64_t file_size(const struct file *file)
{
	return file->ops->size ? file->ops->size(file) : 0;
}

/* Only what was really moved counts: after a short count the next read continues there. */
int file_read(struct file *file, struct buffer *to)
{
	if (file->ops->is_stream)
		return file_read_at(file, to, 0);
	int moved = file_read_at(file, to, file->offset);

	file->offset += moved > 0 ? moved : 0;
	return moved;
}

/* Moving to the end and writing are one step with respect to other tasks, as O_APPEND promises. */
int file_write(struct file *file, struct buffer *from)
{
	if (file->ops->is_stream)
		return file_write_at(file, from, 0);
	/* For each write again: others may have written meanwhile. */
	uint64_t offset = file->flags & O_APPEND ? file_size(file) : file->offset;
	int moved = file_write_at(file, from, offset);

	if (moved > 0)
		file->offset = offset + moved;
	return moved;
}
