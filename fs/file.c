/* Open files. */
#include "fs/file.h"

#include "fs/devices.h"
#include "fs/files.h"
#include "fs/pipe.h"
#include "fs/vfs.h"
#include "kernel/errno.h"
#include "kernel/pool.h"
#include "kernel/task.h"

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

int32_t file_open_inode(struct inode *inode, uint32_t flags, struct file **file)
{
	const struct file_ops *ops = inode->file_ops;
	struct file *opened;

	if (inode_is(inode, S_IFCHR) || inode_is(inode, S_IFBLK))
		ops = device_ops(inode);
	else if (inode_is(inode, S_IFIFO))
		ops = &pipe_named_ops;
	if (!ops)
		return -ENXIO;
	if (inode->programs > 0 && (flags & O_ACCMODE) != O_RDONLY)
		return -ETXTBSY;
	opened = file_create(ops, inode, flags);
	if (!opened)
		return -ENFILE;
	int32_t error = ops->open ? ops->open(opened) : 0;

	if (error) {
		inode_put(inode);
		pool_free(&pool, opened);
		return error;
	}
	inode->writers += is_writer(opened);
	*file = opened;
	return 0;
}

int32_t file_open(const char *path, uint32_t flags, uint32_t mode, struct file **file)
{
	const struct files *files = current->files;

	return vfs_open(files->directory, path, flags, mode & ~files->umask, file);
}

int32_t file_open_program(const char *path, struct file **file)
{
	int32_t error = file_open(path, O_RDONLY, 0, file);

	if (error)
		return error;
	if ((*file)->inode->writers > 0) {
		file_release(*file);
		return -ETXTBSY;
	}
	(*file)->is_program = true;
	(*file)->inode->programs++;
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

static int32_t refusal(const struct file *file)
{
	return inode_is(file->inode, S_IFDIR) ? -EISDIR : -EINVAL;
}

int32_t file_read_at(struct file *file, struct buffer *to, uint64_t offset)
{
	return file->ops->read ? file->ops->read(file, to, offset) : refusal(file);
}

int32_t file_write_at(struct file *file, struct buffer *from, uint64_t offset)
{
	return file->ops->write ? file->ops->write(file, from, offset) : refusal(file);
}

int32_t file_read(struct file *file, struct buffer *to)
{
	int32_t moved = file_read_at(file, to, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}

int32_t file_write(struct file *file, struct buffer *from)
{
	if (file->flags & O_APPEND)
		file->offset = file->inode->size;
	int32_t moved = file_write_at(file, from, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}
