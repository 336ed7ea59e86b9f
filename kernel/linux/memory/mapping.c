/* System calls about mappings: how their arguments are passed. */
#include "kernel/abi/mman.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/memory/calls.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"

#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

/* Shared and private at once is shared, and (MAP_SHARED_VALIDATE) flags that are not known are
 * refused. Files only. */
static int map(struct mapping mapping)
{
	const uint32_t validate = MAP_SHARED | MAP_PRIVATE, known = MAP_FIXED | MAP_LONG_KNOWN;

	if ((mapping.flags & validate) == validate && !(mapping.flags & MAP_ANONYMOUS)) {
		if (mapping.flags & ~(validate | known))
			return -EOPNOTSUPP;
		mapping.flags &= ~MAP_PRIVATE;
	}
	struct file *file = file_hold(mapping.descriptor);
	int result = memory_map(&mapping, file_opened(file));

	file_drop(file);
	return result;
}

static int sys_mmap2(struct trap_frame *frame)
{
	const struct mapping mapping = { frame->ebx, frame->ecx, frame->edx & PROTECTIONS,
					 frame->esi, frame->edi, frame->ebp };

	return map(mapping);
}

/* The old call: one argument, which points to six; the offset is in bytes. */
static int sys_mmap(struct trap_frame *frame)
{
	struct mapping mapping;

	if (copy_from_user(&mapping, frame->ebx, sizeof(mapping)) != 0)
		return -EFAULT;
	if (mapping.offset % PAGE_SIZE != 0)
		return -EINVAL;
	mapping.offset /= PAGE_SIZE;
	return map(mapping);
}

CALL(sys_munmap, space_unmap(current->space, frame->ebx, frame->ecx))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 90, "mmap", "p", sys_mmap },
	{ 91, "munmap", "xd", sys_munmap },
	{ 192, "mmap2", "xddxax", sys_mmap2 },
};
