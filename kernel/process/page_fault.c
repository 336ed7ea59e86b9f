/*
 * Page faults of programs that mm/fault.c cannot resolve: a signal, or waiting for memory.
 *
 *	-EFAULT		no memory there			SIGSEGV, SEGV_MAPERR
 *	-EACCES		not to be used so		SIGSEGV, SEGV_ACCERR
 *	-EIO		its object has no such page	SIGBUS, BUS_ADRERR
 *	-ENOMEM		no page is free			memory is given back, or a process is killed
 *
 * A fault of the kernel itself, in a copy for a program, is not the program's: the copy ends there,
 * and the call returns EFAULT (mm/user_copy.c). For want of memory it waits as the program would,
 * unless interrupts are disabled.
 *
 * Out of memory, the largest process has to go, because its end frees the most memory, and small
 * processes do not lose their work through its fault. Not init: without it the machine ends. The
 * task whose fault it was tries again as soon as the victim is gone; until then it lets others run.
 */
#include "kernel/process/page_fault.h"

#include "kernel/lib/errno.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "mm/fault.h"
#include "mm/space.h"

#define ERROR_WRITE 2u /* in a page fault's error code: Intel SDM volume 3, 4.7 */
#define RETRIES	    1000
#define LEADER	    8u /* a page of a session's leader counts an eighth */

static bool is_dying(const struct process *process)
{
	return process->signals.pending & SIGNAL_BIT(SIGKILL);
}

/* EXERCISE 6.6 (give me one back, part 2): out_of_memory is called when there is no page for the
   current task, and nothing can be given back (mm/reclaim.c). It chooses the process whose space
   maps the most pages (space_resident), but never init; a page of a session's leader, a shell for
   instance, counts one LEADER-th, because its session ends with it. That is not rounded: a leader
   with fewer pages is chosen, too, if nobody else has any. It prints "out of memory: killed PID
   (NAME), N KiB"; and sends SIGKILL. While one process is dying, it kills no second one. Given:
   process_next, which goes through all processes; is_dying; signal_send.

   Pitfalls: a child of vfork (process->is_borrowing) has its parent's space, and the parent cannot
   end before the child. A zombie has no space, and may have been killed. */
/* SOLUTION 6.6 { */
/* The process with the most pages, counted in LEADERths; or one that is dying. NULL: there is only
 * init. Of a parent and its vfork child it is the child: the parent waits for it, and could not
 * end. */
static struct process *victim(void)
{
	struct process *largest = NULL;
	uint32_t most = 0;

	for (struct process *each = process_next(NULL); each; each = process_next(each)) {
		uint32_t pages = each->task->space ? space_resident(each->task->space) : 0;

		if (pages > 0 && is_dying(each))
			return each;
		if (each->session != each->task->pid)
			pages *= LEADER;
		if (pages + each->is_borrowing > most && each->task->pid != INIT) {
			most = pages + each->is_borrowing;
			largest = each;
		}
	}
	return largest;
}

static void out_of_memory(void)
{
	struct process *process = victim();

	if (!process || is_dying(process))
		return;
	printk("out of memory: killed %d (%s), %u KiB\n", process->task->pid, process->task->name,
	       space_resident(process->task->space) * 4);
	signal_send(process, SIGKILL);
}
/* } SOLUTION 6.6 */

static void tell(int error, uint32_t address)
{
	int32_t code = error == -EIO ? BUS_ADRERR : error == -EACCES ? SEGV_ACCERR : SEGV_MAPERR;
	const struct signal_cause cause = { .code = code, .address = address };

	signal_force(error == -EIO ? SIGBUS : SIGSEGV, &cause);
}

/* Memory is short: the victim gets time to end. False if that is the current task itself; and after
 * many tries, because a victim that waits for something that the current task holds cannot end. */
static bool wait_for_memory(void)
{
	static uint32_t times;

	if (is_dying(current->process) || ++times % RETRIES == 0)
		return false;
	yield();
	return true;
}

void (*page_fault_watch)(const struct space *space, bool write);
uint32_t page_faults;

/* A fault is resolved. If it was a major one, the page cache has said so (page_cache_count_major).
 */
static void count(bool write)
{
	page_faults++;
	current->counts.minor_faults++;
	if (page_fault_watch)
		page_fault_watch(current->space, write);
}

/* The instruction is restarted when this returns, or the program gets its signal first. */
static void page_fault(struct trap_frame *frame)
{
	uint32_t address = trap_fault_address();
	bool may_sleep = frame->eflags & EFLAGS_INTERRUPTS, is_user = frame->cs & 3;
	int error = -EFAULT;

	if (address < SPACE_SHARED && current->space) {
		if (may_sleep)
			interrupts_enable();
		error = space_fault(current->space, address, frame->error_code & ERROR_WRITE,
				    may_sleep);
		if (error == -ENOMEM)
			out_of_memory();
		if (!error)
			count(frame->error_code & ERROR_WRITE);
		interrupts_disable();
	}
	if (error == -ENOMEM && may_sleep && (wait_for_memory() || is_user))
		return;
	if (!is_user && error)
		trap_decline(frame);
	else if (error)
		tell(error, address);
}

void page_fault_initialize(void)
{
	trap_register(VECTOR_PAGE_FAULT, page_fault);
}
