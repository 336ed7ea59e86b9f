/*
 * Global pages: the kernel's part is the same in all spaces, so the TLB need not forget it when
 * another space is loaded.
 *
 * A load of CR3 makes the processor forget every translation but those whose entry has PTE_GLOBAL,
 * if CR4.PGE is set (Intel SDM volume 3, 4.10.2.4). Those go by INVLPG alone, or by a change of
 * CR4.PGE. So an entry may be global only if it says the same in every space, and never changes
 * without an INVLPG:
 *
 *	direct map		global: the same in all spaces, and it never changes
 *	stacks of tasks		not: 4 KiB entries that come and go, each with its INVLPG
 *	a program's pages	never: the next program would see those of the last one
 *
 * A directory is made as a copy of kernel_page_directory; so this runs before the first space.
 */
#include <cpuid.h>

#include "kernel/cpu/boot_memory.h"
#include "kernel/lib/startup.h"
#include "mm/large_page.h"

#define PGE_PRESENT  (1u << 13) /* CPUID 1, EDX */
#define CR4_PGE	     0x80u
#define ENTRIES	     1024u
#define FIRST_KERNEL (KERNEL_BASE >> LARGE_SHIFT)

/* The change of CR4.PGE makes the processor forget everything, so what it remembers of the kernel
 * without the bit is gone, too. */
static void global_pages_start(void)
{
	uint32_t eax, ebx, ecx, edx, cr4;

	__cpuid(1, eax, ebx, ecx, edx);
	if (!(edx & PGE_PRESENT))
		return;
	for (uint32_t i = FIRST_KERNEL; i < ENTRIES; i++)
		if (kernel_page_directory[i] & PTE_LARGE)
			kernel_page_directory[i] |= PTE_GLOBAL;
	__asm__ volatile("movl %%cr4, %0" : "=r"(cr4));
	__asm__ volatile("movl %0, %%cr4" : : "r"(cr4 | CR4_PGE) : "memory");
}
STARTUP(global_pages_start)
