/*
 * Kernel threads: tasks without a program, and how every task ends.
 *
 * A task that does not run has what switch_to pushed on top of its stack. A new one has run
 * nothing, so kthread_create writes those words by hand; the first switch_to "returns" to
 * thread_begin:
 *
 *	top of the stack	(room for the trap frame that a program would have)
 *				resume = thread_begin
 *				ebp = 0		the chain of callers ends here
 *				ebx = function
 *				esi = argument
 *	task->esp -->		edi = kthread_exit
 */
#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/task/sched.h"
#include "kernel/task/switch.h"
#include "kernel/task/task_make.h"

/* Does not return: no queue has the task any more. */
void task_bury(bool is_orphan)
{
	interrupts_disable();
	task_retire(is_orphan);
	current->life = TASK_ZOMBIE;
	schedule(SCHED_ENDS);
	panic("task %d was scheduled after it had ended", current->pid);
}

/* EXERCISE 4.1 (threads, part 2): a thread that has never run looks as if it had called switch_to.
   1. kthread_create: task_create makes the task and its stack, and must not be interrupted in it:
   preempt_disable. At the top of the stack, where a program's trap frame would be, goes what
   switch_to pops: a struct switch_frame whose resume is thread_begin, with function and argument in
   EBX and ESI, and kthread_exit in EDI. EBP is 0: there the chain of callers ends. task->esp says
   where it is. Then sched_begin.
   2. kthread_exit: a thread cannot free the stack that it runs on. task_bury leaves that to the
   task that runs next. */
/* SOLUTION 4.1 { */
struct task *kthread_create(const char *name, void (*function)(void *argument), void *argument)
{
	preempt_disable();
	struct task *task = task_create(name);

	if (task) {
		struct switch_frame *frame = (struct switch_frame *)task->frame - 1;

		*frame = (struct switch_frame){
			.ebx = (uintptr_t)function,
			.esi = (uintptr_t)argument,
			.edi = (uintptr_t)kthread_exit,
			.resume = thread_begin,
		};
		task->esp = (uintptr_t)frame;
		sched_begin(task);
	}
	preempt_enable();
	return task;
}

/* Nobody waits for a kernel thread: it is freed as an orphan. */
void kthread_exit(void)
{
	task_bury(true);
}
/* } SOLUTION 4.1 */
