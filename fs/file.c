/* Open files. */
#include "fs/file.h"

#include "fs/devices.h"
#include "fs/files.h"
#include "fs/pipe.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/process/process.h"
#include "mm/page_alloc.h"

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

/* Of O_PATH: nothing but a place. */
static const struct file_ops place_ops;

int file_open_inode(struct inode *inode, uint32_t flags, struct file **file)
{
	const struct file_ops *ops = inode->file_ops;
	struct file *opened;

	if (flags & O_PATH)
		ops = &place_ops;
	else if (inode_is(inode, S_IFCHR) || inode_is(inode, S_IFBLK))
		ops = device_ops(inode);
	else if (inode_is(inode, S_IFIFO))
		ops = &pipe_named_ops;
	if (!ops || (inode_is(inode, S_IFSOCK) && ops != &place_ops))
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

int file_open(const char *path, uint32_t flags, uint32_t mode, struct file **file)
{
	const struct files *files = current->process->files;

	return vfs_open(files->directory, path, flags, mode & ~files->umask, file);
}

int file_open_program(const char *path, struct file **file)
{
	int error = file_open(path, O_RDONLY, 0, file);

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

/* Moves the offset by what was written, which may be less than what was read. */
static int copy_page(struct file *to, struct file *from, uint64_t *offset, void *page,
		     uint32_t length)
{
	struct buffer buffer = buffer_of_kernel(page, length);
	int read = file_read_at(from, &buffer, *offset);

	if (read <= 0)
		return read;
	buffer = buffer_of_kernel(page, read);
	int written = file_write(to, &buffer);

	if (written > 0)
		*offset += written;
	return written;
}

int file_copy(struct file *to, struct file *from, uint64_t *offset, uint32_t length)
{
	void *page = page_alloc(0);
	uint32_t done = 0;
	int moved = page ? 1 : -ENOMEM;

	offset = offset ? offset : &from->offset;
	while (page && done < length && moved > 0) {
		uint32_t wanted = length - done < PAGE_SIZE ? length - done : PAGE_SIZE;

		moved = copy_page(to, from, offset, page, wanted);
		done += moved > 0 ? moved : 0;
		if (current->has_signal)
			break;
	}
	if (page)
		page_free(page, 0);
	return done > 0 || moved > 0 ? (int32_t)done : moved;
}
