/*
 * The command `faults`: how much of its memory a program touches, and how many page faults that
 * takes.
 *
 *	faults 16 /bin/sh -c true	runs the program; a fault maps up to 16 pages of a file
 *
 *	faults slow /bin/sh -c true	runs the program; after each fault others run first
 *
 * With 1 in place of 16 no page is mapped that was not touched: then the most pages that the
 * program had are those that it touched. Only raw figures are printed; labs/lesson6/measure.py
 * makes tables of them.
 */

#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/task/wait.h"
#include "kernel/process/page_fault.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/cpu/memory_layout.h"
#include "labs/lesson4/programs.h"
#include "mm/fault.h"
#include "mm/space_map.h"

#define MOST 1024u /* pages: what one table maps */

static struct {
	uint32_t faults, writes; /* of all spaces */
	uint32_t pages, bytes;	 /* the most that one space had in memory, and in its areas */
} seen;

static void watch(const struct space *space, bool write)
{
	uint32_t pages = space_resident(space), bytes = space_sizes(space).mapped;

	seen.faults++;
	seen.writes += write;
	seen.pages = pages > seen.pages ? pages : seen.pages;
	seen.bytes = bytes > seen.bytes ? bytes : seen.bytes;
}

/* Every copy to or from a program that faults sleeps, so what it is a part of can be disturbed. */
static void let_others_run(const struct space *space, bool write)
{
	bool enabled = interrupts_disable();

	interrupts_restore(enabled);
	if (enabled)
		msleep(1);
}

/* Runs the program that follows the first argument; `look` sees each of its faults. */
static int run_watched(int count, char **words, void (*look)(const struct space *space, bool write))
{
	page_fault_watch = look;
	int status = program_run(count - 2, words + 2);

	page_fault_watch = NULL;
	return status != 0;
}

static int run_faults(int count, char **words)
{
	if (strcmp(words[1], "slow") == 0)
		return run_watched(count, words, let_others_run);
	uint32_t usual = fault_around_bytes, at_exec = exec_shown_bytes;
	uint64_t around;

	if (!number_parse(words[1], &around) || around < 1 || around > MOST ||
	    (around & (around - 1)) != 0) {
		printk("faults: pages around a fault must be 1, 2, 4 ... %u, or slow, not %s\n",
		       MOST, words[1]);
		return 1;
	}
	seen.faults = seen.writes = seen.pages = seen.bytes = 0;
	fault_around_bytes = around << PAGE_SHIFT;
	exec_shown_bytes = 0;
	int failed = run_watched(count, words, watch);

	fault_around_bytes = usual;
	exec_shown_bytes = at_exec;
	printk("faults: %u faults, %u to write; %u pages present of %u\n", seen.faults, seen.writes,
	       seen.pages, seen.bytes >> PAGE_SHIFT);
	return failed;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "faults", "AROUND|slow PROGRAM [WORD...]", "how much of its memory a program touches", 2,
	  run_faults },
};
