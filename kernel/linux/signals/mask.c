/*
 * Changes which signals the current process blocks: permanently, or for one system call.
 *
 *	sigprocmask		signal_block
 *	sigsuspend, ppoll ...	signal_suspend: blocked is kept in `saved` ... the call ends
 *				a handler runs: sigreturn brings `saved` back (call_handler)
 *				none does: signal_resume, when all signals were delivered
 */
#include "kernel/linux/signals/mask.h"

#include "kernel/linux/call.h"

struct wait_queue signal_sent;

int mask_from_user(uint64_t *mask, uint32_t address, uint32_t size)
{
	return size == sizeof(*mask) ? fetch(mask, address, size) : -EINVAL;
}

void signal_block(uint64_t blocked)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	if (signal_adopt)
		signal_adopt(~blocked);
	current->process->signals.blocked = blocked & ~SIGNALS_FIXED;
	signal_update(current->process);
}

void signal_suspend(uint64_t blocked)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	current->process->signals.saved = current->process->signals.blocked;
	current->process->signals.is_suspended = true;
	trap_return_work |= WORK_SIGNAL; /* so that it comes back in any case */
	signal_block(blocked);
}

void signal_resume(void)
{
	if (!current->process->signals.is_suspended)
		return;
	current->process->signals.is_suspended = false;
	signal_block(current->process->signals.saved);
}
