/*
 * The commands of lesson 1: the memory map, and a panic to see its backtrace.
 *
 * A command gets its words as main gets argv, and returns an exit status. Unused parameters have no
 * mark: the Makefile allows them, because every command has the same two.
 */
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

/* Memory that is usable but not free is the kernel, the first MiB, and allocated pages. */
static int run_memory(int count, char **arguments)
{
	memory_map_print();
	printk("memory: %zu of %llu KiB free\n", page_free_count() * (PAGE_SIZE / 1024),
	       memory_map_usable());
	return EXIT_SUCCESS;
}

/* The backtrace shows this function, and the monitor's functions that called it. */
static int run_panic(int count, char **arguments)
{
	panic("asked for by the command line");
}

static const struct command commands[] COMMAND_TABLE = {
	{ "memory", "", "the memory map, and what is free", 0, run_memory },
	{ "panic", "", "give up on purpose, to see the backtrace", 0, run_panic },
};
