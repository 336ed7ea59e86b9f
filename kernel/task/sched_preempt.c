/*
 * Pre-emption: another task gets the processor although the one that runs did not ask for it.
 *
 * An interrupt handler only sets a bit in trap_return_work; the switch is made at the end of the
 * trap, after the interrupt controller has received its EOI:
 *
 *	user mode	IRQ 0 -> handler: WORK_TICK -> EOI -> sched_work: tick, schedule -> IRET
 *	the kernel	IRQ 0 -> handler: WORK_TICK -> EOI -> sched_work: tick; schedule only in a
 *			kernel thread that has not disabled it, and if interrupts were enabled
 *
 * Interrupted is not pre-empted: interrupts are taken everywhere, but tasks are not switched
 * everywhere. User mode can be pre-empted at any instruction. Kernel code that runs for a program
 * cannot: the switch waits until the code sleeps, yields or returns to user mode.
 */
#include "kernel/task/sched.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"

void (*deliver_signals)(struct trap_frame *frame);

/* EXERCISE 4.2 (pre-emption, part 1 of 2): part 2 is in kernel/task/sched_round_robin.c. The
   bits of trap_return_work are in kernel/task/task.h.

   - sched_tick: the timer's interrupt handler calls it. Only notes the tick: WORK_TICK.
   - tick (your own helper): handles one noted tick. Counts it as user_ticks or system_ticks of
     the current task, by what was interrupted; lets the timers expire; asks for a switch
     (WORK_SCHEDULE) if sched_turn_is_over().
   - is_preemptible: may the current task lose the processor in the kernel? Only a kernel thread
     (it has no space) whose preempt_count is 0.
   - task_before_user: returns when neither a switch nor a signal is left to be handled: schedule
     or deliver_signals(frame) handle one, and each may ask for the other. The switch is first.
   - sched_work: gets the frame of every trap that is about to return while trap_return_work is
     not 0. User mode may be pre-empted anywhere. Kernel code may be pre-empted only if
     is_preemptible(), and only where interrupts were enabled.

   Pitfalls: no switch before the EOI, so none in sched_tick. A WORK_TICK that is not cleared
   makes each later trap count as a tick. An exception in code that runs with interrupts disabled
   ends in sched_work, too. */
/* SOLUTION 4.2 { */
void sched_tick(void)
{
	trap_return_work |= WORK_TICK;
}

/* At the end of IRQ 0's trap, with interrupts disabled. */
static void tick(const struct trap_frame *frame)
{
	trap_return_work &= ~WORK_TICK;
	if ((frame->cs & 3) == 3)
		current->user_ticks++;
	else
		current->system_ticks++;
	timers_expire(time_ns());
	if (sched_turn_is_over())
		trap_return_work |= WORK_SCHEDULE;
}

static bool is_preemptible(void)
{
	return !current->space && current->schedule.preempt_count == 0;
}

/* Until nothing is left: a signal may stop the task, and another one run meanwhile. */
void task_before_user(struct trap_frame *frame)
{
	while (trap_return_work & (WORK_SCHEDULE | WORK_SIGNAL)) {
		if (trap_return_work & WORK_SCHEDULE)
			schedule(SCHED_PREEMPTED);
		else
			deliver_signals(frame);
	}
}

void sched_work(struct trap_frame *frame)
{
	if (trap_return_work & WORK_TICK)
		tick(frame);
	if ((frame->cs & 3) == 3)
		task_before_user(frame);
	else if ((trap_return_work & WORK_SCHEDULE) && is_preemptible() &&
		 (frame->eflags & EFLAGS_INTERRUPTS))
		schedule(SCHED_PREEMPTED);
}
/* } SOLUTION 4.2 */

/* For code that has just made another task ready, outside of any trap. */
void sched_preempt(void)
{
	bool enabled = interrupts_disable();

	if (is_preemptible())
		schedule(SCHED_PREEMPTED);
	interrupts_restore(enabled);
}

/* The outermost one makes up for a switch that was not allowed before. */
void preempt_enable(void)
{
	ASSERT(current->schedule.preempt_count > 0);
	current->schedule.preempt_count--;
	__asm__ volatile("" : : : "memory"); /* a tick from here on switches by itself */
	preempt_check();
}

/* HLT until the next interrupt; whatever it wakes runs at the end of its trap. */
void sched_idle(void)
{
	ASSERT(current->pid == 0);
	preempt_enable();
	for (;;)
		wait_for_interrupt();
}
