/* Open files. */
#include "fs/file.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "mm/pool.h"

static struct pool pool = POOL_INITIALIZER(struct file);

struct file *file_create(const struct file_ops *ops, struct inode *inode, uint32_t flags)
{
	struct file *file = pool_alloc(&pool);

	if (!file)
		return NULL;
	file->ops = ops;
	file->inode = inode_hold(inode);
	file->flags = flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC);
	file->references = 1;
	return file;
}

static bool is_writer(const struct file *file)
{
	return inode_is(file->inode, S_IFREG) && file_writable(file);
}

int file_open_inode(struct inode *inode, uint32_t flags, struct file **file)
{
	const struct file_ops *ops = inode->file_ops;
	struct file *opened;

	if (!ops)
		return -ENXIO;
	if (inode->programs > 0 && (flags & O_ACCMODE) != O_RDONLY)
		return -ETXTBSY;
	opened = file_create(ops, inode, flags);
	if (!opened)
		return -ENFILE;
	int error = ops->open ? ops->open(opened) : 0;

	if (error) {
		inode_put(inode);
		pool_free(&pool, opened);
		return error;
	}
	inode->writers += is_writer(opened);
	*file = opened;
	return 0;
}

void file_hold(struct file *file)
{
	file->references++;
}

void file_release(struct file *file)
{
	if (--file->references > 0)
		return;
	if (file->ops->release)
		file->ops->release(file);
	file->inode->writers -= is_writer(file);
	file->inode->programs -= file->is_program;
	inode_put(file->directory);
	inode_put(file->inode);
	pool_free(&pool, file);
}

uint32_t file_count(void)
{
	return pool.used;
}

static int refusal(const struct file *file)
{
	return inode_is(file->inode, S_IFDIR) ? -EISDIR : -EINVAL;
}

int file_read_at(struct file *file, struct buffer *to, uint64_t offset)
{
	return file->ops->read ? file->ops->read(file, to, offset) : refusal(file);
}

int file_write_at(struct file *file, struct buffer *from, uint64_t offset)
{
	return file->ops->write ? file->ops->write(file, from, offset) : refusal(file);
}

int file_read(struct file *file, struct buffer *to)
{
	int moved = file_read_at(file, to, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}

int file_write(struct file *file, struct buffer *from)
{
	if (file->flags & O_APPEND)
		file->offset = file->inode->size;
	int moved = file_write_at(file, from, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}
