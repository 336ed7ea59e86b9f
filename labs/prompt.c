/*
 * The prompt of the course's kernels: commands from the host's script, or from a person.
 *
 *	setting "script" given:	run its lines; the first status that is not 0 ends the machine
 *	otherwise:		read lines for ever
 *
 * Tests and measurements use the first way, with QEMU's exit code as their result. What `get` and
 * `idle` are depends on the lesson: polling at first, then a processor that halts until the next
 * interrupt, then a task that sleeps.
 */
#include "labs/prompt.h"

#include "drivers/qemu/settings.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define SCRIPT_ORDER 5 /* 128 KiB */

static int (*get)(void);
static void (*idle)(void);

/* Waits for a character: polls, halts or sleeps, as the lesson can. */
static char get_character(void)
{
	int character;

	while ((character = get()) < 0)
		idle();
	return character;
}

/* Runs the host's script, if there is one, and ends the machine with its status. */
static void run_script(void)
{
	uint32_t size = PAGE_SIZE << SCRIPT_ORDER;
	char *script = page_alloc(SCRIPT_ORDER);

	if (!script)
		panic("no memory for the script");
	int length = setting_read("script", script, size);

	if (length >= (int32_t)size)
		panic("the script has %d bytes; %u is the limit", length, size - 1);
	if (length >= 0)
		machine_exit(monitor_script(script));
	page_free(script, SCRIPT_ORDER);
}

/* The end of kmain, or of the first task: does not return. */
void prompt(int (*get_typed)(void), void (*while_idle)(void))
{
	get = get_typed;
	idle = while_idle;
	run_script();
	printk("Type help for the commands, exit to leave.\n");
	monitor_converse(get_character);
}
