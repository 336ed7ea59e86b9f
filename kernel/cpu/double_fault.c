/*
 * The double fault, which needs a stack of its own; and the beginning of all traps.
 *
 *	push beyond the stack's end -> page fault -> its frame does not fit on the stack either
 *		-> double fault, vector 8: a task gate
 *		-> registers saved into kernel_task; all of them loaded from double_fault_state
 *		-> double_fault(), on double_fault_stack
 *
 * A double fault through an interrupt gate would need the same bad stack once more, and the third
 * fault resets the processor (Intel SDM volume 3, 6.15, interrupt 8). The registers of the code
 * that failed are in a task state rather than in a frame, so a frame is made of them for the
 * report. There is no way back: the saved address need not be that of the instruction that failed.
 */
#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/gates.h"
#include "kernel/cpu/task_state.h"
#include "kernel/cpu/trap.h"

/* Runs as a task of its own, with interrupts disabled; kernel_task holds the registers of the code
 * that failed. CR2 is that of the last page fault, which is the first of the two exceptions when a
 * stack has overflowed. */
static void double_fault(void)
{
	const struct task_state *before = &kernel_task.state;
	uint32_t address = trap_fault_address();
	struct trap_frame frame = {
		.edi = before->edi,
		.esi = before->esi,
		.ebp = before->ebp,
		.ebx = before->ebx,
		.edx = before->edx,
		.ecx = before->ecx,
		.eax = before->eax,
		.cs = before->cs,
		.eip = before->eip,
		.vector = VECTOR_DOUBLE_FAULT,
		.eflags = before->eflags,
	};

	frame.esp_ignored = before->esp - trap_kernel_esp(&frame);
	const char *meaning = trap_explain_double_fault ? trap_explain_double_fault(address) : NULL;

	trap_panic(&frame,
		   "exception 8, double fault (error code 0x0): %s; esp was 0x%08x, the last page "
		   "fault at 0x%08x",
		   meaning ? meaning : "a second exception while the first was being delivered",
		   before->esp, address);
}

/* At boot, with interrupts disabled. The descriptors come first: gates name their selectors. */
void trap_initialize(void)
{
	descriptors_initialize(double_fault);
	gates_initialize();
	gate_set(VECTOR_DOUBLE_FAULT, DOUBLE_FAULT_TASK, 0, GATE_TASK, 0);
}
