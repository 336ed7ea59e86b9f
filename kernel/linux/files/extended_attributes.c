/*
 * Extended attributes: getxattr, setxattr, listxattr, removexattr, of a path, of a symbolic link
 * itself ("l"), and of an open file ("f"). Names, values and lists go through pages of the kernel,
 * so that no file system sees user memory.
 *
 * The file system says which prefixes there are, and sets and finds the values (fs/vfs/inode.h;
 * -EOPNOTSUPP without them). Permissions are checked here, as in Linux where everybody is root:
 * user.* belongs to regular files and directories. xattr(7), setxattr(2). All may sleep.
 */
#include "fs/vfs/mounts.h"
#include "kernel/linux/files/calls.h"

#define LIST_ORDER 4 /* pages: XATTR_SIZE_MAX */
#define SET_FLAGS  (uint32_t)(XATTR_CREATE | XATTR_REPLACE)

_Static_assert(PAGE_SIZE << LIST_ORDER == XATTR_SIZE_MAX, "a list fits");

/* What a call does with an inode, a name (the second argument, which was fetched), and the
 * registers after these. */
typedef int attribute_call(struct inode *inode, const char *name, const struct trap_frame *frame);

/* user.* says what the contents mean: devices, pipes and links have none. */
static bool may_have_attribute(const struct inode *inode, const char *name)
{
	return memcmp(name, "user.", 5) != 0 || inode_is(inode, S_IFREG) ||
	       inode_is(inode, S_IFDIR);
}

/* ---- the calls, with an inode ---- */

/* The value's length is the result; with a size of 0 nothing is copied. No file system has a value
 * larger than a page. */
static int get_attribute(struct inode *inode, const char *name, const struct trap_frame *frame)
{
	char *value CLEANUP(path_page_release) = NULL;
	uint32_t size = frame->esi;

	if (!inode->ops->get_attribute)
		return -EOPNOTSUPP;
	value = path_page();
	if (!value)
		return -ENOMEM;
	if (!may_have_attribute(inode, name))
		return -ENODATA;
	int length =
	    inode->ops->get_attribute(inode, name, value, size < PAGE_SIZE ? size : PAGE_SIZE);

	return length > 0 && size > 0 && copy_to_user(frame->edx, value, length) ? -EFAULT : length;
}

/* The names, each with its NUL, one after the other. */
static int list_attributes(struct inode *inode, uint32_t to, uint32_t size)
{
	size = size < XATTR_SIZE_MAX ? size : XATTR_SIZE_MAX;
	if (!inode->ops->list_attributes)
		return 0;
	if (size == 0)
		return inode->ops->list_attributes(inode, NULL, 0);
	char *names = page_alloc(LIST_ORDER);

	if (!names)
		return -ENOMEM;
	int length = inode->ops->list_attributes(inode, names, size);

	if (length > 0 && copy_to_user(to, names, length))
		length = -EFAULT;
	page_free(names, LIST_ORDER);
	return length;
}

/* value NULL: removes. */
static int change_attribute(struct inode *inode, const char *name, const void *value, uint32_t size,
			    uint32_t flags)
{
	int error = mount_check_change(inode);

	if (error)
		return error;
	if (!may_have_attribute(inode, name))
		return -EPERM;
	return inode->ops->set_attribute
		   ? inode->ops->set_attribute(inode, name, value, size, flags)
		   : -EOPNOTSUPP;
}

/* Of a value that no file system takes, a page is enough: its size is what is refused. */
static int set_attribute(struct inode *inode, const char *name, const struct trap_frame *frame)
{
	uint32_t size = frame->esi;

	if (size > XATTR_SIZE_MAX)
		return -E2BIG;
	char *value CLEANUP(path_page_release) = path_page();

	if (!value)
		return -ENOMEM;
	if (copy_from_user(value, frame->edx, size < PAGE_SIZE ? size : PAGE_SIZE))
		return -EFAULT;
	return change_attribute(inode, name, value, size, frame->edi);
}

static int remove_attribute(struct inode *inode, const char *name, const struct trap_frame *frame)
{
	return change_attribute(inode, name, NULL, 0, 0);
}

/* ---- the calls ---- */

/* -ERANGE for a name that is empty or too long. */
static int with_name(struct inode *inode, const struct trap_frame *frame, attribute_call *call)
{
	char *name CLEANUP(path_page_release) = path_page();
	int length = name ? string_from_user(name, frame->ecx, XATTR_NAME_MAX + 1) : -ENOMEM;

	if (length == 0 || length == -ENAMETOOLONG)
		return -ERANGE;
	return length < 0 ? length : call(inode, name, frame);
}

/* Flags come before all but the inode, as on Linux. */
SYSCALL_INODES(226, 227, 228, setxattr, "sxdx", file_opened(file),
	       frame->edi & ~SET_FLAGS ? -EINVAL : with_name(inode, frame, set_attribute))
SYSCALL_INODES(229, 230, 231, getxattr, "sxd", file_opened(file),
	       with_name(inode, frame, get_attribute))
SYSCALL_INODES(232, 233, 234, listxattr, "xd", file_opened(file),
	       list_attributes(inode, frame->ecx, frame->edx))
SYSCALL_INODES(235, 236, 237, removexattr, "s", file_opened(file),
	       with_name(inode, frame, remove_attribute))
