/*
 * The commands of lesson 2: they crash the kernel on purpose, to see what it reports.
 *
 *	crash null	a page fault: the report names the address and the function
 *	crash stack	a double fault: even the frame of the first exception cannot be pushed
 *	crash triple	a reset: not even the double fault has a gate
 *
 * Every crash but "hang" and "triple" ends the run with EXIT_PANIC; the tests compare the reports
 * with what really happened.
 */
#include "kernel/cpu/memory_layout.h"
#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"

/* In assembly, because a division by a constant 0 is undefined in C, and the compiler may remove
 * it. */
static void divide(void)
{
	__asm__ volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; divl %%ecx"
			 :
			 :
			 : "eax", "ecx", "edx");
}

/* Near 0, where nothing is mapped so that null pointers fault. */
static void null_pointer(void)
{
	*(volatile uint32_t *)0x1234 = 1;
}

/* Writes to where no memory is mapped, above the direct map: 0xf8000000. */
static void wild_pointer(void)
{
	*(volatile uint32_t *)(KERNEL_BASE + DIRECT_MAP_SIZE) = 1;
}

/* The push faults, and so does the frame of that fault. */
static void unmapped_stack(void)
{
	__asm__ volatile("movl $0x2000, %esp; pushl $0");
}

/* Triple fault: no exception can be delivered once the table of gates is empty. */
static void empty_table(void)
{
	struct table_pointer pointer = { 0, 0 };

	__asm__ volatile("lidt %0; ud2" : : "m"(pointer));
}

/* For the host's time limit, and for a debugger: what does a hanging machine look like? */
static void hang(void)
{
	interrupts_disable();
	for (;;)
		;
}

static const struct {
	const char *name;
	void (*run)(void);
} crashes[] = {
	{ "divide", divide },	     { "null", null_pointer },	{ "wild", wild_pointer },
	{ "stack", unmapped_stack }, { "triple", empty_table }, { "hang", hang },
};

/* Returns only for an unknown kind. */
static int run_crash(int count, char **arguments)
{
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (strcmp(crashes[i].name, arguments[1]) == 0)
			crashes[i].run();
	printk("crash: not one of divide null wild stack triple hang\n");
	return EXIT_FAILURE;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "crash", "KIND", "crash on purpose: null, stack, hang, ...", 1, run_crash },
};
