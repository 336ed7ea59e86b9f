/*
 * The calls that send signals and that set their actions: kill and sigaction.
 *
 * kill's first argument names one process, or many:
 *
 *	pid > 0		that process		-1	all but init and the sender
 *	0		the sender's group	-pgrp	that group
 */
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"

#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

/* ---- sending ---- */

/* -ESRCH for a kernel thread as well: it takes no signals. */
int kill_process(int32_t pid, int signal, int32_t code)
{
	const struct signal_cause cause = { code, { .pid = current->pid }, 0 };
	struct process *process = process_of_call(pid);

	if (!process || !process_is_program(process))
		return -ESRCH;
	signal_send_cause(process, signal, &cause);
	return 0;
}

/* There is one user, so every process may send to every other. Signal 0 only asks whether there is
 * a receiver. */
static int sys_kill(struct trap_frame *frame)
{
	const struct signal_cause cause = { SI_USER, { .pid = current->pid }, 0 };
	int32_t pid = frame->ebx;

	if (frame->ecx > SIGNALS)
		return -EINVAL;
	if (pid > 0)
		return kill_process(pid, frame->ecx, SI_USER);
	if (pid == INT32_MIN)
		return -ESRCH;
	int32_t group = pid == 0 ? current->process->pgrp : pid == -1 ? -1 : -pid;

	return signal_send_group_cause(group, frame->ecx, &cause) ? 0 : -ESRCH;
}

/* ---- actions ---- */

#define FLAGS_KNOWN 0xdc000807u /* SA_...: all that Linux has */

bool signal_has_action(uint32_t signal, bool changes)
{
	return signal >= 1 && signal <= SIGNALS &&
	       !(changes && (SIGNAL_BIT(signal) & SIGNALS_FIXED));
}

/* Flags that no kernel knows are not told again. A pending signal that is ignored from now on is
 * dropped. */
void signal_set_action(uint32_t signal, const struct linux_signal_action *action)
{
	struct linux_signal_action *mine = &current->process->signals.actions[signal - 1];

	*mine = *action;
	mine->flags &= FLAGS_KNOWN;
	mine->mask &= ~SIGNALS_FIXED;
	if (signal_is_ignored(current->process, signal))
		signal_drop(current->process, signal);
}

/* The new action is copied before the old one is given: both may be at the same address. */
static int sys_rt_sigaction(struct trap_frame *frame)
{
	uint32_t signal = frame->ebx;
	struct linux_signal_action new, old;

	if (frame->esi != sizeof(new.mask) || !signal_has_action(signal, frame->ecx))
		return -EINVAL;
	old = current->process->signals.actions[signal - 1];
	if (frame->ecx && copy_from_user(&new, frame->ecx, sizeof(new)) != 0)
		return -EFAULT;
	if (frame->edx && give(frame->edx, &old, sizeof(old)) != 0)
		return -EFAULT;
	if (frame->ecx)
		signal_set_action(signal, &new);
	return 0;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 37, "kill", "dd", sys_kill },
	{ 174, "rt_sigaction", "dppd", sys_rt_sigaction },
};
