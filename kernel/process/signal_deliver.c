/*
 * Delivering signals: what they do to a process that is about to return to user mode.
 *
 * A signal ends, stops or changes a program only here, where the kernel has finished everything
 * that it did for it. A call that sleeps returns -ERESTART to get here, after it has released what
 * it holds. If the program continues, the call is made again, and the program does not notice:
 *
 *	wait4 sleeps -> SIGSTOP -> -ERESTART -> stopped ...
 *		... SIGCONT -> EIP back to INT 0x80, EAX = 114 -> wait4 sleeps
 *
 * Called with interrupts disabled, by the current task only, on its way out of the kernel
 * (kernel/task/sched_preempt.c).
 */
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"

#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/sched.h"

#define INT_BYTES 2 /* of the instruction INT 0x80 */

/* An exception of user mode without a handler of its own: the program has caused it, and gets a
 * signal when this trap returns. */
static void signal_exception(struct trap_frame *frame)
{
	struct signal_cause cause = { .code = SI_KERNEL };

	if (signal_explain)
		signal_explain(frame, &cause);
	signal_force(signal_of_exception(frame->vector), &cause);
}

/* To begin again, the call's number goes back into eax, and eip to the INT instruction. */
void signal_restart_call(struct trap_frame *frame)
{
	int result = frame->eax;

	if (frame->vector != SYSCALL_VECTOR || (result != -ERESTART && result != -ERESTART_SLEEP))
		return;
	frame->eax = frame->error_code;
	frame->eip -= INT_BYTES;
}

/* Sleeps until SIGCONT or SIGKILL. The terminal does not stop a group that no process could
 * continue. The first task of a program that stops tells the parent.
 */
static void stop_task(int signal)
{
	struct process *leader = current->process->leader;
	bool is_from_terminal = signal != SIGSTOP;

	if (is_from_terminal && process_group_is_orphaned(leader))
		return;
	if (!leader->stop_status) {
		leader->stop_status = signal << 8 | WAIT_STATUS_STOPPED;
		leader->has_stopped = true;
		leader->has_continued = false;
		process_notify_parent(leader, CLD_STOPPED, signal);
	}
	sched_sleep(TASK_STOPPED);
}

/* Terminating does not return. */
static void act_by_default(int signal)
{
	if (SIGNAL_BIT(signal) & SIGNALS_STOP)
		stop_task(signal);
	else if (!(SIGNAL_BIT(signal) & SIGNALS_NOTHING))
		process_exit(program_finish ? program_finish(signal, true) : signal);
}

/* The action of every signal that is pending and not blocked. May not return: the program ends. */
static void signal_deliver(struct trap_frame *frame)
{
	const struct process_signals *signals = &current->process->signals;
	struct signal_cause cause;
	int signal;

	signal_update(current->process);
	trap_return_work &= ~WORK_SIGNAL;
	while ((signal = signal_take(~signals->blocked, &cause)) != 0) {
		uint32_t handler = signals->actions[signal - 1].handler;

		if (handler == SIGNAL_IGNORE)
			continue;
		if (handler == SIGNAL_DEFAULT || !signal_call_handler)
			act_by_default(signal);
		else
			signal_call_handler(frame, signal, &cause);
	}
	signal_restart_call(frame);
	if (signal_resume)
		signal_resume();
}

void signal_initialize(void)
{
	trap_user_handler = signal_exception;
	deliver_signals = signal_deliver;
}
