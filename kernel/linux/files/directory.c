/*
 * getdents64: the entries of a directory, as many as fit at a time, and at most a page of them.
 * They are gathered in the kernel, because a copy to the program may sleep, and entries go
 * meanwhile. getdents(2). The call holds the file's offset, which is a position of the file
 * system's own (struct inode_ops, iterate).
 */
#include "kernel/abi/dirent.h"
#include "kernel/linux/files/calls.h"

/* Where getdents64 puts entries. */
struct entries {
	struct buffer buffer;
	bool is_full; /* the next entry was not taken */
};

/* Puts one entry, padded to a multiple of 8 bytes, after the others. False: no more. */
static bool put_entry(void *context, const struct directory_entry *entry)
{
	struct entries *entries = context;
	struct {
		struct linux_dirent64 head;
		char name[NAME_MAX + 8];
	} __attribute__((packed)) record;
	uint32_t length = (sizeof(record.head) + entry->name.length + 1 + 7) & ~7u;

	entries->is_full = length > entries->buffer.length;
	if (entries->is_full)
		return false;
	memset(&record, 0, length);
	record.head =
	    (struct linux_dirent64){ entry->number, entry->next, length, entry->mode >> 12 };
	memcpy(record.name, entry->name.text, entry->name.length);
	buffer_put(&entries->buffer, &record, length);
	return true;
}

/* Gathers entries from the file's offset on, and gives them to the program: as many as fit. An
 * error counts only if there is none. */
static int give_entries(struct file *file, uint32_t to, uint32_t length, void *page)
{
	struct entries entries = { buffer_of_kernel(page, length), false };
	uint64_t offset = file->offset;
	int error = file->inode->ops->iterate(file->inode, &file->offset, put_entry, &entries);
	uint32_t done = length - entries.buffer.length;

	if (done > 0 && copy_to_user(to, page, done) != 0) {
		file->offset = offset;
		return -EFAULT;
	}
	if (done > 0 || error)
		return done > 0 ? (int32_t)done : error;
	return entries.is_full ? -EINVAL : 0;
}

/* -EBADF, -ENOTDIR; -ENOENT in a directory that was removed; -EINVAL when not even one entry fits.
 */
static int getdents(struct file *file, uint32_t to, uint32_t length)
{
	if (!file)
		return -EBADF;
	if (!file->inode || !inode_is(file->inode, S_IFDIR))
		return -ENOTDIR;
	if (file->inode->links == 0)
		return -ENOENT;
	char *page CLEANUP(path_page_release) = path_page();

	return page ? give_entries(file, to, length < PAGE_SIZE ? length : PAGE_SIZE, page)
		    : -ENOMEM;
}

SYSCALL_OFFSET(220, sys_getdents64, "Fpd", getdents(file_to_read(file), frame->ecx, frame->edx))
