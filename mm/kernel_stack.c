/*
 * The stacks of tasks in the kernel.
 *
 * In the direct map the page below a stack is somebody else's: a stack that is too small would
 * quietly overwrite it. Here nothing is mapped below, and an overflow is a double fault at once.
 */
#include "mm/kernel_stack.h"

#include <stddef.h>

#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/memory_layout.h"
#include "kernel/report/panic.h"
#include "mm/page_alloc.h"

#define REGION	    (KERNEL_BASE + DIRECT_MAP_SIZE) /* 4 MiB: one page table */
#define LARGE_SHIFT 22
#define ENTRIES	    1024
#define SLOT	    (4 * PAGE_SIZE) /* the stack is at its upper end */
#define GUARD	    (SLOT - KERNEL_STACK_SIZE)
#define WRITABLE    0x003u /* present; for the kernel only */

_Static_assert(KERNEL_STACKS *SLOT == ENTRIES * PAGE_SIZE, "one table holds all stacks");


static uint32_t table[ENTRIES] __attribute__((aligned(PAGE_SIZE)));

void kernel_stack_initialize(void)
{
	kernel_page_directory[REGION >> LARGE_SHIFT] = physical_address(table) | WRITABLE;
}

static uint32_t *entry_of(uint32_t address)
{
	return &table[(address - REGION) / PAGE_SIZE];
}

static void unmap(uint32_t address)
{
	uint32_t *entry = entry_of(address);
	void *page = direct_map(*entry & -PAGE_SIZE);

	*entry = 0;
	__asm__ volatile("invlpg (%0)" : : "r"(address) : "memory");
	page_free(page, 0);
}

static bool map(uint32_t address)
{
	void *page = page_alloc(0);

	if (page)
		*entry_of(address) = physical_address(page) | WRITABLE;
	return page;
}

/* The lowest address of the stack in the first slot that is free, or 0. */
static uint32_t find_free(void)
{
	for (uint32_t slot = REGION; slot - REGION < KERNEL_STACKS * SLOT; slot += SLOT)
		if (*entry_of(slot + GUARD) == 0)
			return slot + GUARD;
	return 0;
}

void *kernel_stack_create(void)
{
	uint32_t stack = find_free();

	for (uint32_t done = 0; stack && done < KERNEL_STACK_SIZE; done += PAGE_SIZE) {
		if (map(stack + done))
			continue;
		while (done > 0)
			unmap(stack + (done -= PAGE_SIZE));
		return NULL;
	}
	return (void *)(uintptr_t)stack;
}

void kernel_stack_destroy(void *stack)
{
	uint32_t start = (uintptr_t)stack;

	ASSERT((start - REGION) % SLOT == GUARD && *entry_of(start));
	for (uint32_t done = 0; done < KERNEL_STACK_SIZE; done += PAGE_SIZE)
		unmap(start + done);
}

bool kernel_stack_is_guard(uint32_t address)
{
	return address >= REGION && address - REGION < KERNEL_STACKS * SLOT &&
	       *entry_of(address) == 0;
}
