/*
 * The commands that lesson 4 adds: programs, threads, and the scheduler.
 *
 *	run /bin/sh		a program, as a task of its own; the command waits for it
 *	threads			every task: pid, parent, processor time, niceness, state
 *	spin 3			three threads compute for a second: how much does each get?
 *	sched fair		another scheduling class, at once, for all tasks
 *
 * The commands run in the first task, which has pre-emption disabled (labs/lesson4/first_task.c):
 * they sleep, but nothing takes the processor from them.
 */
#include "fs/tty/tty.h"
#include "kernel/lib/divide.h"
#include "kernel/process/exec.h"
#include "kernel/process/family.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "labs/lesson4/programs.h"

/* The terminal gets the keys while the program runs. */
static int run_run(int count, char **words)
{
	tty_listen(true);
	int32_t status = program_run(count - 1, words + 1);

	tty_listen(false);
	return exec_report(words[1], status);
}

/* Processor time is counted in TSC cycles, and shown in milliseconds. The letters are those of ps:
 * runs, sleeps, blocked, stopped, zombie. */
static int run_threads(int count, char **words)
{
	static const char lives[] = { 'R', 'S', 'D', 'T', 'Z' };

	printk("  pid ppid      ms nice name\n");
	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		printk("%5d %4d %7u %4d %c %s\n", task->pid, process_parent_pid(task->process),
		       (uint32_t)divide64(task->schedule.total, time_tsc_khz(), NULL),
		       task->schedule.nice, lives[task->life], task->name);
	return 0;
}

/* Without an argument it only shows the class in use. */
static int run_sched(int count, char **words)
{
	if (count > 1 && sched_use(words[1]) != 0) {
		printk("sched: unknown class %s (rr, mlfq, fair)\n", words[1]);
		return 1;
	}
	printk("sched: %s\n", sched_class->name);
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "run", "PROGRAM [WORD...]", "runs a program in user mode, to its end", 1, run_run },
	{ "threads", "", "lists every task", 0, run_threads },
	{ "sched", "[rr|mlfq|fair]", "shows or chooses the scheduling class", 0, run_sched },
};
