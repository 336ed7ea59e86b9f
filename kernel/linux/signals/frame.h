/* The frame on a program's stack while a signal handler runs. */
#pragma once

#include "kernel/abi/signal_handler.h"
#include "kernel/process/process.h"

/*
 * Makes user mode continue in the handler of a signal: saves the program's registers on its stack,
 * and changes the frame. sigreturn will block `blocked` again. Returns 0 or -EFAULT.
 */
int signal_frame_build(struct trap_frame *frame, int signal, const struct signal_cause *cause,
		       const struct linux_signal_action *action, uint64_t blocked);

/* The siginfo of a signal that a program takes. */
struct linux_signal_info signal_info(int signal, const struct signal_cause *cause);

/* How often the current program's timer of this number came while its signal waited. */
uint32_t signal_overrun(int32_t timer) OPTIONAL;

/* Restores the registers and the blocked signals from before the handler. Returns the value of eax.
 * An invalid frame restores nothing, and is a SIGSEGV. */
int signal_frame_restore(struct trap_frame *frame, bool with_info);

/* Is esp inside this alternative stack? */
bool signal_stack_holds(const struct linux_signal_stack *stack, uint32_t esp);

/* Could one more real-time signal wait that is sent with a cause of the sender's? Signals below
 * SIGNAL_QUEUED need no room. */
bool signal_has_room(const struct process *process, int signal);

/* Is the signal of the timer of this number pending here? Any context, with interrupts disabled. */
bool signal_has_timer(const struct process_signals *signals, int signal, int32_t timer);
