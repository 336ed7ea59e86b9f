/*
 * The commands that lesson 3 adds: run programs, and see their system calls.
 *
 *	run /bin/hello a b	load it, enter user mode, and wait for its end
 *	strace /bin/hello	the same, with every system call printed afterwards
 *
 * A program runs in the monitor's own context: exec fills the one address space, and
 * task_single_run comes back when the program exits or is killed. While it runs, the keyboard's and
 * the serial line's characters go to its terminal.
 */
#include "fs/tty/tty.h"
#include "fs/files.h"
#include "kernel/process/exec.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/syscall/syscall_trace.h"
#include "kernel/process/process.h"
#include "kernel/process/single.h"

#define LINE 160

/* Loads the program and runs it to its end. Returns its wait status, or a negated errno. */
static int run_program(int count, char **words)
{
	struct trap_frame frame;
	int32_t status = exec_at_terminal(count, words, &frame);

	if (status == 0) {
		tty_listen(true);
		status = task_single_run(&frame);
		tty_listen(false);
	}
	if (current->process->files)
		files_destroy(current->process->files);
	current->process->files = NULL;
	return status;
}

/* Prints how it ended, and returns a status as a shell has it. */
static int run_run(int count, char **words)
{
	return exec_report(words[1], run_program(count - 1, words + 1));
}

/* Prints the records from number `next` on. The ring may have overwritten some: those are counted.
 */
static void print_trace(uint32_t next)
{
	struct syscall_record record;
	char line[LINE];
	uint32_t lost = 0;

	while (syscall_trace_read(&next, &record, 1, &lost) == 1) {
		syscall_trace_format(&record, line, sizeof(line));
		printk("%s", line);
	}
	if (lost > 0)
		printk("%u earlier calls were overwritten\n", lost);
}

/* Recording costs a few hundred cycles a call, so it is on only while the program runs. */
static int run_strace(int count, char **words)
{
	uint32_t start = syscall_trace.total;

	syscall_trace_on = true;
	int32_t status = run_program(count - 1, words + 1);

	syscall_trace_on = false;
	print_trace(start);
	return exec_report(words[1], status);
}

static const struct command commands[] COMMAND_TABLE = {
	{ "run", "PROGRAM [WORD...]", "runs a program in user mode, to its end", 1, run_run },
	{ "strace", "PROGRAM [WORD...]", "the same, and shows its system calls", 1, run_strace },
};
