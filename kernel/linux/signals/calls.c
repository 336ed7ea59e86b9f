/*
 * System calls about signals. Linux has many of them twice: with a set of 32 signals, and as rt_...
 * with one of 64, whose size in bytes the program says. Both are one function of the size here.
 *
 * signal(7), sigaction(2), sigprocmask(2), sigsuspend(2), sigtimedwait(2), sigaltstack(2),
 * tgkill(2), rt_sigqueueinfo(2). Those that wait for a signal sleep: pause, sigsuspend and
 * sigtimedwait.
 */
#include "kernel/linux/call.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/process/syscall_clock.h"
#include "kernel/task/time.h"

/* ---- sending ---- */

/* To one task, which is to be of this program (0: of any): -ESRCH if it is another's by now,
 * because pids are used again. -EAGAIN without room for one more real-time signal. Linux's order:
 * arguments, then tasks. */
static int kill_thread(int32_t group, int32_t pid, uint32_t signal)
{
	const struct process *process = process_find(pid);

	if (group < 0 || pid <= 0 || signal > SIGNALS)
		return -EINVAL;
	if (process && group && process->leader->task->pid != group)
		return -ESRCH;
	if (process && !signal_has_room(process, signal))
		return -EAGAIN;
	return kill_process(pid, signal, SI_TKILL);
}

SYSCALL(238, sys_tkill, "dd", kill_thread(0, frame->ebx, frame->ecx))
SYSCALL(270, sys_tgkill, "ddd",
	frame->ebx ? kill_thread(frame->ebx, frame->ecx, frame->edx) : -EINVAL)

/* The program supplies siginfo; with codes that only the kernel may use, to itself only. Signal 0
 * asks whether there is a receiver. The order of the checks is Linux's. */
SYSCALL_DEFINE(178, sys_rt_sigqueueinfo, "ddp")
{
	struct process *process = process_find(frame->ebx);
	struct linux_signal_info info;

	if (copy_from_user(&info, frame->edx, SIGNAL_INFO_CAUSE) != 0)
		return -EFAULT;
	if ((info.code >= 0 || info.code == SI_TKILL) && process != current->process)
		return -EPERM;
	if (frame->ecx > SIGNALS)
		return -EINVAL;
	if (!process || !process_is_program(process))
		return -ESRCH;
	const struct signal_cause cause = { info.code, { .pid = info.pid }, info.status };

	if (!signal_has_room(process, frame->ecx))
		return -EAGAIN;
	signal_send_cause(process, frame->ecx, &cause);
	return 0;
}

/* ---- actions ---- */

/* rt_sigaction, with the structure of the days of 32 signals. */
SYSCALL_DEFINE(67, sys_sigaction, "dpp")
{
	uint32_t signal = frame->ebx;
	struct linux_old_signal_action new;

	if (!signal_has_action(signal, frame->ecx))
		return -EINVAL;
	const struct linux_signal_action *now = &current->process->signals.actions[signal - 1];
	const struct linux_old_signal_action old = { now->handler, now->mask, now->flags,
						     now->restorer };

	if (frame->ecx && copy_from_user(&new, frame->ecx, sizeof(new)) != 0)
		return -EFAULT;
	if (frame->edx && give(frame->edx, &old, sizeof(old)) != 0)
		return -EFAULT;
	if (frame->ecx)
		signal_set_action(signal, &(struct linux_signal_action){ new.handler, new.flags,
									 new.restorer, new.mask });
	return 0;
}

/* signal, as System V had it: the handler is used once. */
SYSCALL_DEFINE(48, sys_signal, "dp")
{
	uint32_t signal = frame->ebx;

	if (!signal_has_action(signal, true))
		return -EINVAL;
	uint32_t old = current->process->signals.actions[signal - 1].handler;

	signal_set_action(
	    signal, &(struct linux_signal_action){ frame->ecx, SA_RESETHAND | SA_NODEFER, 0, 0 });
	return old;
}

/* ---- masks ---- */

/* `how`, in EBX, is SIG_BLOCK, SIG_UNBLOCK or SIG_SETMASK: 0, 1 or 2. The size is 4 or 8 bytes;
 * signals beyond it keep their state. Without a set only the old mask is told. As on Linux the mask
 * has changed even if the old one cannot be copied. */
static int sigprocmask(const struct trap_frame *frame, uint32_t size)
{
	uint64_t old = current->process->signals.blocked, set = 0;
	uint64_t beyond = size < SIGNAL_MASK_SIZE ? old & ~(uint64_t)UINT32_MAX : 0;

	if (frame->ecx && copy_from_user(&set, frame->ecx, size) != 0)
		return -EFAULT;
	if (frame->ecx && frame->ebx > SIG_SETMASK)
		return -EINVAL;
	if (frame->ecx)
		signal_block(frame->ebx == SIG_BLOCK	 ? old | set
			     : frame->ebx == SIG_UNBLOCK ? old & ~set
							 : set | beyond);
	return frame->edx ? give(frame->edx, &old, size) : 0;
}

SYSCALL(126, sys_sigprocmask, "dpp", sigprocmask(frame, sizeof(uint32_t)))
SYSCALL(175, sys_rt_sigprocmask, "dppd",
	frame->esi == SIGNAL_MASK_SIZE ? sigprocmask(frame, SIGNAL_MASK_SIZE) : -EINVAL)

/* Those that are blocked: the others are delivered before the program can look. Fewer bytes than 8
 * are as good. */
static int give_pending(uint32_t address, uint32_t size)
{
	uint64_t pending = current->process->signals.pending & current->process->signals.blocked;

	return size <= sizeof(pending) ? give(address, &pending, size) : -EINVAL;
}

SYSCALL(73, sys_sigpending, "p", give_pending(frame->ebx, sizeof(uint32_t)))
SYSCALL(176, sys_rt_sigpending, "pd", give_pending(frame->ebx, frame->ecx))

/* ---- waiting for a signal ---- */

/* Ends with -EINTR after a handler; a signal without a handler that does not end the program lets
 * it begin again. */
SYSCALL(29, sys_pause, "", sleep_until(WAIT_FOREVER))

static int suspend(uint64_t blocked)
{
	signal_suspend(blocked);
	return sleep_until(WAIT_FOREVER);
}

/* With the mask of the days of 32 signals in a register. */
SYSCALL(72, sys_sigsuspend, "ddx",
	suspend((current->process->signals.blocked & ~(uint64_t)UINT32_MAX) | frame->edx))

SYSCALL_DEFINE(179, sys_rt_sigsuspend, "pd")
{
	uint64_t mask;
	int error = mask_from_user(&mask, frame->ebx, frame->ecx);

	return error ?: suspend(mask);
}

int signal_accept(uint64_t set, struct signal_cause *cause)
{
	if (signal_adopt)
		signal_adopt(set);
	return signal_take(set, cause);
}

/* Signals of the set are taken even if they are blocked: while it waits, they wake. Returns the
 * signal, -EAGAIN after the deadline, or -EINTR. */
static int wait_for_signal(uint64_t set, uint64_t deadline, struct signal_cause *cause)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	int32_t signal, error = 0;

	while ((signal = signal_accept(set, cause)) == 0 && error == 0) {
		current->process->signals.awaited = set;
		error = wait_any(NULL, 0, deadline);
	}
	current->process->signals.awaited = 0;
	return signal ? signal : error == -ETIMEDOUT ? -EAGAIN : -EINTR;
}

/* Without a time for ever. Linux checks the set's size, the set, then the time. A signal that was
 * taken is gone even if its siginfo cannot be copied. */
SYSCALL_DEFINE(177, sys_rt_sigtimedwait, "pppd")
{
	uint64_t set, deadline;
	struct signal_cause cause;
	int result = mask_from_user(&set, frame->ebx, frame->esi)
			 ?: deadline_from_user(frame->edx, format_of_call(frame), &deadline);

	if (result)
		return result;
	result = wait_for_signal(set & ~SIGNALS_FIXED, deadline, &cause);
	if (result < 0 || !frame->ecx)
		return result;
	const struct linux_signal_info info = signal_info(result, &cause);

	return give(frame->ecx, &info, sizeof(info)) ?: result;
}
SYSCALL_ROW_OF(421, sys_rt_sigtimedwait_time64, "pppd", sys_rt_sigtimedwait)

/* ---- handlers: their stack, and the way back ---- */

/* Sets the alternative stack: -EPERM while a handler runs on it, -ENOMEM for less than
 * MINSIGSTKSZ. */
static int set_signal_stack(uint32_t address, bool is_in_use)
{
	struct linux_signal_stack new;

	if (copy_from_user(&new, address, sizeof(new)) != 0)
		return -EFAULT;
	if (is_in_use || new.flags > SS_DISABLE)
		return is_in_use ? -EPERM : -EINVAL;
	if (new.flags &SS_DISABLE)
		new = (struct linux_signal_stack){ .flags = SS_DISABLE };
	else if (new.size < SIGNAL_STACK_LEAST)
		return -ENOMEM;
	current->process->signals.stack = new;
	return 0;
}

SYSCALL_DEFINE(186, sys_sigaltstack, "pp")
{
	struct linux_signal_stack old = current->process->signals.stack;
	bool is_in_use = signal_stack_holds(&old, frame->user_esp);
	int error = frame->ebx ? set_signal_stack(frame->ebx, is_in_use) : 0;

	old.flags = is_in_use ? SS_ONSTACK : old.size == 0 ? SS_DISABLE : 0;
	return error || !frame->ecx ? error : give(frame->ecx, &old, sizeof(old));
}

SYSCALL(119, sys_sigreturn, "", signal_frame_restore(frame, false))
SYSCALL(173, sys_rt_sigreturn, "", signal_frame_restore(frame, true))
