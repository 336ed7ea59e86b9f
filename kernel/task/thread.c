/*
 * Kernel threads (tasks without a program), and the end of every task.
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

/* Does not return: the task is in no queue any more. */
void task_bury(bool is_orphan)
{
	interrupts_disable();
	task_retire(is_orphan);
	current->life = TASK_ZOMBIE;
	schedule(SCHED_ENDS);
	panic("task %d was scheduled after it had ended", current->pid);
}

/* EXERCISE 4.1 (threads, part 2):

   - kthread_create: see kernel/task/sched.h. Makes a task and forges the switch frame that the
     first switch_to to it pops: its registers and `resume` are as in the drawing above. The
     frame is directly below task->frame, where a program's trap frame will be: the thread may
     become a program, and its trap frame must not overwrite what it still needs. task->esp
     points to the forged frame. The task then competes for the processor (sched_begin).
   - kthread_exit: ends the current thread and frees it: no parent waits for it.

   Pitfalls: task_create must not be pre-empted, and there may be no memory. A thread cannot free
   the stack that it runs on; task_bury leaves that to the task that runs next. */
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

/* No parent waits for a kernel thread: it is freed as an orphan. */
void kthread_exit(void)
{
	task_bury(true);
}
/* } SOLUTION 4.1 */
