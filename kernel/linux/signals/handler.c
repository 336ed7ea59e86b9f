/*
 * Signals as Linux's programs need them, beyond the default actions: handlers, real-time
 * signals, which are pending as often as they were sent, and what siginfo says of an exception.
 *
 *	signal_send_cause	pending already: signal_queue keeps one more
 *	signal_take		signal_next_queued: is it pending once more?
 *	signal_deliver		signal_call_handler builds a frame: frame.c
 *
 * The core calls these where a kernel has them (kernel/process/signal_actions.h). Queues change
 * with interrupts disabled, from any context; nothing here sleeps but the copies for a handler's
 * frame.
 */

#include "fs/files.h"
#include "kernel/abi/entry.h"
#include "kernel/abi/resource.h"
#include "kernel/cpu/gates.h"
#include "kernel/lib/startup.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/signals/mask.h"
#include "mm/pool.h"

#define VECTOR_BREAK	3
#define VECTOR_OVERFLOW 4

extern const uintptr_t trap_stubs[VECTORS];

/* ---- signals that are pending more than once ---- */

struct queued_signal {
	struct queued_signal *next;
	int signal;
	struct signal_cause cause;
};

static struct pool queued = POOL_INITIALIZER(struct queued_signal);

/* Pending signals, of all tasks: there is one user, and one of each number is kept outside
 * the queue. */
static uint32_t count_pending(void)
{
	uint32_t count = queued.used;

	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		for (uint64_t set = task->process ? task->process->signals.pending : 0; set;
		     set &= set - 1)
			count++;
	return count;
}

bool signal_has_room(const struct process *process, int signal)
{
	const struct files *files = process->files;
	uint32_t limit = files ? files->limits[LIMIT_QUEUED].soft : QUEUED_MAX;

	return signal < SIGNAL_QUEUED ||
	       count_pending() < (limit < QUEUED_MAX ? limit : QUEUED_MAX);
}

static bool is_of_timer(const struct signal_cause *cause, int32_t timer)
{
	return cause->code == SI_TIMER && cause->pid == timer;
}

bool signal_has_timer(const struct process_signals *signals, int signal, int32_t timer)
{
	const struct queued_signal *each = signals->queue;

	while (each && !(each->signal == signal && is_of_timer(&each->cause, timer)))
		each = each->next;
	return each || (signals->pending & SIGNAL_BIT(signal) &&
			is_of_timer(&signals->causes[signal - 1], timer));
}

/* Without memory, or beyond the limit, the signal is pending once less. */
void signal_queue(struct process_signals *signals, int signal, const struct signal_cause *cause)
{
	struct queued_signal **end = &signals->queue;

	if (signal < SIGNAL_QUEUED && cause->code != SI_TIMER)
		return;
	struct queued_signal *made = queued.used < QUEUED_MAX ? pool_alloc(&queued) : NULL;

	if (!made)
		return;
	made->signal = signal;
	made->cause = *cause;
	while (*end)
		end = &(*end)->next;
	*end = made;
}

/* Takes the next one of a signal off the queue: the one that was sent first. */
bool signal_next_queued(struct process_signals *signals, int signal, struct signal_cause *cause)
{
	struct queued_signal **at = &signals->queue, *found;

	while (*at && (*at)->signal != signal)
		at = &(*at)->next;
	found = *at;
	if (!found)
		return false;
	*cause = found->cause;
	*at = found->next;
	pool_free(&queued, found);
	return true;
}

/* ---- handlers ---- */

/* A call that this handler interrupts ends with -EINTR, unless its action wants it made again. */
static void interrupt_call(struct trap_frame *frame, bool begins_again)
{
	int result = frame->eax;

	if (frame->vector == SYSCALL_VECTOR &&
	    (result == -ERESTART_SLEEP || (result == -ERESTART && !begins_again))) {
		frame->eax = -EINTR;
		current->process->signals.resume_ns = 0;
	}
	signal_restart_call(frame);
}

/* There is no room for a handler's frame. If it was that of SIGSEGV itself, the program ends. */
static void refuse_handler(int signal)
{
	if (signal == SIGSEGV)
		current->process->signals.actions[SIGSEGV - 1].handler = SIGNAL_DEFAULT;
	signal_force(SIGSEGV, NULL);
}

/* The mask while the handler runs, and what it returns to, are those of before sigsuspend. An
 * action with SA_RESETHAND is used once. */
void signal_call_handler(struct trap_frame *frame, int signal, const struct signal_cause *cause)
{
	struct process_signals *signals = &current->process->signals;
	struct linux_signal_action *slot = &signals->actions[signal - 1], action = *slot;
	uint64_t before = signals->is_suspended ? signals->saved : signals->blocked;

	interrupt_call(frame, action.flags & SA_RESTART);
	if (action.flags & SA_RESETHAND)
		slot->handler = SIGNAL_DEFAULT;
	if (signal_frame_build(frame, signal, cause, &action, before) != 0) {
		refuse_handler(signal);
		return;
	}
	signals->is_suspended = false;
	uint64_t itself = action.flags & SA_NODEFER ? 0 : SIGNAL_BIT(signal);

	signal_block(signals->blocked | action.mask | itself);
}

/* A page fault is SEGV_ACCERR if there is a page that the program may not use so, SEGV_MAPERR if
 * there is none. A page of the kernel counts as missing. The address of a general protection fault
 * is unknown. */
void signal_explain(const struct trap_frame *frame, struct signal_cause *cause)
{
	static const uint8_t codes[EXCEPTIONS] = {
		[0] = FPE_INTDIV,  [1] = TRAP_TRACE,  [3] = SI_KERNEL,
		[6] = ILL_ILLOPN,  [11] = SI_KERNEL,  [12] = SI_KERNEL,
		[16] = FPE_FLTINV, [17] = BUS_ADRALN, [19] = FPE_FLTINV,
	};

	if (frame->vector == VECTOR_PAGE_FAULT) {
		uint32_t address = trap_fault_address();
		bool is_there = (frame->error_code & 1) && address < KERNEL_BASE;

		cause->code = is_there ? SEGV_ACCERR : SEGV_MAPERR;
		cause->address = address;
	} else if (codes[frame->vector]) {
		cause->code = codes[frame->vector];
		cause->address = frame->eip;
	}
}

/* INT3 and INTO are instructions of programs: their gates may be used from user mode. */
static void program_gates_open(void)
{
	gate_set(VECTOR_BREAK, KERNEL_CODE, trap_stubs[VECTOR_BREAK], GATE_INTERRUPT, 3);
	gate_set(VECTOR_OVERFLOW, KERNEL_CODE, trap_stubs[VECTOR_OVERFLOW], GATE_INTERRUPT, 3);
}

STARTUP(program_gates_open)
