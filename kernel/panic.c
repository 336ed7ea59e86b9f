/* The last words of the kernel: what, where, and how it got there. */
#include "kernel/panic.h"

#include <stdbool.h>
#include <stddef.h>

#include "kernel/interrupts.h"
#include "kernel/machine.h"
#include "kernel/printk.h"
#include "kernel/trap.h"

#define FRAMES_AT_MOST 32

/* What the caller's prologue left on the stack: push %ebp; mov %esp, %ebp. */
struct stack_frame {
	struct stack_frame *caller;
	uintptr_t return_address;
};

extern const char boot_stack[], boot_stack_top[];

static bool is_frame(const struct stack_frame *frame)
{
	uintptr_t address = (uintptr_t)frame;

	return address % sizeof(uintptr_t) == 0 && address >= (uintptr_t)boot_stack &&
	       address <= (uintptr_t)boot_stack_top - sizeof(*frame);
}

void backtrace(uintptr_t eip, uintptr_t ebp)
{
	const struct stack_frame *frame = (const void *)ebp;

	printk("backtrace: %pS\n", (void *)eip);
	for (unsigned i = 0; i < FRAMES_AT_MOST && is_frame(frame); i++) {
		/* A call is the last instruction of a function that does not return: look up the call,
		 * not what stands behind it. */
		printk("backtrace: %pS\n", (void *)(frame->return_address - 1));
		if (frame->caller <= frame)
			return;
		frame = frame->caller;
	}
}

static void print_message(const char *format, va_list arguments)
{
	char message[256];

	vsnprintk(message, sizeof(message), format, arguments);
	printk("\nPANIC: %s\n", message);
}

void panic(const char *format, ...)
{
	va_list arguments;

	interrupts_disable();
	va_start(arguments, format);
	print_message(format, arguments);
	va_end(arguments);
	backtrace((uintptr_t)__builtin_return_address(0) - 1,
		  *(uintptr_t *)__builtin_frame_address(0));
	machine_exit(EXIT_PANIC);
}

void panic_in_trap(const struct trap_frame *frame, const char *format, ...)
{
	va_list arguments;

	interrupts_disable();
	va_start(arguments, format);
	print_message(format, arguments);
	va_end(arguments);
	trap_frame_print(frame);
	backtrace(frame->eip, frame->ebp);
	machine_exit(EXIT_PANIC);
}
