/*
 * The kernel's global descriptor table (Intel SDM volume 3, 3.4.5 and 3.5.1).
 *
 * Paging protects; segments only have to be there. Every code and data segment is flat, base 0 and
 * limit 4 GiB, so an offset is a linear address. There are two pairs, which differ in privilege:
 *
 *	selector	segment			used by
 *	0x08, 0x10	kernel code, data	CS, DS, ES and SS in the kernel
 *	0x1b, 0x23	user code, data		the same in user mode; the last two bits are level 3
 *	0x28		kernel_task		TR: where a trap from user mode finds its stack
 *	0x30		double_fault_state	the task gate of vector 8
 *	0x3b to 0x4b	thread local		a program's FS and GS; a task switch fills them in
 *
 * Initialized once, at boot, with interrupts disabled: until the table is loaded the selectors are
 * the boot loader's.
 */
#include "kernel/cpu/descriptors.h"

#include "kernel/cpu/descriptor.h"
#include "kernel/cpu/paging.h"
#include "kernel/cpu/task_state.h"

/* Access bytes: Intel SDM volume 3, 3.4.5. */
#define ACCESS_KERNEL_CODE 0x9a /* present, level 0, readable */
#define ACCESS_KERNEL_DATA 0x92 /* present, level 0, writable */
#define ACCESS_USER_CODE   0xfa /* present, level 3, readable */
#define ACCESS_USER_DATA   0xf2 /* present, level 3, writable */
#define ACCESS_TASK	   0x89 /* present, level 0, a 32-bit task state that is not busy */
#define DOUBLE_FAULT_STACK 4096

static uint64_t gdt[10];
static struct task_state double_fault_state;
static uint8_t double_fault_stack[DOUBLE_FAULT_STACK] __attribute__((aligned(16)));

/* A selector is the table's index times 8, plus two bits of privilege: dividing by 8 drops them. */
static void set_descriptor(uint16_t selector, uint32_t base, uint32_t limit, uint8_t access,
			   uint8_t flags)
{
	gdt[selector / 8] = descriptor_pack(&(struct descriptor){ base, limit, access, flags });
}

/* The state that the processor loads for a double fault. It has a stack of its own, because a bad
 * stack is the usual reason. CR3 is the one in use now, which maps the whole kernel. ESP is four
 * bytes below the stack's end, as if a caller had pushed a return address. */
static void double_fault_state_fill(void (*double_fault)(void))
{
	double_fault_state = (struct task_state){
		.cr3 = paging_directory(),
		.eip = (uintptr_t)double_fault,
		.eflags = 2, /* the bit that is always one: interrupts stay disabled */
		.esp = (uintptr_t)double_fault_stack + sizeof(double_fault_stack) - 4,
		.cs = KERNEL_CODE,
		.ss = KERNEL_DATA,
		.ds = KERNEL_DATA,
		.es = KERNEL_DATA,
		.io_map_base = sizeof(struct task_state),
	};
}

/* LGDT alone changes nothing that is loaded: each segment register keeps a hidden copy of its
 * descriptor (Intel SDM volume 3, 3.4.3) until it is written. FS, GS and the local table are null:
 * nothing in the kernel uses them. LTR marks the task state as busy, so it may run only once. */
static void load_tables(void)
{
	struct table_pointer pointer = { sizeof(gdt) - 1, (uintptr_t)gdt };

	__asm__ volatile("lgdt %0\n\t"
			 "ljmp %1, $1f\n" /* loads CS, as no MOV can */
			 "1:\n\t"
			 "movw %w2, %%ds\n\t"
			 "movw %w2, %%es\n\t"
			 "movw %w2, %%ss\n\t"
			 "movw %w3, %%fs\n\t"
			 "movw %w3, %%gs\n\t"
			 "lldt %w3\n\t"
			 "ltr %w4"
			 :
			 : "m"(pointer), "i"(KERNEL_CODE), "r"(KERNEL_DATA), "r"(0),
			   "r"(KERNEL_TASK)
			 : "memory");
}

void descriptors_initialize(void (*double_fault)(void))
{
	uint32_t task_limit = task_state_initialize();

	double_fault_state_fill(double_fault);
	set_descriptor(KERNEL_CODE, 0, 0xffffffff, ACCESS_KERNEL_CODE, DESCRIPTOR_32_BIT);
	set_descriptor(KERNEL_DATA, 0, 0xffffffff, ACCESS_KERNEL_DATA, DESCRIPTOR_32_BIT);
	set_descriptor(USER_CODE, 0, 0xffffffff, ACCESS_USER_CODE, DESCRIPTOR_32_BIT);
	set_descriptor(USER_DATA, 0, 0xffffffff, ACCESS_USER_DATA, DESCRIPTOR_32_BIT);
	set_descriptor(KERNEL_TASK, (uintptr_t)&kernel_task, task_limit, ACCESS_TASK, 0);
	set_descriptor(DOUBLE_FAULT_TASK, (uintptr_t)&double_fault_state,
		       sizeof(double_fault_state) - 1, ACCESS_TASK, 0);
	load_tables();
}

/* FS and GS are null before the first one changes: an interrupt in between loads both again, with a
 * fault if the descriptor has gone. The program's own selectors are in its trap frame. */
void descriptors_set_thread_local(const struct thread_segments *segments)
{
	__asm__ volatile("movl %0, %%fs\n\tmovl %0, %%gs" : : "r"(0) : "memory");
	gdt[THREAD_LOCAL / 8] = segments->packed[0];
	gdt[THREAD_LOCAL / 8 + 1] = segments->packed[1];
	gdt[THREAD_LOCAL / 8 + 2] = segments->packed[2];
}
