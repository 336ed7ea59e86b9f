/* Threads of the kernel: tasks without a program. */
#include "kernel/task/sched.h"
#include "kernel/task/task.h"
#include "kernel/task/switch.h"

/* EXERCISE 4.1 (threads, part 2): a thread that has never run looks as if it had called switch_to.
   1. kthread_create: task_create makes the task and its stack, and must not be interrupted in it:
   preempt_disable. At the top of the stack, where ring 3's frame would be, goes what switch_to
   pops: a struct switch_frame whose resume is thread_begin, with function and argument in EBX and
   ESI. EBP is 0: there the chain of callers ends. task->esp says where it is. Then sched_begin.
   2. kthread_exit: a thread cannot free the stack that it stands on. task_bury leaves that to
   whoever runs next. */
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
			.resume = thread_begin,
		};
		task->esp = (uintptr_t)frame;
		sched_begin(task);
	}
	preempt_enable();
	return task;
}

void kthread_exit(void)
{
	task_bury(true);
}
/* } SOLUTION 4.1 */
