/* The processor's side of paging: which directory is loaded, and what the TLB is to forget. */
#pragma once

#include <stdint.h>

/* The physical address of the page directory that is in use: CR3. */
static inline uint32_t paging_directory(void)
{
	uint32_t address;

	__asm__ volatile("movl %%cr3, %0" : "=r"(address));
	return address;
}

/* Uses another one, or the same again: the TLB forgets everything. */
static inline void paging_use(uint32_t directory)
{
	__asm__ volatile("movl %0, %%cr3" : : "r"(directory) : "memory");
}

/* The TLB forgets the page of this address. */
static inline void tlb_flush_page(uint32_t address)
{
	__asm__ volatile("invlpg (%0)" : : "r"(address) : "memory");
}
