/*
 * What Linux's programs want of signals beyond the default actions: handlers, and real-time
 * signals, which are pending as often as they were sent. The core asks for both by a table of
 * functions (struct signal_extras).
 */
#include <stddef.h>

#include "kernel/lib/startup.h"
#include "kernel/linux/signal_frame.h"
#include "kernel/linux/signal_mask.h"
#include "kernel/process/signal.h"
#include "mm/pool.h"

#define QUEUED_MAX 1024u

/* ---- signals that are pending more than once ---- */

struct queued_signal {
	struct queued_signal *next;
	int signal;
	struct signal_cause cause;
};

static struct pool queued = POOL_INITIALIZER(struct queued_signal);

/* Without memory, or beyond the limit, the signal is pending once less. */
static bool queue_signal(struct process_signals *signals, int signal,
			 const struct signal_cause *cause)
{
	struct queued_signal **end = &signals->queue;

	if (signal < SIGNAL_QUEUED)
		return false;
	struct queued_signal *made = queued.used < QUEUED_MAX ? pool_alloc(&queued) : NULL;

	if (!made)
		return true;
	made->signal = signal;
	made->cause = *cause;
	while (*end)
		end = &(*end)->next;
	*end = made;
	return true;
}

/* Takes the next one of a signal off the queue. */
static bool next_queued(struct process_signals *signals, int signal, struct signal_cause *cause)
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

static void call_handler(struct trap_frame *frame, int signal, const struct signal_cause *cause)
{
	struct process_signals *signals = &current->process->signals;
	struct linux_signal_action *slot = &signals->actions[signal - 1], action = *slot;
	uint64_t before = signals->is_suspended ? signals->saved : signals->blocked;

	signal_finish_call(frame, true, action.flags & SA_RESTART);
	signals->is_suspended = false;
	if (action.flags & SA_RESETHAND)
		slot->handler = SIGNAL_DEFAULT;
	if (signal_frame_build(frame, signal, cause, &action, before) != 0)
		process_exit(SIGSEGV);
	uint64_t itself = action.flags & SA_NODEFER ? 0 : SIGNAL_BIT(signal);

	signal_block(signals->blocked | action.mask | itself);
}

static void signal_extras_register(void)
{
	static const struct signal_extras extras = { call_handler, queue_signal, next_queued,
						     signal_resume };

	signal_extras = &extras;
}

STARTUP(signal_extras_register)
