/* Signals at their end: the action of each one that is pending, and calls that it interrupted. */
#include "kernel/process/signal.h"

#include "kernel/cpu/descriptors.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/gates.h"
#include "kernel/task/sched.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"

#define INT_BYTES	2 /* of the instruction INT 0x80 */
#define VECTOR_BREAK	3
#define VECTOR_OVERFLOW 4
#define STATUS_STOPPED	0x7f
/* What exceptions cause comes before all others. */
#define SYNCHRONOUS                                                                                \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) |     \
	 SIGNAL_BIT(SIGFPE))

extern const uintptr_t trap_stubs[VECTORS];

static void signal_exception(struct trap_frame *frame)
{
	struct signal_cause cause;

	signal_force(signal_of_exception(frame, &cause), &cause);
}

/* A system call that a signal has interrupted ends with EINTR; or it begins again, as if it had
 * never been: the number goes back into eax, and eip to the INT instruction. */
static void finish_call(struct trap_frame *frame, bool has_handler, bool begins_again)
{
	int result = frame->eax;

	if (frame->vector != SYSCALL_VECTOR || (result != -ERESTART && result != -ERESTART_SLEEP))
		return;
	if (has_handler && (result == -ERESTART_SLEEP || !begins_again)) {
		frame->eax = -EINTR;
		current->process->signals.resume_ns = 0;
	} else {
		frame->eax = frame->error_code;
		frame->eip -= INT_BYTES;
	}
}

static void stop(int signal)
{
	bool is_from_terminal = signal != SIGSTOP;

	if (is_from_terminal && process_group_is_orphaned(current->process))
		return;
	current->process->status = signal << 8 | STATUS_STOPPED;
	current->process->has_stopped = true;
	current->process->has_continued = false;
	process_notify_parent(current->process, CLD_STOPPED, signal);
	sched_sleep(TASK_STOPPED);
}

static void act_by_default(int signal)
{
	switch (signal_default(signal)) {
	case DEFAULT_TERMINATE:
		process_exit(signal);
	case DEFAULT_STOP:
		stop(signal);
		break;
	case DEFAULT_IGNORE:
	case DEFAULT_CONTINUE:
		break;
	}
}

static void call_handler(struct trap_frame *frame, int signal, const struct signal_cause *cause)
{
	struct process_signals *signals = &current->process->signals;
	struct linux_signal_action *slot = &signals->actions[signal - 1], action = *slot;
	uint64_t before = signals->is_suspended ? signals->saved : signals->blocked;

	finish_call(frame, true, action.flags & SA_RESTART);
	signals->is_suspended = false;
	if (action.flags & SA_RESETHAND)
		slot->handler = SIGNAL_DEFAULT;
	if (signal_frame_build(frame, signal, cause, &action, before) != 0)
		process_exit(SIGSEGV);
	uint64_t itself = action.flags & SA_NODEFER ? 0 : SIGNAL_BIT(signal);

	signal_block(signals->blocked | action.mask | itself);
}

/* Takes the next signal to act upon, and its cause; or 0. */
static int take(struct signal_cause *cause)
{
	uint64_t ready = current->process->signals.pending & ~current->process->signals.blocked;

	if (ready & SYNCHRONOUS)
		ready &= SYNCHRONOUS;
	int signal = signal_lowest(ready);

	if (signal)
		signal_take(signal, cause);
	return signal;
}

static void signal_deliver(struct trap_frame *frame)
{
	struct signal_cause cause;
	int signal;

	trap_return_work &= ~WORK_SIGNAL;
	while ((signal = take(&cause)) != 0) {
		uint32_t handler = current->process->signals.actions[signal - 1].handler;

		if (handler == SIGNAL_DEFAULT)
			act_by_default(signal);
		else if (handler != SIGNAL_IGNORE)
			call_handler(frame, signal, &cause);
	}
	finish_call(frame, false, true);
	signal_resume();
}

void signal_initialize(void)
{
	trap_register_user(signal_exception);
	sched_register_signals(signal_deliver);
	gate_set(VECTOR_BREAK, KERNEL_CODE, trap_stubs[VECTOR_BREAK], GATE_INTERRUPT, 3);
	gate_set(VECTOR_OVERFLOW, KERNEL_CODE, trap_stubs[VECTOR_OVERFLOW], GATE_INTERRUPT, 3);
}
