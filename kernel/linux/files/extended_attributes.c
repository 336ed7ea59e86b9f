/*
 * Extended attributes: getxattr, setxattr, listxattr, removexattr, of a path, of a symbolic link
 * itself ("l"), and of an open file ("f"). Names, values and lists go through pages of the kernel.
 *
 * Permissions are checked here, as in Linux where everybody is root: user.* belongs to regular
 * files and directories. Which prefixes there are the file system says (-EOPNOTSUPP).
 */
#include "fs/file.h"
#include "fs/path_page.h"
#include "fs/vfs/mounts.h"
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/linux/files/calls.h"
#include "kernel/syscall/syscall.h"
#include "mm/page_alloc.h"
#include "mm/user_copy.h"

#define LIST_ORDER 4 /* pages: XATTR_SIZE_MAX */

_Static_assert(PAGE_SIZE << LIST_ORDER == XATTR_SIZE_MAX, "a list fits");

/* What a call does with an inode, and the registers after the first one. */
typedef int attribute_call(struct inode *inode, const struct trap_frame *frame);

/* Fetches a name; path_page_free gives it back. -ERANGE when it is empty or too long. */
static int name_from_user(uint32_t address, char **name)
{
	int length;

	*name = path_page();
	if (!*name)
		return -ENOMEM;
	length = string_from_user(*name, address, XATTR_NAME_MAX + 1);
	if (length > 0)
		return 0;
	path_page_free(*name);
	return length == -EFAULT ? length : -ERANGE;
}

/* user.* says what the contents mean: devices, pipes and links have none. */
static bool may_have(const struct inode *inode, const char *name)
{
	return memcmp(name, "user.", 5) != 0 || inode_is(inode, S_IFREG) ||
	       inode_is(inode, S_IFDIR);
}

/* ---- the calls, with an inode ---- */

/* Values are at most a page, and larger ones nobody has. */
static int get_named(struct inode *inode, const char *name, uint32_t to, uint32_t size)
{
	void *value = path_page();
	int result = -ENODATA;

	if (!value)
		return -ENOMEM;
	if (may_have(inode, name))
		result = inode->ops->get_attribute(inode, name, value,
						   size < PAGE_SIZE ? size : PAGE_SIZE);
	if (result > 0 && size > 0 && copy_to_user(to, value, result))
		result = -EFAULT;
	path_page_free(value);
	return result;
}

static int get(struct inode *inode, const struct trap_frame *frame)
{
	char *name;
	int result = name_from_user(frame->ecx, &name);

	if (result)
		return result;
	result = inode->ops->get_attribute ? get_named(inode, name, frame->edx, frame->esi)
					   : -EOPNOTSUPP;
	path_page_free(name);
	return result;
}

static int list(struct inode *inode, const struct trap_frame *frame)
{
	uint32_t size = frame->edx < XATTR_SIZE_MAX ? frame->edx : XATTR_SIZE_MAX;
	int result;
	char *names;

	if (!inode->ops->list_attributes)
		return 0;
	if (size == 0)
		return inode->ops->list_attributes(inode, NULL, 0);
	names = page_alloc(LIST_ORDER);
	if (!names)
		return -ENOMEM;
	result = inode->ops->list_attributes(inode, names, size);
	if (result > 0 && copy_to_user(frame->ecx, names, result))
		result = -EFAULT;
	page_free(names, LIST_ORDER);
	return result;
}

/* value NULL: removes. */
static int change(struct inode *inode, const char *name, const void *value, uint32_t size,
		  uint32_t flags)
{
	int error = mount_check_change(inode);

	if (error)
		return error;
	if (!may_have(inode, name))
		return -EPERM;
	return inode->ops->set_attribute
		   ? inode->ops->set_attribute(inode, name, value, size, flags)
		   : -EOPNOTSUPP;
}

/* Of a value that no place has room for, a page is enough. */
static int set_named(struct inode *inode, const char *name, const struct trap_frame *frame)
{
	uint32_t size = frame->esi;
	char *value;
	int result;

	if (size > XATTR_SIZE_MAX)
		return -E2BIG;
	value = path_page();
	if (!value)
		return -ENOMEM;
	result = copy_from_user(value, frame->edx, size < PAGE_SIZE ? size : PAGE_SIZE)
		     ? -EFAULT
		     : change(inode, name, value, size, frame->edi);
	path_page_free(value);
	return result;
}

static int set(struct inode *inode, const struct trap_frame *frame)
{
	char *name;
	int result = frame->edi & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE)
			 ? -EINVAL
			 : name_from_user(frame->ecx, &name);

	if (result)
		return result;
	result = set_named(inode, name, frame);
	path_page_free(name);
	return result;
}

static int remove(struct inode *inode, const struct trap_frame *frame)
{
	char *name;
	int result = name_from_user(frame->ecx, &name);

	if (result)
		return result;
	result = change(inode, name, NULL, 0, 0);
	path_page_free(name);
	return result;
}

/* ---- whose ---- */

static int of_path(const struct trap_frame *frame, uint32_t flags, attribute_call *call)
{
	struct inode *inode;
	int result = inode_at(HERE, frame->ebx, flags, &inode);

	if (result)
		return result;
	result = call(inode, frame);
	inode_put(inode);
	return result;
}

static int of_file(const struct file *file, const struct trap_frame *frame, attribute_call *call)
{
	if (!file)
		return -EBADF;
	return file->inode ? call(file->inode, frame) : -EOPNOTSUPP;
}

CALL(sys_setxattr, of_path(frame, 0, set))
CALL(sys_lsetxattr, of_path(frame, AT_SYMLINK_NOFOLLOW, set))
FILE_CALL(sys_fsetxattr, of_file(file_opened(file), frame, set))
CALL(sys_getxattr, of_path(frame, 0, get))
CALL(sys_lgetxattr, of_path(frame, AT_SYMLINK_NOFOLLOW, get))
FILE_CALL(sys_fgetxattr, of_file(file_opened(file), frame, get))
CALL(sys_listxattr, of_path(frame, 0, list))
CALL(sys_llistxattr, of_path(frame, AT_SYMLINK_NOFOLLOW, list))
FILE_CALL(sys_flistxattr, of_file(file_opened(file), frame, list))
CALL(sys_removexattr, of_path(frame, 0, remove))
CALL(sys_lremovexattr, of_path(frame, AT_SYMLINK_NOFOLLOW, remove))
FILE_CALL(sys_fremovexattr, of_file(file_opened(file), frame, remove))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 226, "setxattr", "ssxdx", sys_setxattr },
	{ 227, "lsetxattr", "ssxdx", sys_lsetxattr },
	{ 228, "fsetxattr", "fsxdx", sys_fsetxattr },
	{ 229, "getxattr", "ssxd", sys_getxattr },
	{ 230, "lgetxattr", "ssxd", sys_lgetxattr },
	{ 231, "fgetxattr", "fsxd", sys_fgetxattr },
	{ 232, "listxattr", "sxd", sys_listxattr },
	{ 233, "llistxattr", "sxd", sys_llistxattr },
	{ 234, "flistxattr", "fxd", sys_flistxattr },
	{ 235, "removexattr", "ss", sys_removexattr },
	{ 236, "lremovexattr", "ss", sys_lremovexattr },
	{ 237, "fremovexattr", "fs", sys_fremovexattr },
};
