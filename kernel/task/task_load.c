/*
 * The processor state that a program needs in user mode: loaded when its task gets the processor,
 * and only if it differs.
 *
 * A kernel thread needs none of this but its own stack. It runs in whatever space was there, and
 * the kernel looks the same in all of them; the floating-point unit keeps a program's state
 * meanwhile:
 *
 *	runs		CR3		unit
 *	program A	A's		A's
 *	kernel thread	still A's	still A's
 *	program A	(unchanged)	(unchanged)	nothing was loaded
 *	program B	B's		A's is saved, B's is loaded
 *
 * Everything here is called with interrupts disabled.
 */
#include "kernel/cpu/task_state.h"
#include "kernel/report/backtrace.h"
#include "kernel/task/task.h"
#include "kernel/task/task_make.h"
#include "mm/kernel_stack.h"
#include "mm/space.h"

static struct task *fpu_owner;		 /* whose state is in the unit; NULL: no task's */
static const struct space *loaded_space; /* what the processor sees below the kernel */

/* Before the state is read from memory: the unit may have a newer one. */
void task_save_fpu(struct task *task)
{
	if (fpu_owner == task)
		fpu_save(&task->fpu);
}

/* FXSAVE and FXRSTOR of 512 bytes each, only when another program runs. */
static void load_fpu(struct task *next)
{
	if (fpu_owner == next)
		return;
	if (fpu_owner)
		fpu_save(&fpu_owner->fpu);
	fpu_owner = next;
	fpu_restore(&next->fpu);
}

/* Loading CR3 empties the TLB, so the same space is not loaded twice. */
static void use_space(const struct space *space)
{
	if (space != loaded_space)
		space_use(space);
	loaded_space = space;
}

/* Everything but the stack pointer, which is switch_to's. */
void task_load(struct task *next)
{
	trap_return_work &= ~WORK_SIGNAL;
	backtrace_use_stack(next->kernel_stack, KERNEL_STACK_SIZE);
	descriptors_set_thread_local(&next->thread_local);
	if (!next->space)
		return;
	task_state_set_stack((uintptr_t)(next->frame + 1));
	use_space(next->space);
	load_fpu(next);
	if (next->has_signal)
		trap_return_work |= WORK_SIGNAL;
}

/* From now on the current task has no space; the caller frees the one that is returned. */
struct space *task_unload(void)
{
	struct space *space = current->space;

	if (fpu_owner == current)
		fpu_owner = NULL;
	use_space(NULL);
	current->space = NULL;
	return space;
}
