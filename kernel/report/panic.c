/* The last words of the kernel: what, where, and how it got there. */
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

void panic(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	panic_announce(format, arguments);
	va_end(arguments);
	backtrace((uintptr_t)__builtin_frame_address(0));
	machine_exit(EXIT_PANIC);
}
