/*
 * The command `trace`, for the measurement: what does it cost to record each system call, and what
 * would it cost to print each one?
 *
 *	trace off	run /bin/callcost null		the call alone
 *	trace ring	run /bin/callcost null		with a record in the ring
 *	trace printk	run /bin/callcost null 510	a call that prints a line on the console
 */
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/syscall/syscall_trace.h"
#include "kernel/task/task.h"

/* getpid as it must not be: with printk in its path. For the measurement, under a number that Linux
 * does not have. */
static int print_getpid(struct trap_frame *frame)
{
	printk("%d getpid()\n", current->pid);
	return current->pid;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 510, "print_getpid", "", print_getpid },
};

static int run_trace(int count, char **words)
{
	syscall_trace_on = strcmp(words[1], "ring") == 0;
	return 0;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "trace", "off|ring|printk", "record system calls; printk: call 510", 1, run_trace },
};
