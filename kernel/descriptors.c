/* Segments and task states: flat segments, one TSS for the kernel and one for its worst moment. */
#include "kernel/descriptors.h"

/* Access bytes and flags of a descriptor: Intel SDM volume 3, 3.4.5. */
#define ACCESS_CODE	0x9a /* present, ring 0, readable */
#define ACCESS_DATA	0x92 /* present, ring 0, writable */
#define ACCESS_TASK	0x89 /* present, ring 0, available 32-bit TSS */
#define FLAGS_4G	0xc  /* the limit counts pages; 32-bit */
#define FLAGS_BYTES	0x0  /* the limit counts bytes */
#define DOUBLE_FAULT_STACK 4096

static uint64_t gdt[5];
struct task_state kernel_task_state;
static struct task_state double_fault_state;
static uint8_t double_fault_stack[DOUBLE_FAULT_STACK] __attribute__((aligned(16)));

static uint64_t descriptor(uint32_t base, uint32_t limit, uint8_t access, uint8_t flags)
{
	uint64_t low = (limit & 0xffff) | (base & 0xffff) << 16;
	uint64_t high = (base >> 16 & 0xff) | (uint32_t)access << 8 | (limit & 0xf0000) |
			(uint32_t)flags << 20 | (base & 0xff000000);

	return high << 32 | low;
}

static uint64_t task_descriptor(const struct task_state *state)
{
	return descriptor((uintptr_t)state, sizeof(*state) - 1, ACCESS_TASK, FLAGS_BYTES);
}

static void double_fault_state_fill(void (*double_fault)(void))
{
	uint32_t cr3;

	__asm__("movl %%cr3, %0" : "=r"(cr3));
	double_fault_state = (struct task_state){
		.cr3 = cr3,
		.eip = (uintptr_t)double_fault,
		.eflags = 2, /* the bit that is always one: interrupts stay off */
		.esp = (uintptr_t)double_fault_stack + sizeof(double_fault_stack) - 4,
		.cs = KERNEL_CODE,
		.ss = KERNEL_DATA,
		.ds = KERNEL_DATA,
		.es = KERNEL_DATA,
		.io_map_base = sizeof(struct task_state),
	};
}

static void load_tables(void)
{
	struct table_pointer pointer = { sizeof(gdt) - 1, (uintptr_t)gdt };

	__asm__ volatile("lgdt %0\n\t"
			 "ljmp %1, $1f\n" /* the only way to load CS */
			 "1:\n\t"
			 "movw %w2, %%ds\n\t"
			 "movw %w2, %%es\n\t"
			 "movw %w2, %%ss\n\t"
			 "movw %w3, %%fs\n\t"
			 "movw %w3, %%gs\n\t"
			 "ltr %w4"
			 :
			 : "m"(pointer), "i"(KERNEL_CODE), "r"(KERNEL_DATA), "r"(0),
			   "r"(KERNEL_TASK)
			 : "memory");
}

void descriptors_initialize(void (*double_fault)(void))
{
	kernel_task_state.ss0 = KERNEL_DATA;
	kernel_task_state.io_map_base = sizeof(kernel_task_state);
	double_fault_state_fill(double_fault);
	gdt[KERNEL_CODE / 8] = descriptor(0, 0xfffff, ACCESS_CODE, FLAGS_4G);
	gdt[KERNEL_DATA / 8] = descriptor(0, 0xfffff, ACCESS_DATA, FLAGS_4G);
	gdt[KERNEL_TASK / 8] = task_descriptor(&kernel_task_state);
	gdt[DOUBLE_FAULT_TASK / 8] = task_descriptor(&double_fault_state);
	load_tables();
}
