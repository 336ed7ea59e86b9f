/*
 * Panic: what happened, where, and through which callers; then the run ends.
 *
 *	PANIC: mm/pool.c:31: not true: pool->size <= PAGE_SIZE
 *	backtrace: 0xc0104a51 pool_alloc+0x41
 *	backtrace: ...
 *
 * Interrupts are disabled first and stay disabled, so the state is the one that failed. The report
 * uses no memory but the stack and waits for nothing. Then machine_exit ends the run with
 * EXIT_PANIC, which a grader on the host sees as an exit code. Panics are for broken invariants of
 * the kernel; a program's mistake ends the program.
 */
#include "kernel/report/panic.h"

#include "kernel/report/backtrace.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/printk.h"

void panic_announce(const char *format, va_list arguments)
{
	char message[256];

	interrupts_disable();
	vsnprintk(message, sizeof(message), format, arguments);
	printk("\nPANIC: %s\n", message);
}

/* The backtrace begins at this function's own frame, so its first line is the caller. For a trap
 * the interesting frame is another one: kernel/cpu/trap.c prints its own message and backtrace. */
void panic(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	panic_announce(format, arguments);
	va_end(arguments);
	backtrace((uintptr_t)__builtin_frame_address(0));
	machine_exit(EXIT_PANIC);
}
