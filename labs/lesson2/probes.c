/*
 * The command `probe`: what happens when user mode tries something forbidden.
 *
 * Each probe is a few instructions of labs/lesson2/probe_code.asm. They are copied to a page that
 * user mode may access, run there, and end with an exception, which is the answer:
 *
 *	probe nothing		vector 6: the UD2 after the probe, because nothing has stopped it
 *
 * The page is 4 MiB at USER_BASE in the kernel's own page directory: code from its start, the stack
 * at its end, and the argument on top of the stack. One at a time, from the monitor:
 *
 *	ring3_run --> user_enter --IRET--> user mode --exception--> trap_dispatch
 *	      ^		     ^						|
 *	      +---return-----+---------------user_leave--------user_mode_exception
 *
 * user_enter remembers the stack pointer, and user_leave takes it back: a setjmp and longjmp across
 * a privilege level. There is one such place, so a visit cannot contain another one.
 *
 * From lesson 3 on programs take the place of probes: this file is not linked any more.
 */
#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/lib/number.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/cpu/task_state.h"
#include "kernel/cpu/trap.h"
#include "kernel/cpu/user_entry.h"
#include "labs/lesson2/probes.h"
#include "mm/page_alloc.h"

#define USER_BASE  0x08000000u /* one page of 4 MiB for user mode */
#define USER_ORDER 10
#define USER_PAGE  0x087 /* present, writable, for user mode, 4 MiB */

struct probe {
	const char *name;
	const uint8_t *code;
	uint32_t length;
};

extern const struct probe probe_table[]; /* labs/lesson2/probe_code.asm; ends with a name of NULL */

/* The latest visit; the host reads it out of guest memory. */
struct user_visit probe_visit;

/* An exception ends the visit. What the trap has pushed on the kernel's stack is dropped, because
 * user_leave never returns here. */
static void user_mode_exception(struct trap_frame *frame)
{
	probe_visit = (struct user_visit){
		.vector = frame->vector,
		.error_code = frame->error_code,
		.address = trap_fault_address(),
		.eip = frame->eip,
		.eflags = frame->eflags,
		.cs = frame->cs,
		.ss = frame->user_ss,
		.eax = frame->eax,
	};
	user_leave();
}

/* The kernel's address of the user page, which is mapped at the first use. It need not be flushed:
 * the entry was not present before. */
static uint8_t *user_page(void)
{
	static uint8_t *page;

	if (page)
		return page;
	page = page_alloc(USER_ORDER);
	if (!page)
		panic("no 4 MiB of memory are free for ring 3");
	kernel_page_directory[USER_BASE >> LARGE_SHIFT] = physical_address(page) | USER_PAGE;
	return page;
}

/* By name; NULL if there is none. */
static const struct probe *find_probe(const char *name)
{
	for (const struct probe *probe = probe_table; probe->name; probe++)
		if (strcmp(probe->name, name) == 0)
			return probe;
	return NULL;
}

/* Copies through the direct map: the same memory at two addresses, and only one of them for user
 * mode. */
const struct user_visit *ring3_run(const uint8_t *code, uint32_t length, uint32_t argument)
{
	const uint32_t size = PAGE_SIZE << USER_ORDER, top = size - 16;
	uint8_t *page = user_page();

	memcpy(page, code, length);
	memcpy(page + top, &argument, sizeof(argument));
	trap_user_handler = user_mode_exception;
	user_enter(USER_BASE, USER_BASE + top);
	trap_user_handler = NULL;
	return &probe_visit;
}

/* The host reads probe_visit from memory; the line is for people. */
static int run_probe(int count, char **arguments)
{
	const struct probe *probe = find_probe(arguments[1]);
	uint64_t argument = 0;

	if (!probe) {
		printk("probe: %s is not in labs/lesson2/probe_code.asm\n", arguments[1]);
		return EXIT_FAILURE;
	}
	if (count > 2 && (!number_parse(arguments[2], &argument) || argument > UINT32_MAX)) {
		printk("probe: %s is not a 32-bit number\n", arguments[2]);
		return EXIT_FAILURE;
	}
	ring3_run(probe->code, probe->length, argument);
	printk("probe %s: vector %u, error code 0x%x, address 0x%08x, eip 0x%08x, eax 0x%08x\n",
	       probe->name, probe_visit.vector, probe_visit.error_code, probe_visit.address,
	       probe_visit.eip, probe_visit.eax);
	return EXIT_SUCCESS;
}

/* Clears the port's bit in the I/O permission map. There is no command that takes it back. */
static int run_allow(int count, char **arguments)
{
	uint64_t port;

	if (!number_parse(arguments[1], &port) || port >= IO_PORTS) {
		printk("allow: %s is not a port\n", arguments[1]);
		return EXIT_FAILURE;
	}
	task_state_allow_port(port);
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "probe", "NAME [ARGUMENT]", "user mode tries: cli, read 0xc0100000", 1, run_probe },
	{ "allow", "PORT", "let user mode use a port", 1, run_allow },
};
