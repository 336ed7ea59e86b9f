/* The processor's side of paging: loading a page directory, and flushing the TLB. */
#pragma once

#include <stdint.h>

/* The physical address of the page directory that is in use: CR3. */
static inline uint32_t paging_directory(void)
{
	uint32_t address;

	__asm__ volatile("movl %%cr3, %0" : "=r"(address));
	return address;
}

/* Loads a page directory, or the same one again: that flushes the TLB. */
static inline void paging_use(uint32_t directory)
{
	__asm__ volatile("movl %0, %%cr3" : : "r"(directory) : "memory");
}

/* Flushes this address from the TLB. */
static inline void tlb_flush_page(uint32_t address)
{
	__asm__ volatile("invlpg (%0)" : : "r"(address) : "memory");
}
