/* Capabilities: root has all of them, and keeps them. */
#include "kernel/abi/capability.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/process/family.h"
#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

/* Fetches the pid that is asked for, and the number of words in each set, which depends on the
 * program's version. */
static int fetch_capability_header(uint32_t address, int32_t *pid, uint32_t *words)
{
	uint32_t header[2];
	const uint32_t known = LINUX_CAPABILITY_VERSION_3;

	if (copy_from_user(header, address, sizeof(header)) != 0)
		return -EFAULT;
	*pid = header[1];
	*words = header[0] == LINUX_CAPABILITY_VERSION_1 ? 1 : 2;
	if (header[0] == LINUX_CAPABILITY_VERSION_1 || header[0] == LINUX_CAPABILITY_VERSION_2 ||
	    header[0] == known)
		return *pid < 0 ? -EINVAL : process_of_call(*pid) ? 0 : -ESRCH;
	return give(address, &known, sizeof(known)) == 0 ? -EINVAL : -EFAULT;
}

/* Effective, permitted and inheritable, of each word. */
static const uint32_t capabilities[2][3] = {
	{ UINT32_MAX, UINT32_MAX, 0 },
	{ (1u << (CAP_LAST_CAP - 31)) - 1, (1u << (CAP_LAST_CAP - 31)) - 1, 0 },
};

static int sys_capget(struct trap_frame *frame)
{
	int32_t pid;
	uint32_t words;
	int error = fetch_capability_header(frame->ebx, &pid, &words);

	if (!frame->ecx)
		return error == -EINVAL ? 0 : error;
	return error ? error : give(frame->ecx, capabilities, words * sizeof(capabilities[0]));
}

/* A call that changes nothing is allowed. */
static int sys_capset(struct trap_frame *frame)
{
	int32_t pid;
	uint32_t words, wanted[2][3];
	int error = fetch_capability_header(frame->ebx, &pid, &words);

	if (error)
		return error;
	if (copy_from_user(wanted, frame->ecx, words * sizeof(wanted[0])) != 0)
		return -EFAULT;
	return memcmp(wanted, capabilities, words * sizeof(wanted[0])) == 0 ? 0 : -EPERM;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 184, "capget", "pp", sys_capget },
	{ 185, "capset", "pp", sys_capset },
};
