/* System calls about signals. */
#include <stdbool.h>
#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/time.h"
#include "mm/user_copy.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/wait.h"

/* ---- sending ---- */

static int kill_thread(int32_t group, int32_t pid, uint32_t signal)
{
	const struct process *process = process_find(pid);

	if (group <= 0 || pid <= 0 || signal > SIGNALS)
		return -EINVAL;
	if (process && process->leader->task->pid != group)
		return -ESRCH;
	if (signal && process && !signal_has_room(process, signal))
		return -EAGAIN;
	return kill_process(pid, signal, SI_TKILL);
}

static int sys_tkill(struct trap_frame *frame)
{
	const struct process *process = process_find(frame->ebx);

	return kill_thread(process ? process->leader->task->pid : (int32_t)frame->ebx, frame->ebx,
			   frame->ecx);
}

CALL(sys_tgkill, kill_thread(frame->ebx, frame->ecx, frame->edx))

/* The program supplies siginfo, except for codes that only the kernel may use. */
static int sys_rt_sigqueueinfo(struct trap_frame *frame)
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

	if (frame->ecx && !signal_has_room(process, frame->ecx))
		return -EAGAIN;
	if (frame->ecx)
		signal_send_cause(process, frame->ecx, &cause);
	return 0;
}

/* ---- actions ---- */

/* rt_sigaction, with the structure of the days of 32 signals. */
static int sys_sigaction(struct trap_frame *frame)
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
static int sys_signal(struct trap_frame *frame)
{
	uint32_t signal = frame->ebx;

	if (!signal_has_action(signal, true))
		return -EINVAL;
	uint32_t old = current->process->signals.actions[signal - 1].handler;

	signal_set_action(
	    signal, &(struct linux_signal_action){ frame->ecx, SA_RESETHAND | SA_NODEFER, 0, 0 });
	return old;
}

/* ---- masks: of 64 signals, or of 32 ---- */

static int change_mask(uint32_t how, uint64_t set)
{
	uint64_t blocked = current->process->signals.blocked;

	switch (how) {
	case SIG_BLOCK:
		signal_block(blocked | set);
		return 0;
	case SIG_UNBLOCK:
		signal_block(blocked & ~set);
		return 0;
	case SIG_SETMASK:
		signal_block(set);
		return 0;
	default:
		return -EINVAL;
	}
}

static int sigprocmask(const struct trap_frame *frame, uint32_t size)
{
	uint64_t old = current->process->signals.blocked, set = 0;

	if (frame->ecx && copy_from_user(&set, frame->ecx, size) != 0)
		return -EFAULT;
	if (frame->ebx == SIG_SETMASK && size < SIGNAL_MASK_SIZE)
		set |= old & 0xffffffff00000000;
	int error = frame->ecx ? change_mask(frame->ebx, set) : 0;

	if (!error && frame->edx)
		error = give(frame->edx, &old, size);
	return error;
}

CALL(sys_sigprocmask, sigprocmask(frame, sizeof(uint32_t)))
CALL(sys_rt_sigprocmask,
     frame->esi == SIGNAL_MASK_SIZE ? sigprocmask(frame, SIGNAL_MASK_SIZE) : -EINVAL)

static int give_pending(uint32_t address, uint32_t size)
{
	uint64_t pending = current->process->signals.pending & current->process->signals.blocked;

	return give(address, &pending, size);
}

CALL(sys_sigpending, give_pending(frame->ebx, sizeof(uint32_t)))
CALL(sys_rt_sigpending,
     frame->ecx <= SIGNAL_MASK_SIZE ? give_pending(frame->ebx, frame->ecx) : -EINVAL)

/* ---- waiting for a signal ---- */

static int sys_pause(struct trap_frame *frame)
{
	while (wait_any(NULL, 0, WAIT_FOREVER) == 0)
		;
	return -ERESTART_SLEEP;
}

static int sys_sigsuspend(struct trap_frame *frame)
{
	signal_suspend((current->process->signals.blocked & 0xffffffff00000000) | frame->edx);
	return sys_pause(frame);
}

static int sys_rt_sigsuspend(struct trap_frame *frame)
{
	uint64_t mask;

	if (frame->ecx != SIGNAL_MASK_SIZE)
		return -EINVAL;
	if (copy_from_user(&mask, frame->ebx, sizeof(mask)) != 0)
		return -EFAULT;
	signal_suspend(mask);
	return sys_pause(frame);
}

/* Signals of the set are taken even if they are blocked: while it waits, they wake. */
static int wait_for_signal(uint64_t set, uint64_t deadline, struct signal_cause *cause)
{
	bool enabled = interrupts_disable();
	int32_t signal, error = 0;

	if (signal_adopt)
		signal_adopt(set);
	while ((signal = signal_take(set, cause)) == 0 && error == 0) {
		current->process->signals.awaited = set;
		error = wait_any(NULL, 0, deadline);
	}
	current->process->signals.awaited = 0;
	interrupts_restore(enabled);
	return signal ? signal : error == -ETIMEDOUT ? -EAGAIN : -EINTR;
}

static int sigtimedwait(const struct trap_frame *frame, timespec_reader *take_time)
{
	uint64_t set, ns, deadline = WAIT_FOREVER;
	struct signal_cause cause;

	if (frame->esi != SIGNAL_MASK_SIZE)
		return -EINVAL;
	if (copy_from_user(&set, frame->ebx, sizeof(set)) != 0)
		return -EFAULT;
	int result = frame->edx ? take_time(frame->edx, &ns) : 0;

	if (result)
		return result;
	if (frame->edx)
		deadline = time_ns() + ns;
	set &= ~SIGNALS_FIXED;
	result = wait_for_signal(set, deadline, &cause);
	if (result > 0 && frame->ecx) {
		const struct linux_signal_info info = signal_info(result, &cause);

		if (give(frame->ecx, &info, sizeof(info)) != 0)
			return -EFAULT;
	}
	return result;
}

CALL(sys_rt_sigtimedwait, sigtimedwait(frame, timespec_from_user))
CALL(sys_rt_sigtimedwait64, sigtimedwait(frame, timespec64_from_user))

/* ---- handlers: their stack, and the way back ---- */

static int sys_sigaltstack(struct trap_frame *frame)
{
	struct linux_signal_stack new, old = current->process->signals.stack;
	bool is_in_use = signal_stack_holds(&old, frame->user_esp);

	old.flags = is_in_use ? SS_ONSTACK : old.size == 0 ? SS_DISABLE : 0;
	if (frame->ebx && copy_from_user(&new, frame->ebx, sizeof(new)) != 0)
		return -EFAULT;
	if (frame->ebx && is_in_use)
		return -EPERM;
	if (frame->ebx && new.flags > SS_DISABLE)
		return -EINVAL;
	if (frame->ebx && !(new.flags &SS_DISABLE) && new.size < SIGNAL_STACK_LEAST)
		return -ENOMEM;
	if (frame->ecx && give(frame->ecx, &old, sizeof(old)) != 0)
		return -EFAULT;
	if (frame->ebx && (new.flags &SS_DISABLE))
		new = (struct linux_signal_stack){ .flags = SS_DISABLE };
	if (frame->ebx)
		current->process->signals.stack = new;
	return 0;
}

CALL(sys_sigreturn, signal_frame_restore(frame, false))
CALL(sys_rt_sigreturn, signal_frame_restore(frame, true))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 29, "pause", "", sys_pause },
	{ 48, "signal", "dp", sys_signal },
	{ 67, "sigaction", "dpp", sys_sigaction },
	{ 72, "sigsuspend", "ddx", sys_sigsuspend },
	{ 73, "sigpending", "p", sys_sigpending },
	{ 119, "sigreturn", "", sys_sigreturn },
	{ 126, "sigprocmask", "dpp", sys_sigprocmask },
	{ 173, "rt_sigreturn", "", sys_rt_sigreturn },
	{ 175, "rt_sigprocmask", "dppd", sys_rt_sigprocmask },
	{ 176, "rt_sigpending", "pd", sys_rt_sigpending },
	{ 177, "rt_sigtimedwait", "pppd", sys_rt_sigtimedwait },
	{ 178, "rt_sigqueueinfo", "ddp", sys_rt_sigqueueinfo },
	{ 179, "rt_sigsuspend", "pd", sys_rt_sigsuspend },
	{ 186, "sigaltstack", "pp", sys_sigaltstack },
	{ 238, "tkill", "dd", sys_tkill },
	{ 270, "tgkill", "ddd", sys_tgkill },
	{ 421, "rt_sigtimedwait_time64", "pppd", sys_rt_sigtimedwait64 },
};
