/*
 * Threads: several tasks that are one program.
 *
 * Each has a process of its own, with what is a thread's own: blocked and pending signals, the
 * alternative stack, the words at its end. They share a space, files and actions, which belong to
 * the first of them, the leader: the process that all others know.
 *
 *	leader		pid 7, parent, children, files, space, actions	<-- kill, wait
 *	  ^ ^		signals that all block are pending here
 *	  | '-- 8	no parent: nobody asks how it ended
 *	  '---- 9
 *
 * The leader ends last, so nothing that they share is counted. When it calls exit, or the whole
 * program ends, it waits until it has no followers any more, and then ends as every process does
 * (kernel/process/exit.c). A follower that calls exec ends all others and becomes the leader.
 *
 * pthreads(7), clone(2), exit_group(2), execve(2), get_robust_list(2); Linux's
 * Documentation/locking/robust-futexes.rst. Only the ends and exec sleep.
 */
#include "kernel/abi/capability.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/lib/string.h"
#include "kernel/linux/futex/futex.h"
#include "kernel/linux/ipc/keys.h"
#include "kernel/linux/signals/mask.h"
#include "kernel/linux/process/usage.h"
#include "kernel/linux/time/interval_timer.h"
#include "kernel/linux/process/threads.h"
#include "kernel/task/sched.h"
#include "kernel/task/task_make.h"

/* What is known of a task besides: after its process, where there is room (task_create). */
struct thread {
	struct process process;
	uint32_t robust_list; /* a user address, or 0 */
	uint32_t followers;   /* of a leader: how many */
	uint32_t ending;      /* of a leader: bits */
	struct use ended; /* what followers had used that are gone; its ticks are a leader's, too */
};

_Static_assert(sizeof(struct task) + sizeof(struct thread) <= TASK_SIZE, "there is room for both");

/* Bits of a leader's `ending`. */
#define ENDING_ITSELF 1u /* it waits for its followers to end */
#define ENDING_ALL    2u /* every task of the program ends, with the leader's status */

/* What set_robust_list is given: a list of locks in the program's memory. */
struct robust_list {
	uint32_t first, offset, pending;
};

#define ROBUST_LIMIT   2048 /* a list may be a circle */
#define ROBUST_POINTER (~1u)

static struct thread *thread_of(const struct process *process)
{
	return (struct thread *)process;
}

/* The next task of the same program after this one (NULL: the first), or NULL. */
static struct process *next_thread(const struct process *leader, const struct process *process)
{
	struct task *task = task_next(process ? process->task : NULL);

	while (task && !(task->process && task->process->leader == leader))
		task = task_next(task);
	return task ? task->process : NULL;
}

/* The tasks of a program, except one. */
#define for_each_other(each, leader, one)                                                          \
	for (struct process *each = next_thread(leader, NULL); each;                               \
	     each = next_thread(leader, each))                                                     \
		if (each != (one))

void program_follow(struct process *child)
{
	child->leader = current->process->leader;
	thread_of(child->leader)->followers++;
}

bool program_is_ending(void)
{
	return thread_of(current->process->leader)->ending & ENDING_ALL;
}

/* ---- what a task leaves in its program's memory ---- */

/* A lock that the task has: the next one that takes it learns that its owner has died. */
static void release_robust_lock(uint32_t address)
{
	uint32_t word;

	if (address % sizeof(word) || copy_from_user(&word, address, sizeof(word)) != 0 ||
	    (word & FUTEX_OWNER) != (uint32_t)current->pid)
		return;
	const uint32_t died = (word & FUTEX_WAITERS) | FUTEX_OWNER_DIED;

	if (copy_to_user(address, &died, sizeof(died)) != 0 || !(word & FUTEX_WAITERS))
		return;
	futex_wake(address, 1);
	futex_owner_died(address);
}

/* The list is the program's memory: it may be a circle, lead anywhere, or end in a page that is not
 * there. `pending` is a lock that the task was just taking or releasing: it may be in the list. */
static void release_robust_locks(uint32_t head)
{
	struct robust_list list;
	uint32_t next = 0;

	if (copy_from_user(&list, head, sizeof(list)) != 0)
		return;
	for (uint32_t at = list.first & ROBUST_POINTER, i = 0; at != head && i < ROBUST_LIMIT;
	     at = next & ROBUST_POINTER, i++) {
		bool is_last = copy_from_user(&next, at, sizeof(next)) != 0;

		if (at != (list.pending & ROBUST_POINTER))
			release_robust_lock(at + list.offset);
		if (is_last)
			break;
	}
	if (list.pending)
		release_robust_lock((list.pending & ROBUST_POINTER) + list.offset);
}

/* While the space is still there: gives up locks, and tells those that wait for the end of the task
 * (CLONE_CHILD_CLEARTID). A child that borrows the memory leaves it to its parent. May sleep. */
static void leave_user_memory(void)
{
	struct process *process = current->process;
	uint32_t list = thread_of(process)->robust_list, word = process->clear_on_exit;
	const uint32_t zero = 0;

	thread_of(process)->robust_list = process->clear_on_exit = 0;
	if (process->is_borrowing)
		return;
	if (list)
		release_robust_locks(list);
	if (word && copy_to_user(word, &zero, sizeof(zero)) == 0)
		futex_wake(word, 1);
}

/* ---- the end ---- */

/* Makes a signal pending that the task has not been chosen for, and so has no cause. Interrupts are
 * disabled. TASK_BLOCKED is not woken: it waits for something that is certain to come. */
static void pend(struct process *process, uint64_t bit)
{
	process->signals.pending |= bit;
	signal_update(process);
	if (process->task->life == TASK_SLEEPING)
		sched_wake(process->task);
}

/* All but the current task end, as soon as they are on their way to user mode. */
static void kill_others(const struct process *leader)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	for_each_other(each, leader, current->process) {
		pend(each, SIGNAL_BIT(SIGKILL));
		sched_continue(each->task);
	}
}

const struct use *use_of_ended(const struct process *leader)
{
	return &thread_of(leader)->ended;
}

/* From the leader's wake-up to task_bury no other task may run: the leader may be gone then. */
static void __attribute__((noreturn)) end_follower(void)
{
	struct process *process = current->process, *leader = process->leader;

	interrupts_disable();
	preempt_disable();
	task_unload();
	current->life = TASK_ZOMBIE;
	signal_drop_all(process);
	use_add(&thread_of(leader)->ended, current);
	leader->task->user_ticks += current->user_ticks;
	leader->task->system_ticks += current->system_ticks;
	thread_of(leader)->followers--;
	wait_wake(&leader->children);
	task_bury(true);
}

/* Ends the current task, or (`all`) its program. Returns, in the leader only, when no other task of
 * the program is left: the status to end with. */
static int32_t end_task(int32_t status, bool all)
{
	struct process *process = current->process, *leader = process->leader;

	interrupts_enable();
	leave_user_memory();
	if (all && !(thread_of(leader)->ending & ENDING_ALL)) {
		thread_of(leader)->ending |= ENDING_ALL;
		leader->status = status;
		kill_others(leader);
	}
	if (process != leader)
		end_follower();
	if (!(thread_of(process)->ending & ENDING_ALL))
		process->status = status;
	thread_of(process)->ending |= ENDING_ITSELF;
	wait_wake(&process->children);
	interrupts_disable();
	while (process->leader == process && thread_of(process)->followers > 0)
		wait_sleep_blocked(&process->children);
	interrupts_enable();
	if (process->leader != process)
		end_follower();
	signal_timers_delete();
	semaphores_undo();
	usage_end(&thread_of(process)->ended);
	return process->status;
}

/* ---- exec ---- */

/* setitimer's timers outlive exec (execve(2)); those of timer_create do not. */
static void move_alarm(struct process *to, struct process *from)
{
	if (timer_is_running(&from->alarm))
		timer_start(&to->alarm, from->alarm.deadline, from->alarm.expire);
	timer_cancel(&from->alarm);
	to->alarm_interval = from->alarm_interval;
	memcpy(to->tick_timers, from->tick_timers, sizeof(to->tick_timers));
}

/* The current task becomes the leader, with its pid and its family: to its parent and its children
 * nothing has changed. Actions are copied, since the old leader has owned them. What was counted of
 * followers comes along, but not their ticks: the old leader's own include them, and it follows,
 * and ends. */
static void become_leader(struct process *process, struct process *leader)
{
	int32_t pid = leader->task->pid;

	leader->task->pid = current->pid;
	current->pid = pid;
	for (struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->parent == leader)
			each->parent = process;
	process->parent = leader->parent;
	leader->parent = NULL;
	process->exit_signal = leader->exit_signal;
	process->adopts = leader->adopts;
	process->death_signal = leader->death_signal;
	process->is_borrowing = leader->is_borrowing;
	leader->is_borrowing = false;
	process->children_user_ticks = leader->children_user_ticks;
	process->children_system_ticks = leader->children_system_ticks;
	process->children_counts = leader->children_counts;
	move_alarm(process, leader);
	memcpy(process->signals.own, leader->signals.own, sizeof(process->signals.own));
	process->signals.actions = process->signals.own;
	process->leader = leader->leader = process;
	thread_of(process)->followers = 1;
	thread_of(process)->ended.cycles = thread_of(leader)->ended.cycles;
	thread_of(process)->ended.counts = thread_of(leader)->ended.counts;
	wait_wake(&leader->children);
}

/* Ends all other tasks of the current program, which is about to be replaced. They end by SIGKILL
 * on their way to user mode, so this waits for each of them; a leader that is not the caller waits
 * as in end_task, and becomes a follower. -EINTR if the program ends meanwhile. */
static int become_alone(void)
{
	struct process *process = current->process, *leader = process->leader;
	struct thread *first = thread_of(leader);
	uint32_t itself = process != leader;

	if (first->ending & ENDING_ALL)
		return -EINTR;
	leave_user_memory();
	if (first->followers == 0)
		return 0;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	first->ending |= ENDING_ALL;
	kill_others(leader);
	while (first->followers > itself || (itself && !(first->ending & ENDING_ITSELF)))
		wait_sleep_blocked(&leader->children);
	if (itself)
		become_leader(process, leader);
	while (thread_of(process)->followers > 0)
		wait_sleep_blocked(&process->children);
	thread_of(process)->ending = 0;
	return 0;
}

/* What prctl and clone were asked for, and exec ends: execve(2) has the list. A kernel thread that
 * waits for the end is not to be sent a signal. */
static void forget_for_exec(struct process *process)
{
	signal_timers_delete();
	process->files->personality &= ~(FILES_KEEPS_RIGHTS | FILES_NOT_DUMPABLE);
	if (process->parent && process_is_program(process->parent))
		process->exit_signal = SIGCHLD;
}

int32_t program_finish(int32_t status, bool all)
{
	if (status != PROGRAM_REPLACED)
		return end_task(status, all);
	int error = current->space ? become_alone() : 0;

	if (!error)
		forget_for_exec(current->process);
	return error;
}

/* ---- signals to the program ---- */

/* Would the task take it at once? Not the one that only waits for its followers. */
static bool takes_signal(const struct process *process, uint64_t bit)
{
	return (bit & (~process->signals.blocked | process->signals.awaited)) &&
	       !(thread_of(process)->ending & ENDING_ITSELF);
}

/* A program stops as a whole: signal(7). All tasks stop, and all go on. The one that is chosen gets
 * the signal itself. */
static void stop_or_continue(const struct process *leader, const struct process *chosen, int signal)
{
	uint64_t bit = SIGNAL_BIT(signal);
	bool stops = (bit & SIGNALS_STOP) && leader->signals.actions[signal - 1].handler == 0 &&
		     !(chosen->signals.blocked & bit);

	for_each_other(each, leader, chosen) {
		if (stops && !(each->signals.blocked & bit))
			pend(each, bit);
		if (signal == SIGCONT) {
			each->signals.pending &= ~SIGNALS_STOP;
			sched_continue(each->task);
		}
	}
}

/* The task that it was sent to, if that does not block it; or another one that does not. If all
 * block it, the leader keeps it (signal_adopt). Any context, with interrupts disabled. */
struct process *signal_receiver(struct process *process, int signal,
				const struct signal_cause *cause)
{
	struct process *leader = process->leader, *chosen = process;

	wait_wake(&signal_sent);
	if (thread_of(leader)->followers == 0)
		return process;
	bool is_its_own =
	    cause && (cause->code == SI_TKILL || (cause->code == SI_TIMER && process != leader));

	if (!is_its_own && !takes_signal(chosen, SIGNAL_BIT(signal)))
		chosen = next_thread(leader, NULL);
	while (!is_its_own && chosen && !takes_signal(chosen, SIGNAL_BIT(signal)))
		chosen = next_thread(leader, chosen);
	chosen = chosen ? chosen : leader;
	stop_or_continue(leader, chosen, signal);
	return chosen;
}

/* Real-time signals that wait more than once go over one by one, in their order. One that the
 * leader was sent itself stays there. */
void signal_adopt(uint64_t set)
{
	struct process *process = current->process, *leader = process->leader;
	struct process_signals *from = &leader->signals;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	uint64_t some = from->pending & from->blocked & set & ~process->signals.pending;

	for (int signal = 1; process != leader && signal <= SIGNALS && some; signal++) {
		struct signal_cause *cause = &from->causes[signal - 1];

		if (!(some & SIGNAL_BIT(signal)) || cause->code == SI_TKILL)
			continue;
		process->signals.causes[signal - 1] = *cause;
		process->signals.pending |= SIGNAL_BIT(signal);
		if (!signal_next_queued(from, signal, cause))
			from->pending &= ~SIGNAL_BIT(signal);
	}
}

/* ---- calls ---- */

/* Only the address is kept: the list is looked at when the task ends. */
SYSCALL_DEFINE(311, sys_set_robust_list, "xd")
{
	if (frame->ecx != sizeof(struct robust_list))
		return -EINVAL;
	thread_of(current->process)->robust_list = frame->ebx;
	return 0;
}

/* The task may end during a copy, so its address is copied first. */
static int give_robust_list(uint32_t list, uint32_t to, uint32_t size_to)
{
	const uint32_t size = sizeof(struct robust_list);

	return give(to, &list, sizeof(list)) ?: give(size_to, &size, sizeof(size));
}

SYSCALL_PROCESS(312, sys_get_robust_list, "dxx",
		give_robust_list(thread_of(process)->robust_list, frame->ecx, frame->edx))
