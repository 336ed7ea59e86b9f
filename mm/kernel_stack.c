/*
 * The kernel stacks of tasks, each with unmapped guard pages below it.
 *
 * In the direct map the page below a stack has another owner: a stack that is too small would
 * quietly overwrite it. So stacks have a region of their own: the 4 MiB after the direct map,
 * cut into 256 slots of four pages:
 *
 *	slot n	+0x0000	not mapped
 *		+0x1000	not mapped	the guard: the first push beyond the stack faults here
 *		+0x2000	the stack	8 KiB, mapped to two pages of the direct map
 *		+0x4000	slot n + 1
 *
 * The fault cannot push its own frame on the same stack, so it becomes a double fault, whose
 * handler has a stack of its own and asks explain_double_fault about the address.
 *
 * One page table holds all of it. It is entered into the kernel's page directory before the first
 * address space copies that: later changes in the table are then seen by all of them. A slot is
 * free if its first stack page is not mapped. Called with pre-emption or interrupts disabled,
 * as page_alloc is.
 */
#include "mm/kernel_stack.h"

#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/paging.h"
#include "kernel/cpu/trap.h"
#include "kernel/report/panic.h"
#include "mm/page_alloc.h"

#define REGION	    (KERNEL_BASE + DIRECT_MAP_SIZE) /* 4 MiB: one page table */
#define ENTRIES	    1024
#define SLOT	    (4 * PAGE_SIZE) /* the stack is at its upper end */
#define STACK_ORDER 1		    /* of KERNEL_STACK_SIZE, in pages */
#define GUARD	    (SLOT - KERNEL_STACK_SIZE)
#define WRITABLE    0x003u /* present; for the kernel only */

_Static_assert(KERNEL_STACKS *SLOT == ENTRIES * PAGE_SIZE, "one table holds all stacks");

static uint32_t table[ENTRIES] __attribute__((aligned(PAGE_SIZE)));

/* The page table entry of an address in the region. */
static uint32_t *stack_entry(uint32_t address)
{
	return &table[(address - REGION) / PAGE_SIZE];
}

/* Of the last page fault before a double fault: is there a stack that had no room left? */
const char *trap_explain_double_fault(uint32_t address)
{
	bool is_guard = address >= REGION && address - REGION < KERNEL_STACKS * SLOT &&
			*stack_entry(address) == 0;

	return is_guard ? "the task's kernel stack overflowed" : NULL;
}

void kernel_stack_initialize(void)
{
	kernel_page_directory[REGION >> LARGE_SHIFT] = physical_address(table) | WRITABLE;
}

/* The lowest address of the stack in the first slot that is free, or 0. */
static uint32_t find_free(void)
{
	for (uint32_t slot = REGION; slot - REGION < KERNEL_STACKS * SLOT; slot += SLOT)
		if (*stack_entry(slot + GUARD) == 0)
			return slot + GUARD;
	return 0;
}

/* No INVLPG: an entry that was not present is not remembered (Intel SDM volume 3, 4.10.2). */
void *kernel_stack_create(void)
{
	uint32_t stack = find_free();
	void *pages = stack ? page_alloc(STACK_ORDER) : NULL;

	if (!pages)
		return NULL;
	for (uint32_t done = 0; done < KERNEL_STACK_SIZE; done += PAGE_SIZE)
		*stack_entry(stack + done) = (physical_address(pages) + done) | WRITABLE;
	return (void *)(uintptr_t)stack;
}

/* A task cannot give back the stack that it runs on: the next one does it (task_switched). INVLPG:
 * the processor may still remember the pages, which are about to belong to somebody else. */
void kernel_stack_destroy(void *stack)
{
	uint32_t start = (uintptr_t)stack;

	ASSERT((start - REGION) % SLOT == GUARD && *stack_entry(start));
	void *pages = direct_map(*stack_entry(start) & -PAGE_SIZE);

	for (uint32_t at = start; at < start + KERNEL_STACK_SIZE; at += PAGE_SIZE) {
		*stack_entry(at) = 0;
		tlb_flush_page(at);
	}
	page_free(pages, STACK_ORDER);
}
