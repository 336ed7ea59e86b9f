/* The layout of memory: the kernel sees the first 896 MiB of physical memory at 3 GiB
 * (boot/paging.asm).
 */
#pragma once

#include <stdint.h>

#define KERNEL_BASE	0xc0000000u
#define DIRECT_MAP_SIZE (896u << 20)
#define LOAD_ADDRESS	0x100000u /* physical: the BIOS and the loader use what is below */

#define PAGE_SHIFT  12
#define PAGE_SIZE   (1u << PAGE_SHIFT)
#define LARGE_SHIFT 22
#define LARGE_PAGE  (1u << 22) /* what one entry of a page directory maps */

/* The kernel's address of a physical address below DIRECT_MAP_SIZE. */
static inline void *direct_map(uint32_t physical)
{
	return (void *)(uintptr_t)(physical + KERNEL_BASE);
}

/* The physical address of a kernel address in the direct map. */
static inline uint32_t physical_address(const void *address)
{
	return (uint32_t)(uintptr_t)address - KERNEL_BASE;
}
