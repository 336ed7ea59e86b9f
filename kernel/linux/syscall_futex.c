/*
 * futex. Two tasks see the same memory only while one of them waits in vfork, so FUTEX_WAKE never
 * finds a waiter: a wait ends with its time, or with a signal.
 */
#include <stdbool.h>
#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/process/process.h"
#include "kernel/task/wait.h"
#include "kernel/task/time.h"
#include "fs/vfs/wall_time.h"
#include "mm/user_copy.h"
#include "kernel/linux/user_time64.h"

enum { WAIT, WAKE, REQUEUE = 3, COMPARE_REQUEUE, WAIT_BITS = 9, WAKE_BITS };

#define FLAGS	       0x180u /* of the operation: PRIVATE, and */
#define REALTIME_CLOCK 0x100u

/* A wait that begins again ends when it would have ended. Only WAIT's time is a distance. */
static int take_deadline(const struct trap_frame *frame, timespec_reader *take, uint64_t *deadline)
{
	uint64_t ns = 0, now = frame->ecx & REALTIME_CLOCK ? time_wall_ns() : time_ns();

	*deadline = WAIT_FOREVER;
	if (!frame->esi)
		return 0;
	int error = take(frame->esi, &ns);

	if ((frame->ecx & ~FLAGS) == WAIT_BITS)
		ns = ns > now ? ns - now : 0;
	*deadline = current->process->signals.resume_ns ? current->process->signals.resume_ns
							: time_ns() + ns;
	return error;
}

static int wait(const struct trap_frame *frame, timespec_reader *take)
{
	uint64_t deadline;
	uint32_t value;
	int result = take_deadline(frame, take, &deadline);

	if (result)
		return result;
	if (copy_from_user(&value, frame->ebx, sizeof(value)) != 0)
		return -EFAULT;
	if (value != frame->edx)
		return -EAGAIN;
	while ((result = wait_any(NULL, 0, deadline)) == 0)
		;
	bool is_timed = result == -ERESTART && deadline != WAIT_FOREVER;

	current->process->signals.resume_ns = is_timed ? deadline : 0;
	return is_timed ? -ERESTART_SLEEP : result;
}

static int futex(const struct trap_frame *frame, timespec_reader *take)
{
	uint32_t operation = frame->ecx & ~FLAGS, value;

	if (frame->ebx % sizeof(value))
		return -EINVAL;
	if ((operation == WAIT_BITS || operation == WAKE_BITS) && frame->ebp == 0)
		return -EINVAL;
	switch (operation) {
	case WAIT:
	case WAIT_BITS:
		return wait(frame, take);
	case COMPARE_REQUEUE:
		if (copy_from_user(&value, frame->ebx, sizeof(value)) != 0)
			return -EFAULT;
		return value == frame->ebp ? 0 : -EAGAIN;
	case WAKE:
	case WAKE_BITS:
	case REQUEUE:
		return user_range_ok(frame->ebx, sizeof(value)) ? 0 : -EFAULT;
	}
	return -ENOSYS;
}

CALL(sys_futex, futex(frame, timespec_from_user))
CALL(sys_futex64, futex(frame, timespec64_from_user))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 240, "futex", "pxdppx", sys_futex },
	{ 422, "futex_time64", "pxdppx", sys_futex64 },
};
