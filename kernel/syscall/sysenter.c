/* SYSENTER: its MSRs, and a trap that only it can cause. */
#include "kernel/syscall/sysenter.h"

#include <cpuid.h>

#include "kernel/cpu/selectors.h"
#include "kernel/cpu/trap.h"

#define SYSENTER_PRESENT (1u << 11) /* CPUID 1, EDX */
#define MSR_SYSENTER_CS	 0x174
#define MSR_SYSENTER_ESP 0x175
#define MSR_SYSENTER_EIP 0x176
#define VECTOR_DEBUG	 1
#define EFLAGS_TRAP	 0x100u
#define STACK_WORDS	 256

/* In kernel/syscall/sysenter_entry.asm. */
void sysenter_entry(void);

/* Only for a trap at the first instruction of sysenter_entry, before it has taken the task's stack.
 */
static uint32_t first_stack[STACK_WORDS] __attribute__((aligned(16)));

/* EXERCISE 3.4 (sysenter, part 1):

   - sysenter_is_there: does CPUID leaf 1 report SEP? (A Pentium Pro reports it without having
     the instruction. The kernel needs SSE, which a Pentium Pro does not have.)
   - sysenter_initialize: if so, programs the three MSRs of SYSENTER for the kernel's code
     segment, a stack, and sysenter_entry; and registers sysenter_fix_up with trap_register_fixup
     (kernel/cpu/trap.h). Otherwise does nothing.
   - sysenter_fix_up (your own function): SYSENTER keeps the trap flag, so a program can make the
     kernel single-step. For the debug exception at sysenter_entry, and for no other trap, it
     clears the flag in the frame and returns true.

   Pitfalls: the stack is first_stack, and it grows down from the address in MSR 0x175. The debug
   exception needs that stack: it comes before sysenter_entry has loaded another one. */
/* SOLUTION 3.4 { */
static void write_register(uint32_t number, uint32_t value)
{
	__asm__ volatile("wrmsr" : : "c"(number), "a"(value), "d"(0));
}

bool sysenter_is_there(void)
{
	uint32_t eax, ebx, ecx, edx;

	__cpuid(1, eax, ebx, ecx, edx);
	return edx & SYSENTER_PRESENT;
}

static bool sysenter_fix_up(struct trap_frame *frame)
{
	if (frame->vector != VECTOR_DEBUG || frame->eip != (uintptr_t)sysenter_entry)
		return false;
	frame->eflags &= ~EFLAGS_TRAP;
	return true;
}

void sysenter_initialize(void)
{
	if (!sysenter_is_there())
		return;
	write_register(MSR_SYSENTER_CS, KERNEL_CODE);
	write_register(MSR_SYSENTER_ESP, (uintptr_t)&first_stack[STACK_WORDS]);
	write_register(MSR_SYSENTER_EIP, (uintptr_t)sysenter_entry);
	trap_register_fixup(sysenter_fix_up);
}
/* } SOLUTION 3.4 */
