/*
 * The first task, and how the scheduler starts: the same in the kernels of lesson 4 and those after
 * it.
 *
 *	script given	the monitor runs it
 *	cmd given	/bin/sh -c cmd, and the machine ends with its status
 *	neither		becomes /init, the first program
 *
 * Everything that may sleep (files, programs) happens in the first task. kmain itself becomes the
 * idle task and must never sleep, because then there is no other to run in its place.
 */
#include "labs/lesson4/first_task.h"

#include "drivers/clock/pit.h"
#include "drivers/console/keyboard.h"
#include "drivers/qemu/settings.h"
#include "fs/tty/tty.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "labs/lesson4/programs.h"
#include "labs/prompt.h"
#include "mm/kernel_stack.h"

#define COMMAND_SIZE 1024

/* Waiting for a key, when the prompt polls. */
static void rest(void)
{
	msleep(10);
}

/* Returns only if there is no command. */
static void run_command(void)
{
	static char command[COMMAND_SIZE];
	static char *const words[] = { "/bin/sh", "-c", command };
	int length = setting_read("cmd", command, sizeof(command));

	if (length < 0)
		return;
	if ((uint32_t)length >= sizeof(command))
		panic("the command has %d bytes; at most %u are allowed", length, COMMAND_SIZE - 1);
	exec_end_machine("the command", program_run(3, words));
}

/* Continues as the first of these programs that can be loaded. */
static void become_init(void)
{
	static char *const names[] = { "/init", "/bin/init", "/bin/sh" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int error = program_become(1, &names[i]);

		if (error == 0)
			program_enter(current->frame);
		printk("init: %s: %s\n", names[i], errno_name(-error));
	}
	printk("init: none of them could be started; here is the kernel's own prompt\n");
}

/* Pre-emption stays disabled: this is kernel code that shares data with system calls. */
void first_task(void *argument)
{
	char script[1];

	preempt_disable();
	if (first_task_prepare)
		first_task_prepare();
	if (setting_read("script", script, sizeof(script)) < 0) {
		run_command();
		become_init();
	}
	tty_listen(false);
	prompt(keyboard_or_serial_get, rest);
}

/* ---- the scheduler ---- */

/* The host's settings `sched` and `quantum`: a wrong one would spoil an experiment, so it panics.
 */
static void choose_class(void)
{
	char name[8] = "rr";

	setting_read("sched", name, sizeof(name));
	if (sched_use(name) != 0)
		panic("sched: unknown class %s (rr, mlfq, fair)", name);
	sched_quantum = setting_number("quantum", sched_quantum);
	if (sched_quantum < 1 || sched_quantum > 1000)
		panic("quantum must be 1 to 1000 ticks, not %u", sched_quantum);
}

/* The timer is connected last: it needs a current task and a class. */
void tasks_initialize(void)
{
	fpu_initialize();
	kernel_stack_initialize();
	sched_initialize();
	signal_initialize();
	choose_class();
	trap_do_work = sched_work;
	pit_on_tick = sched_tick;
}
