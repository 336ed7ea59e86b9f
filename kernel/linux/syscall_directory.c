/* getdents64: the entries of a directory, as many as fit at a time. */
#include "fs/file.h"
#include "fs/vfs/inode.h"
#include "kernel/abi/dirent.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

/* Where getdents64 puts entries. */
struct entries {
	struct buffer buffer;
	int error; /* why the next entry was not taken */
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

	if (length > entries->buffer.length) {
		entries->error = -EINVAL;
		return false;
	}
	memset(&record, 0, length);
	record.head =
	    (struct linux_dirent64){ entry->number, entry->next, length, entry->mode >> 12 };
	memcpy(record.name, entry->name.text, entry->name.length);
	if (copy_to_user(entries->buffer.address, &record, length)) {
		entries->error = -EFAULT;
		return false;
	}
	entries->buffer.address += length;
	entries->buffer.length -= length;
	return true;
}

/* As many entries as fit, from the file's offset on. An error counts only if there is none. */
static int sys_getdents64(struct trap_frame *frame)
{
	struct file *file = descriptor_readable(frame->ebx);
	struct entries entries = { buffer_of_user(frame->ecx, frame->edx), 0 };

	if (!file)
		return -EBADF;
	if (!file->inode || !inode_is(file->inode, S_IFDIR))
		return -ENOTDIR;
	if (file->inode->links == 0)
		return -ENOENT;
	int error = file->inode->ops->iterate(file->inode, &file->offset, put_entry, &entries);
	uint32_t done = frame->edx - entries.buffer.length;

	if (done > 0)
		return done;
	return error ? error : entries.error;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 220, "getdents64", "dpd", sys_getdents64 },
};
