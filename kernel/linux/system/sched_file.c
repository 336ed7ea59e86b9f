/*
 * /proc/sched shows the scheduler's state; writing a class's name to it chooses that class.
 *
 *	cat /proc/sched			class rr, quantum 2 ticks, switches 120
 *	echo fair > /proc/sched		from the next switch on
 */
#include "fs/proc/procfs.h"
#include "kernel/task/sched.h"

/* The quantum is in ticks; switches are counted since the machine began. */
static void sched_file_show(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "class %s\nquantum %u ticks\nswitches %u\n", sched_class->name,
		     sched_quantum, sched_trace.total);
}

/* The class's error for a name that there is not. */
static int sched_file_store(const void *unused, const char *line)
{
	return sched_use(line);
}

PROCFS_ENTRY(&procfs_root, sched, "sched", .show = sched_file_show, .store = sched_file_store)
