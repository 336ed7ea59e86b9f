/*
 * Files without a name in any directory. Everything that asks an open file for its inode finds
 * one here, too; it has no type and cannot be opened again, as on Linux.
 */
#include "fs/vfs/anonymous.h"

#include "fs/vfs/vfs.h"

static const struct inode_ops anonymous_ops;

/* The kind keeps a reference, so the inode is never forgotten. */
struct file *anonymous_file(struct anonymous *anonymous, const struct file_ops *ops, void *private,
			    uint32_t flags)
{
	struct file *file = file_create(ops, private, flags);

	if (!file)
		return NULL;
	if (!anonymous->inode.references) {
		inode_initialize(&anonymous->inode, 0600);
		anonymous->inode.ops = &anonymous_ops;
	}
	file->inode = inode_hold(&anonymous->inode);
	file->forget = vfs_forget_file;
	return file;
}

const char *anonymous_kind(const struct inode *inode)
{
	return inode->ops == &anonymous_ops ? ((const struct anonymous *)inode)->kind : NULL;
}
