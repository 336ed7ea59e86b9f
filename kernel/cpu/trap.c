/*
 * Exceptions and interrupts: the handler of each vector, and a report in words if there is none.
 *
 *	processor --gate--> trap_entry.asm's stub --> trap_dispatch(frame)
 *							|
 *	  1. handlers[vector]		somebody registered: devices, system calls, page faults
 *	  2. trap_user_handler		an exception in user mode: the program's fault (SIGSEGV ...)
 *	  3. fixups			an exception in the kernel that was expected: user_copy
 *	  4. report			none of them: panic
 *							|
 *	  trap_return_work != 0? trap_do_work(frame)	signals, another task's turn
 *							|
 *	processor <--IRET-- trap_entry.asm <------------+
 *
 * The first that applies handles it. Every gate is an interrupt gate, so all of this runs with
 * interrupts disabled; a handler may enable them, and may change the frame, which IRET loads back.
 * The stack is the current task's: a handler of an exception may sleep if the interrupted code
 * could have, a handler of an interrupt must not.
 *
 * The error codes' bits are in the Intel SDM volume 3: 4.7 (page faults) and 6.13 (selectors).
 */
#include "kernel/cpu/trap.h"

#include "kernel/report/backtrace.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"

static void (*handlers[VECTORS])(struct trap_frame *frame);
#define FIXUPS 4
static bool (*fixups[FIXUPS])(struct trap_frame *frame);
void (*trap_user_handler)(struct trap_frame *frame);
void (*trap_do_work)(struct trap_frame *frame);
volatile uint32_t trap_return_work;

/* Intel SDM volume 3, table 6-1 and section 6.15: those that a PC without a hypervisor raises. */
static const struct {
	const char *name;
	const char *meaning; /* NULL where the error code says it better */
} exceptions[EXCEPTIONS] = {
	[0] = { "divide error", "a division by zero, or a quotient too large for its register" },
	[1] = { "debug exception", "a breakpoint of the debug registers, or a single step" },
	[2] = { "non-maskable interrupt", "the hardware reports an error" },
	[3] = { "breakpoint", "an INT3 instruction" },
	[4] = { "overflow", "an INTO instruction with the overflow flag set" },
	[5] = { "bound range exceeded", "a BOUND instruction with an index outside its bounds" },
	[6] = { "invalid opcode", "these bytes are not an instruction: was data executed?" },
	[7] = { "device not available", "a floating-point instruction, and the unit is off" },
	[8] = { "double fault", "a second exception while the first was being delivered" },
	[10] = { "invalid TSS", NULL },
	[11] = { "segment not present", NULL },
	[12] = { "stack-segment fault", NULL },
	[13] = { "general protection fault", NULL },
	[14] = { "page fault", NULL },
	[16] = { "x87 floating-point error", "the unit's status word says which" },
	[17] = { "alignment check", "ring 3 used an address that is not aligned to its size" },
	[18] = { "machine check", "the processor reports a hardware error" },
	[19] = { "SIMD floating-point exception", "the MXCSR register says which" },
};

/* For messages; the vectors from 32 on are interrupts, named by their device elsewhere. */
const char *trap_name(unsigned vector)
{
	if (vector >= EXCEPTIONS)
		return "interrupt";
	return exceptions[vector].name ? exceptions[vector].name : "reserved exception";
}

/* The last two bits of CS are the privilege level that was interrupted. */
static uint32_t frame_esp(const struct trap_frame *frame)
{
	return frame->cs & 3 ? frame->user_esp : trap_kernel_esp(frame);
}

/* The registers as they were when the trap came. */
static void print_frame(const struct trap_frame *frame)
{
	char place[80];

	symbol_describe(frame->eip, place, sizeof(place));
	printk("  eip %s  cs %04x  eflags %08x\n", place, frame->cs & 0xffff, frame->eflags);
	printk("  eax %08x  ebx %08x  ecx %08x  edx %08x\n", frame->eax, frame->ebx, frame->ecx,
	       frame->edx);
	printk("  esi %08x  edi %08x  ebp %08x  esp %08x\n", frame->esi, frame->edi, frame->ebp,
	       frame_esp(frame));
}

/* Intel SDM volume 3, 4.7: the bits that the processor pushes for a page fault. */
static void describe_page_fault(uint32_t error, char *text, size_t size)
{
	snprintk(text, size, "%s %s address 0x%08x: %s%s", error & 4 ? "user code" : "the kernel",
		 error & 16  ? "executed at"
		 : error & 2 ? "wrote to"
			     : "read from",
		 trap_fault_address(), error & 1 ? "the page is protected" : "no page is there",
		 error & 8 ? ", a reserved bit is set in its tables" : "");
}

/* Intel SDM volume 3, 6.13: a selector, and the table of its descriptor. */
static void describe_selector(uint32_t error, char *text, size_t size)
{
	static const char *const tables[] = { "GDT", "IDT", "LDT", "IDT" };

	if (error == 0)
		snprintk(text, size, "no selector is to blame: an address or an instruction is");
	else
		snprintk(text, size, "entry %u of the %s%s", error >> 3, tables[error >> 1 & 3],
			 error & 1 ? ", during an external event" : "");
}

/* Only called for exceptions (vector < 32). */
static void describe_error(uint32_t vector, uint32_t error, char *text, size_t size)
{
	if (vector == VECTOR_PAGE_FAULT)
		describe_page_fault(error, text, size);
	else if (vector >= 10 && vector <= 13)
		describe_selector(error, text, size);
	else
		snprintk(text, size, "%s",
			 exceptions[vector].meaning ?: "no processor we know raises this");
}

void trap_panic(const struct trap_frame *frame, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	panic_announce(format, arguments);
	va_end(arguments);
	print_frame(frame);
	backtrace_interrupted(frame->eip, frame_esp(frame), frame->ebp);
	machine_exit(EXIT_PANIC);
}

/* Step 4: nobody handles it, and the kernel cannot go on. */
static void __attribute__((noreturn)) report(const struct trap_frame *frame)
{
	char detail[120];

	if (frame->vector >= EXCEPTIONS)
		trap_panic(frame, "interrupt vector %u has no handler", frame->vector);
	describe_error(frame->vector, frame->error_code, detail, sizeof(detail));
	trap_panic(frame, "exception %u, %s (error code 0x%x): %s", frame->vector,
		   trap_name(frame->vector), frame->error_code, detail);
}

/* The fixups are asked in order, until one of them has repaired the frame. The table is filled from
 * the front. */
void trap_decline(struct trap_frame *frame)
{
	if ((frame->cs & 3) == 3 && trap_user_handler) {
		trap_user_handler(frame);
		return;
	}
	for (unsigned i = 0; i < FIXUPS && fixups[i]; i++)
		if (fixups[i](frame))
			return;
	report(frame);
}

/* Called by kernel/cpu/trap_entry.asm for every trap. */
void trap_dispatch(struct trap_frame *frame);

void trap_dispatch(struct trap_frame *frame)
{
	void (*handler)(struct trap_frame *) = handlers[frame->vector];

	if (handler)
		handler(frame);
	else
		trap_decline(frame);
	if (trap_return_work)
		trap_return(frame);
}

void trap_return(struct trap_frame *frame)
{
	trap_do_work(frame);
}

/* At boot; the functions are asked in this order. */
void trap_register_fixup(bool (*fixup)(struct trap_frame *frame))
{
	unsigned i = 0;

	while (fixups[i])
		ASSERT(++i < FIXUPS);
	fixups[i] = fixup;
}

/* NULL unregisters. A pointer is written at once, so an interrupt sees the old handler or the new
 * one. */
void trap_register(unsigned vector, void (*handler)(struct trap_frame *frame))
{
	ASSERT(vector < VECTORS);
	handlers[vector] = handler;
}
