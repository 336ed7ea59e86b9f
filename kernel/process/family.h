/*
 * Many processes, from lesson 4 on: how a process begins, by itself or as the copy of another, and
 * how its parent learns of its end.
 *
 *	parent	process_fork ----- process_wait: sleeps ------------ the child's status
 *	child	     process_forked ... exec ... process_exit: zombie	gone
 */
#pragma once

#include "kernel/abi/wait.h"
#include "kernel/process/process.h"

#define PROGRAM_REPLACED (-1) /* for program_finish: by exec */

#define INIT 1 /* pid of the first program, which inherits orphans */

/* Every process, by age: the first for NULL, NULL after the last. The list may change whenever the
 * caller sleeps. */
struct process *process_next(const struct process *process);

/* The process of this pid, or NULL. */
struct process *process_find(int32_t pid);

/* The process that a call's argument names: 0 is the current one; NULL: there is no such process.
 * It may be a kernel thread's. */
struct process *process_of_call(int32_t pid);

/* Does it run a program, or has it ended as one? */
static inline bool process_is_program(const struct process *process)
{
	return process->task->space || process->task->life == TASK_ZOMBIE;
}

/* The pid of a process's parent; 0 for what the kernel has started, and for NULL. */
static inline int32_t process_parent_pid(const struct process *process)
{
	return process && process->parent ? process->parent->task->pid : 0;
}

/* Makes a process for a task that has none, in a group and a session of its own. It is freed with
 * the task. */
struct process *process_create(struct task *task);

/* Takes the current task's space away: a borrowed one goes back to the parent, its own is
 * destroyed. Interrupts must be disabled. */
void process_leave_space(void);

/* Goes to user mode for the first time, as the frame says. */
void program_enter(struct trap_frame *frame) __attribute__((noreturn));

/* Where a forked program's task gets the processor for the first time:
 * kernel/process/program_entry.asm. */
void program_begin(void);

/* What a child does first. */
void process_forked(void);

/* Flags of clone that are understood; the lowest byte is the signal at the child's end. */
#define CLONE_SIGNAL_MASK    0x000000ffu
#define CLONE_VM	     0x00000100u
#define CLONE_VFORK	     0x00004000u
#define CLONE_PARENT_SETTID  0x00100000u
#define CLONE_CHILD_CLEARTID 0x00200000u
#define CLONE_CHILD_SETTID   0x01000000u

/* Has the one user as many tasks as RLIMIT_NPROC of the current program allows? Root is not exempt,
 * as it is on Linux: then the limit would bind nobody. */
#define LIMIT_TASKS 6 /* at most TASK_LIMIT */
bool process_limit_is_reached(void);

/* clone with flags that process_fork refuses with -EINVAL: threads, and a child that is changed
 * before it runs. */
int clone_more(const struct trap_frame *frame) OPTIONAL;

/* The arguments of clone. Addresses are user addresses. */
struct fork_request {
	uint32_t flags;
	uint32_t stack; /* 0: as the parent's */
	uint32_t parent_word, child_word;
	bool is_thread; /* shares memory and files; clone_more makes it one of the program */
};

/*
 * Makes a child of the current task: the same program at the same place, where it finds 0 in eax.
 * With CLONE_VFORK and CLONE_VM it uses its parent's memory, and the parent sleeps until the child
 * ends or calls exec. Returns its pid, -EAGAIN when there are too many tasks, -ENOMEM, or -EINVAL
 * for flags that only threads need.
 */
int process_fork(const struct fork_request *request);

/* Options of wait4. */
#define WAIT_OWN     0x20000000u /* not those of other threads: there are none */
#define WAIT_ALL     0x40000000u /* whatever signal their end sends */
#define WAIT_CLONES  0x80000000u /* only those whose end does not send SIGCHLD */
#define WAIT_KINDS   (WAIT_OWN | WAIT_ALL | WAIT_CLONES)
#define WAIT_OPTIONS (WNOHANG | WUNTRACED | WCONTINUED | WAIT_KINDS) /* of wait4 */

#define PRCTL_SET_SUBREAPER 36 /* prctl: sets adopts in struct process */

/* prctl's other commands. */
int prctl_more(const struct trap_frame *frame) OPTIONAL;

#define WAIT_STATUS_STOPPED 0x7f /* the low byte; the signal is above it */
#define WAIT_STATUS_GOES_ON 0xffff

struct wait_news {
	int32_t status; /* as wait4 tells it */
	uint32_t user_ticks, system_ticks;
	struct task_counts counts; /* of one that has ended */
};

/*
 * Waits for news of children: all of them (which = -1), one pid (> 0), its own group's (0), or
 * another group's (< -1). A child that has ended is gone after that. Returns the child's pid, 0
 * with WNOHANG when there are none yet, -ECHILD without such children, -EINVAL, or -ERESTART.
 */
int process_wait(int32_t which, uint32_t options, struct wait_news *news);

/* Called after process_wait has news: what the task has learnt of a child is its program's. */
void usage_fetched(const struct wait_news *news) OPTIONAL;

/* Writes what a child has used to a user address, for wait4. Returns 0 or -EFAULT. */
int wait_give_usage(uint32_t address, const struct wait_news *news) OPTIONAL;

/* Does `which` (waitpid's first argument) select this child of the current task? */
bool process_is_meant(const struct process *child, int32_t which);

/* Fetches a child's news without freeing it. */
void process_fetch(struct process *child, struct wait_news *news);

/* Tells the parent with SIGCHLD, and wakes it if it waits. code is one of CLD_... From any context.
 */
void process_notify_parent(struct process *process, int32_t code, int32_t status);

/* Is there no member of the process's group whose parent is in another group of the session, and
 * could continue it? The terminal does not stop such a group. */
bool process_group_is_orphaned(const struct process *member);

/* Ends the machine, with the status that a shell would give this program. */
void exec_end_machine(const char *name, int32_t status) __attribute__((noreturn));
