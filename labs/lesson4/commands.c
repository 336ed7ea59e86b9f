/*
 * The commands that lesson 4 adds: programs, threads, and the scheduler.
 *
 *	run /bin/sh		a program, as a task of its own; the command waits for it
 *	threads			every task: pid, parent, processor time, niceness, state
 *	spin 3			three threads compute for a second: how much does each get?
 *	sched fair		another scheduling class, at once, for all tasks
 *
 * The commands run in the first task, which has pre-emption disabled (labs/lesson4/main.c): they
 * sleep, but nothing takes the processor from them.
 */
#include "labs/lesson4/commands.h"

#include <stddef.h>

#include "fs/tty/tty.h"
#include "kernel/lib/divide.h"
#include "kernel/process/exec.h"
#include "kernel/report/monitor.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/process/process.h"
#include "kernel/task/switch.h"
#include "kernel/task/time.h"
#include "labs/lesson4/programs.h"

#define MOST_SPINNERS 16
#define SPIN_MS	      1000
#define NAP_MS	      20

/* The terminal gets the keys while the program runs. */
static int run_run(int count, char **words)
{
	tty_listen(true);
	int32_t status = program_run(count - 1, words + 1);

	tty_listen(false);
	return exec_report(words[1], status);
}

/* Processor time is counted in time stamps. */
static uint32_t milliseconds(uint64_t stamps)
{
	return divide64(stamps, time_tsc_khz(), NULL);
}

/* 0 for threads of the kernel, and for the first process. */
static int32_t parent_of(const struct task *task)
{
	const struct process *parent = task->process ? task->process->parent : NULL;

	return parent ? parent->task->pid : 0;
}

/* The letters are those of ps: runs, sleeps, blocked, stopped, zombie. */
static int run_threads(int count, char **words)
{
	static const char lives[] = { 'R', 'S', 'D', 'T', 'Z' };

	printk("  pid ppid      ms nice name\n");
	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		printk("%5d %4d %7u %4d %c %s\n", task->pid, parent_of(task),
		       milliseconds(task->schedule.total), task->schedule.nice, lives[task->life],
		       task->name);
	return 0;
}

static volatile bool spinning;

/* Never sleeps and never yields: only the tick can take the processor from it. */
static void spin(void *argument)
{
	while (spinning)
		;
}

/* Waits for the threads to end, for as long as they may need for their turns. */
static void await_end(uint32_t before)
{
	for (unsigned i = 0; i < MOST_SPINNERS && task_count > before; i++)
		msleep(SPIN_MS);
}

/* Naps for a second. Returns by how many microseconds it was late to get the processor, on the
 * average. */
static uint32_t take_naps(void)
{
	uint64_t start = time_ns(), late = 0;
	uint32_t naps = 0;

	do {
		uint64_t due = time_ns() + NAP_MS * 1000000ull;

		msleep(NAP_MS);
		late += time_ns() - due;
		naps++;
	} while (time_ns() - start < SPIN_MS * 1000000ull);
	return divide64(late, naps * 1000, NULL);
}

/* The figures are read before the threads are told to end: after that they are gone. */
static int run_spin(int count, char **words)
{
	struct task *tasks[MOST_SPINNERS];
	uint32_t before = task_count;
	uint64_t wanted;

	if (!number_parse(words[1], &wanted) || wanted > MOST_SPINNERS) {
		printk("spin: 1 to %u threads\n", MOST_SPINNERS);
		return 1;
	}
	spinning = true;
	for (unsigned i = 0; i < wanted; i++)
		tasks[i] = kthread_create("spin", spin, NULL);
	uint32_t late = take_naps();

	for (unsigned i = 0; i < wanted; i++)
		if (tasks[i])
			printk("spin: thread %d had the processor for %u ms\n", tasks[i]->pid,
			       milliseconds(tasks[i]->schedule.total));
	printk("spin: who naps for %u ms gets the processor %u us late\n", NAP_MS, late);
	spinning = false;
	await_end(before);
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

static const struct command commands[] = {
	{ "run", "PROGRAM [WORD...]", "a program in ring 3, to its end", 1, run_run },
	{ "threads", "", "every task", 0, run_threads },
	{ "spin", "N", "N threads share the processor for a second", 1, run_spin },
	{ "sched", "[rr|mlfq|fair]", "how the processor is shared", 0, run_sched },
};

void lesson4_commands_register(void)
{
	monitor_register(commands, sizeof(commands) / sizeof(commands[0]));
}
