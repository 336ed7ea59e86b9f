/* The double fault, which needs a stack of its own; and the beginning of all traps. */
#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/gates.h"
#include "kernel/cpu/task_state.h"
#include "kernel/cpu/trap.h"

static const char *(*explain_double_fault)(uint32_t address);

/*
 * A double fault is most often a bad stack, on which not even its own frame can be pushed. So it
 * gets a task gate: the processor saves the registers into the TSS of before, and takes the stack
 * from another.
 */
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
	const char *meaning = explain_double_fault ? explain_double_fault(address) : NULL;

	if (meaning)
		trap_panic(&frame, "exception 8, double fault (error code 0x0): %s", meaning);
	trap_panic(&frame,
		   "exception 8, double fault (error code 0x0): a second exception while the "
		   "first was being delivered; esp was 0x%08x, the last page fault at 0x%08x",
		   before->esp, address);
}

void trap_register_double_fault(const char *(*explain)(uint32_t address))
{
	explain_double_fault = explain;
}

void trap_initialize(void)
{
	descriptors_initialize(double_fault);
	gates_initialize();
	gate_set(VECTOR_DOUBLE_FAULT, DOUBLE_FAULT_TASK, 0, GATE_TASK, 0);
}
