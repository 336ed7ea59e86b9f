/*
 * Enables the floating-point and SSE registers.
 *
 * After a reset the processor refuses SSE, because an operating system that does not save its
 * registers would mix those of two programs. Setting CR4.OSFXSR is the promise to use FXSAVE and
 * FXRSTOR (Intel SDM volume 3, 2.5). The kernel itself is compiled without floating point
 * (-mno-sse): the registers belong to user mode alone, and a trap leaves them as they are. Only a
 * task switch exchanges them, eagerly: 512 bytes each way.
 */
#include "kernel/cpu/fpu.h"

#include <cpuid.h>

#include "kernel/report/panic.h"

#define CR0_MONITOR	  0x00000002u /* WAIT heeds the task-switched flag */
#define CR0_EMULATION	  0x00000004u
#define CR0_TASK_SWITCHED 0x00000008u
#define CR0_NUMERIC	  0x00000020u /* errors come as exception 16 */
#define CR4_OSFXSR	  0x00000200u
#define CR4_OSXMMEXCPT	  0x00000400u /* errors of SSE come as exception 19 */
#define NEEDED		  (bit_FXSAVE | bit_SSE)

static const uint32_t initial_mxcsr = 0x1f80; /* every exception masked, round to nearest */

/* Once, at boot. CR0.TS stays clear: no exception 7 at the first use after a switch. */
void fpu_initialize(void)
{
	uint32_t eax, ebx, ecx, edx, cr0, cr4;

	__cpuid(1, eax, ebx, ecx, edx);
	if ((edx & NEEDED) != NEEDED)
		panic("the processor has no FXSAVE or no SSE; programs for Linux need both");
	__asm__ volatile("movl %%cr0, %0" : "=r"(cr0));
	cr0 = (cr0 & ~(CR0_EMULATION | CR0_TASK_SWITCHED)) | CR0_MONITOR | CR0_NUMERIC;
	__asm__ volatile("movl %0, %%cr0" : : "r"(cr0));
	__asm__ volatile("movl %%cr4, %0" : "=r"(cr4));
	__asm__ volatile("movl %0, %%cr4" : : "r"(cr4 | CR4_OSFXSR | CR4_OSXMMEXCPT));
	fpu_reset();
}

void fpu_reset(void)
{
	__asm__ volatile("fninit; ldmxcsr %0" : : "m"(initial_mxcsr));
}
