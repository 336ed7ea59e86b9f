/* Exceptions and interrupts: which function handles each vector. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/lib/optional.h"

#define VECTORS	   256
#define EXCEPTIONS 32 /* vectors 0 to 31 belong to the processor: Intel SDM volume 3, table 6-1 */

#define VECTOR_DOUBLE_FAULT 8
#define VECTOR_PAGE_FAULT   14

/* What kernel/cpu/trap_entry.asm leaves on the stack, from the lowest address up. */
struct trap_frame {
	uint32_t edi, esi, ebp, esp_ignored, ebx, edx, ecx, eax; /* as PUSHA */
	uint32_t gs, fs, es, ds;
	uint32_t vector;
	uint32_t error_code;	    /* 0 where the processor pushes none */
	uint32_t eip, cs, eflags;   /* pushed by the processor, as are the two below */
	uint32_t user_esp, user_ss; /* only there when the trap came from user mode */
};

/* Where ESP was when a trap came from the kernel itself: the processor pushes no ESP then, but
 * PUSHA saw it, further down. */
static inline uint32_t trap_kernel_esp(const struct trap_frame *frame)
{
	return frame->esp_ignored + offsetof(struct trap_frame, user_esp) -
	       offsetof(struct trap_frame, gs);
}

/* Offsets in it, for assembly. */
#define FRAME_EBP 8
#define FRAME_EDX 20
#define FRAME_ECX 24
#define FRAME_EAX 28
#define FRAME_EIP 56
#define FRAME_ESP 68

#define AT_OFFSET(member, offset)                                                                  \
	_Static_assert(offsetof(struct trap_frame, member) == (offset), #member)
AT_OFFSET(ebp, FRAME_EBP);
AT_OFFSET(edx, FRAME_EDX);
AT_OFFSET(ecx, FRAME_ECX);
AT_OFFSET(eax, FRAME_EAX);
AT_OFFSET(eip, FRAME_EIP);
AT_OFFSET(user_esp, FRAME_ESP);
#undef AT_OFFSET

/* Loads the interrupt descriptor table. Every vector is reported until somebody registers for it.
 */
void trap_initialize(void);

/* Calls handler for each trap on this vector, with interrupts disabled; it may change the frame. */
void trap_register(unsigned vector, void (*handler)(struct trap_frame *frame));

/* Called for each exception in user mode that nobody registered for; NULL: it is reported. */
extern void (*trap_user_handler)(struct trap_frame *frame);

/* For a handler that cannot handle a trap: does what would happen if it were not registered. */
void trap_decline(struct trap_frame *frame);

/* From now on the function is called for each exception in the kernel itself that has no handler;
 * it returns true if it has repaired the frame. At most four functions. */
void trap_register_fixup(bool (*fixup)(struct trap_frame *frame));

/*
 * If trap_return_work is not 0, there is work to do before a trap or a system call returns:
 * trap_do_work is called with the frame, with interrupts disabled. frame->cs says whether the trap
 * came from user mode. The function may run other tasks meanwhile. It must be set before any bit of
 * trap_return_work is.
 */
extern volatile uint32_t trap_return_work;
extern void (*trap_do_work)(struct trap_frame *frame);

/* Does that work. It is for the entries of system calls, which are not in
 * kernel/cpu/trap_entry.asm. */
void trap_return(struct trap_frame *frame);

/* A double fault is reported with what this makes of the last page fault's address: a sentence that
 * says what may have happened, or NULL. The owner of the stacks defines it. */
const char *trap_explain_double_fault(uint32_t address) OPTIONAL;

/* The name of an exception, such as "page fault". */
const char *trap_name(unsigned vector);

/* A panic with the registers of the frame, whose backtrace begins where the trap came from. */
void trap_panic(const struct trap_frame *frame, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* CR2: the address of the last page fault. The next one overwrites it: read it before anything that
 * may fault, with interrupts disabled. */
static inline uint32_t trap_fault_address(void)
{
	uint32_t address;

	__asm__ volatile("movl %%cr2, %0" : "=r"(address));
	return address;
}
